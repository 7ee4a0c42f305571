package dev.pgworker.task;

import java.time.Instant;
import java.util.Set;

import tools.jackson.databind.json.JsonMapper;

import dev.pgworker.job.Job;
import dev.pgworker.job.JobScheduler;

/** A running attempt of a job that exists in memory only. */
record Running(Job job) implements JobContext {

    static final PayloadCodec CODEC = new PayloadCodec(JsonMapper.builder().build());

    static Job job(String payload) {
        return new Job(
                7,
                "send",
                payload,
                null,
                0,
                Instant.EPOCH,
                1,
                25,
                null,
                Instant.EPOCH,
                Instant.EPOCH,
                null,
                Instant.EPOCH,
                "worker-1",
                0,
                Set.of());
    }

    static Running with(String payload) {
        return new Running(job(payload));
    }

    void run(TaskRegistration registration) throws Exception {
        registration.run(this, CODEC);
    }

    @Override
    public String workerId() {
        return "worker-1";
    }

    @Override
    public JobScheduler jobScheduler() {
        throw new UnsupportedOperationException();
    }

    @Override
    public boolean isOwned() {
        return true;
    }

    @Override
    public boolean isInterrupted() {
        return false;
    }
}
