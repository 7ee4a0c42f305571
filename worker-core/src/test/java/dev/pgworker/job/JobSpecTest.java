package dev.pgworker.job;

import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

import dev.pgworker.testing.TestJob;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

@Tag("any-postgres")
class JobSpecTest {

    /** One character to PostgreSQL, two UTF-16 units to Java. */
    private static final String SMILEY = "\uD83D\uDE00";

    private static void refused(ThrowingCallable call, String message) {
        assertThatIllegalArgumentException().isThrownBy(call).withMessage(message);
    }

    @Test
    void theDefaultHasNothingSet() {
        assertThat(JobSpec.builder().build())
                .isEqualTo(JobSpec.DEFAULT)
                .isEqualTo(new JobSpec(null, null, null, null, null, null, List.of()));
    }

    @Test
    void toBuilderKeepsEveryValue() {
        JobSpec spec = JobSpec.builder()
                .queueName("q")
                .runAt(Instant.parse("2026-01-01T00:00:00Z"))
                .maxAttempts(3)
                .jobKey("k")
                .jobKeyMode(JobKeyMode.PRESERVE_RUN_AT)
                .priority(-5)
                .flags("a", "b")
                .build();

        assertThat(spec)
                .isEqualTo(new JobSpec(
                        "q",
                        Instant.parse("2026-01-01T00:00:00Z"),
                        3,
                        "k",
                        JobKeyMode.PRESERVE_RUN_AT,
                        -5,
                        List.of("a", "b")));
        assertThat(spec.toBuilder().build()).isEqualTo(spec);
        assertThat(spec.toBuilder().priority(1).build().priority()).isEqualTo(1);
        assertThat(JobSpec.DEFAULT.toBuilder().build()).isEqualTo(JobSpec.DEFAULT);
    }

    @Test
    void runInCountsFromNow() {
        Instant before = Instant.now();
        JobSpec spec = JobSpec.builder().runIn(Duration.ofHours(1)).build();
        Instant after = Instant.now();

        assertThat(spec.runAt()).isBetween(before.plusSeconds(3600), after.plusSeconds(3600));
    }

    @Test
    void queueNameHasUpTo128Characters() {
        assertThat(JobSpec.builder().queueName(SMILEY.repeat(128)).build().queueName())
                .hasSize(256);
        refused(
                () -> JobSpec.builder().queueName(SMILEY.repeat(129)).build(),
                "queueName must have at most 128 characters, but has 129");
        refused(() -> JobSpec.builder().queueName("").build(), "queueName must not be empty");
        refused(
                () -> JobSpec.builder().queueName("\0").build(),
                "queueName must not contain the NUL character, which PostgreSQL rejects");
    }

    @Test
    void jobKeyHasUpTo512Characters() {
        assertThat(JobSpec.builder().jobKey(SMILEY.repeat(512)).build().jobKey())
                .hasSize(1024);
        refused(
                () -> JobSpec.builder().jobKey("x".repeat(513)).build(),
                "jobKey must have at most 512 characters, but has 513");
        refused(() -> JobSpec.builder().jobKey("").build(), "jobKey must not be empty");
        refused(
                () -> JobSpec.builder().jobKey("a\0").build(),
                "jobKey must not contain the NUL character, which PostgreSQL rejects");
    }

    /** The driver would store each as a question mark, so that two keys become one. */
    @Test
    void loneSurrogatesAreRefused() {
        refused(
                () -> JobSpec.builder().jobKey("a\uD83D").build(),
                "jobKey must not contain a lone surrogate, which PostgreSQL cannot store, but has U+D83D at index 1");
        refused(
                () -> JobSpec.builder().jobKey("\uDE00\uD83D").build(),
                "jobKey must not contain a lone surrogate, which PostgreSQL cannot store, but has U+DE00 at index 0");
        refused(
                () -> JobSpec.builder().queueName(SMILEY + "\uD83Dx").build(),
                "queueName must not contain a lone surrogate, which PostgreSQL cannot store, but has U+D83D at index 2");
        refused(
                () -> JobSpec.builder().flags("a", "\uD83D").build(),
                "flags[1] must not contain a lone surrogate, which PostgreSQL cannot store, but has U+D83D at index 0");
        refused(
                () -> Task.of("\uD83D", String.class),
                "identifier must not contain a lone surrogate, which PostgreSQL cannot store, but has U+D83D at index 0");
        refused(
                () -> JobRequest.of("\uD83D", null),
                "identifier must not contain a lone surrogate, which PostgreSQL cannot store, but has U+D83D at index 0");
    }

    @Test
    void aModeNeedsAKey() {
        refused(
                () -> JobSpec.builder().jobKeyMode(JobKeyMode.UNSAFE_DEDUPE).build(),
                "jobKeyMode must be null when there is no jobKey, but is UNSAFE_DEDUPE");
    }

    @Test
    void maxAttemptsIsASmallintFromOne() {
        assertThat(JobSpec.builder().maxAttempts(1).build().maxAttempts()).isEqualTo(1);
        assertThat(JobSpec.builder().maxAttempts(32767).build().maxAttempts()).isEqualTo(32767);
        refused(() -> JobSpec.builder().maxAttempts(0).build(), "maxAttempts must be between 1 and 32767, but is 0");
        refused(
                () -> JobSpec.builder().maxAttempts(32768).build(),
                "maxAttempts must be between 1 and 32767, but is 32768");
    }

    @Test
    void priorityIsASmallint() {
        assertThat(JobSpec.builder().priority(-32768).build().priority()).isEqualTo(-32768);
        assertThat(JobSpec.builder().priority(32767).build().priority()).isEqualTo(32767);
        refused(
                () -> JobSpec.builder().priority(-32769).build(),
                "priority must be between -32768 and 32767, but is -32769");
        refused(
                () -> JobSpec.builder().priority(32768).build(),
                "priority must be between -32768 and 32767, but is 32768");
    }

    @Test
    void runAtIsATimestampOfPostgres() {
        Instant earliest = Instant.parse("-4712-01-01T00:00:00Z");
        Instant latest = Instant.parse("+294276-12-31T23:59:59Z");

        assertThat(JobSpec.builder().runAt(earliest).build().runAt()).isEqualTo(earliest);
        assertThat(JobSpec.builder().runAt(latest).build().runAt()).isEqualTo(latest);
        for (Instant outside : List.of(earliest.minusNanos(1), latest.plusNanos(1), Instant.MIN, Instant.MAX)) {
            assertThatIllegalArgumentException()
                    .isThrownBy(() -> JobSpec.builder().runAt(outside).build())
                    .withMessageStartingWith("runAt must lie between " + earliest + " and " + latest)
                    .withMessageEndingWith("but is " + outside);
        }
    }

    @Test
    void flagsAreDistinctTexts() {
        refused(() -> JobSpec.builder().flags("a", "").build(), "flags[1] must not be empty");
        refused(
                () -> JobSpec.builder().flags("a", "b", "a").build(),
                "flags[2] must not repeat an earlier flag, but is \"a\"");
        refused(
                () -> JobSpec.builder().flags("\0").build(),
                "flags[0] must not contain the NUL character, which PostgreSQL rejects");
        refused(() -> JobSpec.builder().flags(Arrays.asList("a", null)).build(), "flags[1] must not be null");
        refused(() -> JobSpec.builder().flags((List<String>) null).build(), "flags must not be null");
        assertThat(JobSpec.builder().flags("x".repeat(10_000)).build().flags()).hasSize(1);
    }

    @Test
    void flagsAreACopy() {
        List<String> flags = new ArrayList<>(List.of("a"));
        JobSpec spec = JobSpec.builder().flags(flags).build();

        flags.add("b");

        assertThat(spec.flags()).containsExactly("a");
        assertThatThrownBy(() -> spec.flags().add("c")).isInstanceOf(UnsupportedOperationException.class);
    }

    @Test
    void modesHaveTheirNamesInSql() {
        assertThat(JobKeyMode.values())
                .extracting(JobKeyMode::sqlName)
                .containsExactly("replace", "preserve_run_at", "unsafe_dedupe", "replace_and_cancel");
    }

    @Test
    void aJobDoesNotShowItsPayload() {
        Job job = TestJob.withId(7).task("send").payload("secret").attempts(2).build();

        assertThat(job).hasToString("job 7 (send, attempt 2/25)");
    }
}
