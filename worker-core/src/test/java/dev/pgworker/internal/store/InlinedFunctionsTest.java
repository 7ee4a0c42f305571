package dev.pgworker.internal.store;

import java.util.List;

import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import dev.pgworker.testing.TestSchema;

import static org.assertj.core.api.Assertions.assertThat;

/**
 * The functions that claims and additions call for each job are part of the calling statement's plan. A call of its own costs as much as the
 * rest of a claim; PostgreSQL makes one where a function is declared less changeable than what it calls.
 */
class InlinedFunctionsTest {

    @RegisterExtension
    final TestSchema db = new TestSchema();

    @ParameterizedTest
    @ValueSource(
            strings = {
                "{schema}.pgworker_short(j.payload)",
                "{schema}.pgworker_allowed(j.flags, '{a}')",
                "{schema}.pgworker_next_revision(j.revision)",
                "{schema}.pgworker_merge(j.payload, j.payload)",
                "{schema}.pgworker_fits(j.key, j.key, j.attempts, j.key, j.priority)",
                "{schema}.pgworker_parked(j.locked_at)",
                "(select q.tid from {schema}.pgworker_queue_row(j.job_queue_id) q)"
            })
    void isInTheCallersPlan(String call) {
        List<String> plan = db.sql("explain (verbose) select " + call + " from {schema}._private_jobs j")
                .query(String.class)
                .list();

        String function = call.replaceAll(".*(pgworker_\\w+)\\(.*", "$1(");
        assertThat(plan).isNotEmpty().noneMatch(line -> line.contains(function));
    }
}
