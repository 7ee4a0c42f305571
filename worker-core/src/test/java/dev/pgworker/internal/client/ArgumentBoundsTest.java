package dev.pgworker.internal.client;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import dev.pgworker.testing.TestSchema;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

/** Functions refuse numbers that would keep the server busy, and say which. */
class ArgumentBoundsTest {

    @RegisterExtension
    final TestSchema db = new TestSchema();

    @Test
    void aWorkerMayHaveTheLongestId() {
        String id = "(select left(string_agg(md5(n::text), ''), 2000) from generate_series(1, 100) n)";
        db.sql("select {schema}.worker_heartbeat(" + id + ")").query().singleRow();
        db.sql("select {schema}.worker_deregister(" + id + ")").query().singleRow();
        assertThat(db.sql("select count(*) from {schema}._private_workers")
                        .query(Long.class)
                        .single())
                .isZero();
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "pgworker_claim(null, 2000000000, null) | wanted must be between 1 and 100000",
                "pgworker_claim(null, 0, null) | wanted must be between 1 and 100000",
                "pgworker_backlog(2000000000) | most must be between 1 and 1000000",
                "pgworker_backlog(0) | most must be between 1 and 1000000",
                "pgworker_estimate('true) union select (1') | condition must be",
                "reschedule_jobs(array[1], attempts => -1) | Job attempts must be between 0 and 32767",
                "reschedule_jobs(array[1], attempts => 32768) | Job attempts must be between 0 and 32767",
                "reschedule_jobs(array[1], max_attempts => 0) | Job maximum attempts must be at least 1",
                "reschedule_jobs(array[1], max_attempts => 32768) | Job maximum attempts must be at most 32767",
                "reschedule_jobs(array[1], priority => 32768) | Job priority must be between -32768 and 32767",
                "worker_heartbeat(null) | worker_id must not be null",
                "worker_deregister(null) | worker_id must not be null",
                "worker_heartbeat((select string_agg(md5(n::text), '') from generate_series(1, 100000) n))"
                        + " | worker_id must have at most 2000 bytes, but has 3200000"
            })
    void areRefused(String call, String message) {
        assertThatThrownBy(
                        () -> db.sql("select * from {schema}." + call).query().listOfRows())
                .hasMessageContaining(message);
    }
}
