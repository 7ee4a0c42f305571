package dev.pgworker.cli;

import java.time.Instant;
import java.util.Locale;

import dev.pgworker.job.Job;
import dev.pgworker.job.JobState;

/** The state of a job that has been read, by the clock of this machine. */
final class States {

    private States() {}

    static String of(Job job) {
        return name(JobState.of(job, Instant.now()));
    }

    static String name(JobState state) {
        return state.name().toLowerCase(Locale.ROOT);
    }
}
