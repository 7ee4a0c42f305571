package dev.pgworker.task;

import java.time.Instant;
import java.util.Optional;

import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import dev.pgworker.testing.TestJob;

import static org.assertj.core.api.Assertions.assertThat;

/** What a payload tells of the recurring job that it belongs to, whoever has written it. */
@Tag("any-postgres")
class ScheduledRunTest {

    private static final Instant TICK = Instant.parse("2026-03-01T12:01:00Z");

    @Test
    void readsWhatTheWorkersOfEachLanguageWrite() {
        assertThat(
                        of(
                                "{\"a\":1,\"_cron\":{\"ts\":\"2026-03-01T12:01:00.000Z\",\"backfilled\":true,\"schedule\":\"s\"}}"))
                .contains(new ScheduledRun("s", TICK, true));
        assertThat(of("{\"_cron\":{\"ts\":\"2026-03-01T12:01:00.000Z\",\"backfilled\":false}}"))
                .as("Node.js")
                .contains(run(null, false));
        assertThat(of("{\"_cron\":{\"backfilled\":true,\"ts\":\"2026-03-01T13:01:00+01:00\"},\"b\":[{}]}"))
                .as("Rust")
                .contains(run(null, true));
    }

    @Test
    void onlyTheOutermostObjectTells() {
        String cron = "{\"_cron\":{\"ts\":\"2026-03-01T12:01:00Z\"}}";

        assertThat(of("{\"a\":" + cron + "}")).isEmpty();
        assertThat(of("[" + cron + "]")).isEmpty();
        assertThat(of("{\"a\":\"_cron\"}")).isEmpty();
        assertThat(of("{\"_cron\":" + cron + "}")).isEmpty();
        assertThat(of("{\"_cron\":{\"ts\":\"2026-03-01T12:00:00Z\"},\"_cron\":{\"ts\":\"2026-03-01T12:01:00Z\"}}"))
                .as("the last counts, as for any reader of JSON")
                .contains(run(null, false));
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "7",
                "\"_cron\"",
                "[]",
                "",
                "{\"_cron\"",
                "{\"_cron\":",
                "{\"_cron\":{\"ts\":\"2026-03-01T12:01:00Z\"",
                "{\"_cron\":null}",
                "{\"_cron\":[]}",
                "{\"_cron\":[{\"ts\":\"2026-03-01T12:01:00Z\"}]}",
                "{\"_cron\":true}",
                "{\"_cron\":{}}",
                "{\"_cron\":{\"ts\":1772366460000}}",
                "{\"_cron\":{\"ts\":null}}",
                "{\"_cron\":{\"ts\":{\"ts\":\"2026-03-01T12:01:00Z\"}}}",
                "{\"_cron\":{\"ts\":\"\"}}",
                "{\"_cron\":{\"ts\":\"yesterday\"}}",
                "{\"_cron\":{\"ts\":\"2026-13-01T12:01:00Z\"}}",
                "{\"_cron\":{\"ts\":\"2026-03-01T12:01:00\"}}",
                "{\"_cron\":{\"ts\":\"+9999999999-03-01T12:01:00Z\"}}",
                "{\"_cron\":{\"ts\":\"2026-03-01T12:01:00+99:99\"}}",
                "{\"_cron\":{\"ts\":\"2026-03-01T12:01:00Z\\u0000\"}}",
                "{\"_cron\":{\"ts\":\"\\ud800\"}}",
            })
    void whatIsNotAsItShouldBeCountsAsNotThere(String payload) {
        assertThat(of(payload)).isEmpty();
    }

    @Test
    void oddCompanionsOfTheTimeAreLeftOut() {
        assertThat(of("{\"_cron\":{\"schedule\":[[7]],\"x\":{\"ts\":1},\"backfilled\":\"true\","
                        + "\"ts\":\"2026-03-01T12:01:00Z\",\"y\":[]},\"z\":1}"))
                .contains(run(null, false));
        assertThat(of("{\"_cron\":{\"ts\":\"+999999999-12-31T23:59:59.999999999Z\"}}")
                        .orElseThrow()
                        .scheduledAt())
                .isEqualTo("+999999999-12-31T23:59:59.999999999Z");
    }

    @Test
    void depthAndSizeDoNoHarm() {
        String deep = "[".repeat(100_000) + "]".repeat(100_000);
        String cron = "\"_cron\":{\"x\":" + deep + ",\"ts\":\"2026-03-01T12:01:00Z\",\"schedule\":\"s\"}";

        assertThat(of("{\"a\":" + deep + "," + cron + "}")).contains(run("s", false));
        assertThat(of("{\"_cron\":" + deep + "}")).isEmpty();
        assertThat(of("{\"_cron\":{\"ts\":\"" + "2".repeat(10_000_000) + "\"}}"))
                .isEmpty();
        assertThat(of("{\"n\":" + "9".repeat(100_000) + ",\"s\":\"" + "s".repeat(30_000_000) + "\"," + cron + "}"))
                .contains(run("s", false));
    }

    @Test
    void theContextOfARunTells() {
        assertThat(Running.with("{\"_cron\":{\"ts\":\"2026-03-01T12:01:00Z\"}}").scheduledRun())
                .contains(run(null, false));
    }

    @Test
    void anItemOfRustWithoutPayloadIsKnownByItsTime() {
        assertThat(ofRust(TestJob.TIME)).contains(new ScheduledRun(null, TestJob.TIME, false));
        assertThat(ofRust(TestJob.TIME.minusSeconds(60)))
                .contains(new ScheduledRun(null, TestJob.TIME.minusSeconds(60), true));
        assertThat(ofRust(TestJob.TIME.plusSeconds(60)))
                .contains(new ScheduledRun(null, TestJob.TIME.plusSeconds(60), false));
        assertThat(ofRust(TestJob.TIME.plusSeconds(1))).as("no minute begins").isEmpty();
        assertThat(ofRust(TestJob.TIME.plusNanos(1_000))).isEmpty();
        assertThat(ofRust(Instant.MIN)).isPresent();
        assertThat(ofRust(Instant.MAX)).isEmpty();
    }

    /** A job that was added at {@link TestJob#TIME}. */
    private static Optional<ScheduledRun> ofRust(Instant runAt) {
        return ScheduledRun.of(TestJob.withId(1).payload("null").runAt(runAt).build());
    }

    private static Optional<ScheduledRun> of(String payload) {
        return ScheduledRun.of(Running.job(payload));
    }

    private static ScheduledRun run(@Nullable String schedule, boolean backfilled) {
        return new ScheduledRun(schedule, TICK, backfilled);
    }
}
