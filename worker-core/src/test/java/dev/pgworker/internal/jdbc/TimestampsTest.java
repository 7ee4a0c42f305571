package dev.pgworker.internal.jdbc;

import java.time.Instant;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import dev.pgworker.testing.TestSchema;

import static org.assertj.core.api.Assertions.assertThat;

/** Times of any year, as PostgreSQL reads them. */
class TimestampsTest {

    @RegisterExtension
    final TestSchema db = new TestSchema(1);

    @ParameterizedTest
    @ValueSource(
            strings = {
                "-4712-01-01T00:00:00Z",
                "-0001-12-31T23:59:59.999999Z",
                "0000-01-01T00:00:00Z",
                "0001-01-01T00:00:00Z",
                "1969-12-31T23:59:59.123456Z",
                "2026-01-02T03:04:05.000006Z",
                "+10000-01-01T00:00:00Z",
                "+294276-12-31T23:59:59.999999499Z"
            })
    void areReadAsTheyWereMeant(String text) {
        Instant instant = Instant.parse(text);

        assertThat(Timestamps.storable(instant)).isTrue();
        assertThat(db.sql("""
                        select extract(epoch from date_trunc('second', s.at))::numeric from (
                          select unnest(array[?]::timestamptz[]) as at) s""")
                        .param(Timestamps.text(instant))
                        .query(java.math.BigDecimal.class)
                        .single()
                        .longValue())
                .isEqualTo(instant.getEpochSecond());
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "-1000000000-01-01T00:00:00Z",
                "-4713-12-31T23:59:59.999999Z",
                "+294276-12-31T23:59:59.9999995Z",
                "+294277-01-01T00:00:00Z",
                "+1000000000-12-31T23:59:59.999999999Z"
            })
    void beyondTheRangeOfTheDatabaseAreNotStorable(String text) {
        assertThat(Timestamps.storable(Instant.parse(text))).isFalse();
    }

    @Test
    void ofNothingIsNothing() {
        assertThat(Timestamps.text(null)).isNull();
    }
}
