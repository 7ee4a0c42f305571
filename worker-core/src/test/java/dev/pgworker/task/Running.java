package dev.pgworker.task;

import tools.jackson.databind.json.JsonMapper;

import dev.pgworker.job.Job;
import dev.pgworker.job.JobScheduler;
import dev.pgworker.testing.TestJob;

/** A running attempt of a job that exists in memory only. */
record Running(Job job) implements JobContext {

    static final PayloadCodec CODEC = new PayloadCodec(JsonMapper.builder().build());

    static Job job(String payload) {
        return TestJob.withId(7)
                .task("send")
                .payload(payload)
                .lockedBy("worker-1")
                .build();
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
