package dev.pgworker.internal.engine.queue;

import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashSet;
import java.util.Set;

import org.jspecify.annotations.Nullable;

import dev.pgworker.internal.engine.queue.Unit.LocalJob;

/**
 * The {@link Runner}s of one worker, as many as the concurrency allows: tasks on the handler executor that take jobs from the local
 * queue one after the other. A task counts as awaited from when it is to be handed to the executor until one begins, whichever that is, and
 * then as a runner, which signs off in the same step in which it finds no job. So a job added next always finds or starts one. Guarded by
 * the {@link LocalQueue} that it belongs to.
 */
public final class RunnerSlots {

    private final int concurrency;

    private final Set<Runner> runners = new HashSet<>();

    /** Since when tasks are awaited, by {@link System#nanoTime}, the oldest first. */
    private final Deque<Long> awaited = new ArrayDeque<>();

    /** Runners that have a job. */
    private int running;

    /** Since when handlers are free and no job has started, by {@link System#nanoTime}. */
    private long idleSince = System.nanoTime();

    RunnerSlots(int concurrency) {
        this.concurrency = concurrency;
    }

    /** Takes jobs on a thread of the handler executor. What it does is decided under the queue's lock. */
    public static final class Runner {

        private @Nullable LocalJob job;

        @Nullable LocalJob job() {
            return job;
        }
    }

    int running() {
        return running;
    }

    int awaited() {
        return awaited.size();
    }

    boolean anyBegun() {
        return !runners.isEmpty();
    }

    boolean contains(Runner runner) {
        return runners.contains(runner);
    }

    /** Awaits as many more tasks as so many ready jobs need and the concurrency allows; returns how many the caller is to hand over. */
    int awaitFor(int ready) {
        int missing = Math.max(0, Math.min(ready, concurrency - runners.size()) - awaited.size());
        for (int i = 0; i < missing; i++) {
            awaited.add(System.nanoTime());
        }
        return missing;
    }

    /** Awaits one task less, for the executor has not taken it; it may begin all the same. */
    void refused() {
        awaited.pollLast();
    }

    /** Awaits those no longer that have been for so long, for the executor has lost them, or is late; returns how many. */
    int lost(Duration longerThan) {
        long time = System.nanoTime();
        int lost = 0;
        while (!awaited.isEmpty() && time - awaited.element() > longerThan.toNanos()) {
            awaited.remove();
            lost++;
        }
        return lost;
    }

    /** Signs a runner on for a task that has begun; null if there is no room, because the executor has been late or has begun it twice. */
    @Nullable Runner begin() {
        awaited.poll();
        if (runners.size() >= concurrency) {
            return null;
        }
        Runner runner = new Runner();
        runners.add(runner);
        return runner;
    }

    void start(Runner runner, LocalJob job) {
        runner.job = job;
        running++;
        idleSince = System.nanoTime();
    }

    /** Takes its job from a runner; returns the unit that it is of, null if it has none. */
    @Nullable Unit end(Runner runner) {
        LocalJob job = runner.job;
        runner.job = null;
        if (job != null) {
            if (running == concurrency) {
                idleSince = System.nanoTime();
            }
            running--;
        }
        return job == null ? null : job.unit;
    }

    /** Signs a runner off that has no job; returns false if it was not signed on. */
    boolean signOff(Runner runner) {
        return runners.remove(runner);
    }

    /** Returns how long no job has started although a handler is free; zero while all handlers run. */
    Duration sinceStart() {
        return running >= concurrency ? Duration.ZERO : Duration.ofNanos(System.nanoTime() - idleSince);
    }
}
