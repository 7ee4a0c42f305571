package dev.pgworker.faults;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

import dev.pgworker.job.Job;

/** What handlers have done, and whether any of it was at the wrong time. Safe for use by many threads. */
final class Runs {

    private final Map<Long, Integer> running = new HashMap<>();
    private final Map<String, Integer> runningOfQueue = new HashMap<>();
    private final Set<Long> succeeded = new HashSet<>();
    private final Set<Long> skipped = new HashSet<>();
    private final Map<Long, Integer> begun = new HashMap<>();
    private final List<String> overlaps = new ArrayList<>();
    private int active;
    private int mostActive;

    /** Notes the begin of a handler; close what it returns when the handler ends. */
    synchronized Run begin(Job job) {
        begun.merge(job.id(), 1, Integer::sum);
        if (running.merge(job.id(), 1, Integer::sum) > 1) {
            overlaps.add("runs twice at once: " + job);
        }
        if (job.queueName() != null && runningOfQueue.merge(job.queueName(), 1, Integer::sum) > 1) {
            overlaps.add("runs beside another one of its queue: " + job);
        }
        active++;
        mostActive = Math.max(mostActive, active);
        return new Run(job);
    }

    /** A handler that runs. */
    final class Run implements AutoCloseable {

        private final Job job;

        private Run(Job job) {
            this.job = job;
        }

        void succeeded() {
            synchronized (Runs.this) {
                succeeded.add(job.id());
            }
        }

        @Override
        public void close() {
            end(job);
        }
    }

    private synchronized void end(Job job) {
        running.merge(job.id(), -1, Integer::sum);
        if (job.queueName() != null) {
            runningOfQueue.merge(job.queueName(), -1, Integer::sum);
        }
        active--;
    }

    /** Notes that an interceptor let the job succeed without its handler. */
    synchronized void skipped(Job job) {
        skipped.add(job.id());
        succeeded.add(job.id());
    }

    synchronized boolean hasSucceeded(long jobId) {
        return succeeded.contains(jobId);
    }

    synchronized boolean wasSkipped(long jobId) {
        return skipped.contains(jobId);
    }

    synchronized int begun(long jobId) {
        return begun.getOrDefault(jobId, 0);
    }

    synchronized List<String> overlaps() {
        return List.copyOf(overlaps);
    }

    synchronized int mostActive() {
        return mostActive;
    }
}
