package dev.pgworker.samples.reports;

import java.time.Instant;

import com.fasterxml.jackson.annotation.JsonProperty;

/** The payload of a recurring job: what the worker puts into it. */
record Execution(@JsonProperty("_cron") Cron cron) {

    /**
     * @param ts the minute for which the job was due, however late it runs
     * @param backfilled whether it makes up for a time in which no worker ran
     */
    record Cron(Instant ts, boolean backfilled) {}
}
