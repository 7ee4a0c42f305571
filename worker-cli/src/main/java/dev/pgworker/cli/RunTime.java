package dev.pgworker.cli;

import java.time.DateTimeException;
import java.time.Duration;
import java.time.Instant;

import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Option;

/** When a job is to run, as a time or from here on. */
final class RunTime {

    @Option(
            names = "--run-at",
            paramLabel = "TIME",
            converter = Times.TimeConverter.class,
            description = "Not before this time, such as 2026-01-31T08:30:00Z, 2026-01-31T08:30+01:00 or now.")
    private @Nullable Instant runAt;

    @Option(
            names = "--run-in",
            paramLabel = "DURATION",
            converter = Times.DurationConverter.class,
            description = "Not before this much time has passed, such as 30s, 5m, 2h, 1d.")
    private @Nullable Duration runIn;

    /** Returns the time by the clock of this machine; null if none was given. */
    @Nullable Instant instant() {
        if (runIn == null) {
            return runAt;
        }
        if (runAt != null) {
            throw CommandFailure.usage("--run-at and --run-in cannot be combined");
        }
        try {
            return Instant.now().plus(runIn);
        } catch (DateTimeException | ArithmeticException e) {
            throw new CommandFailure(ExitStatus.USAGE, "--run-in is beyond all times", e);
        }
    }
}
