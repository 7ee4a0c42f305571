package dev.pgworker.cli;

import java.time.Instant;
import java.util.Locale;

import dev.pgworker.job.Job;
import dev.pgworker.job.JobState;

/** The state of a job that has been read, by the clock of this machine. */
final class States {

    private States() {}

    static String of(Job job) {
        return name(state(job));
    }

    static String name(JobState state) {
        return state.name().toLowerCase(Locale.ROOT);
    }

    private static JobState state(Job job) {
        if (job.lockedAt() != null) {
            return JobState.RUNNING;
        }
        if (job.attempts() >= job.maxAttempts()) {
            return JobState.FAILED;
        }
        if (job.runAt().isAfter(Instant.now())) {
            return job.attempts() == 0 ? JobState.SCHEDULED : JobState.RETRYING;
        }
        return JobState.READY;
    }
}
