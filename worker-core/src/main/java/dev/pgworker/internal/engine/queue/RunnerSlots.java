package dev.pgworker.internal.engine.queue;

import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.function.Consumer;

import org.jspecify.annotations.Nullable;

import dev.pgworker.internal.engine.queue.Unit.LocalJob;

/**
 * The {@link Runner}s of one worker, as many as the concurrency allows: tasks on the handler executor that take jobs from the local
 * queue one after the other. A runner is signed on before it is handed to the executor and signs off in the same step in which it finds
 * no job, so that a job added next always finds or starts one. Guarded by the {@link LocalQueue} that it belongs to.
 */
public final class RunnerSlots {

    private final int concurrency;

    private final Set<Runner> runners = new HashSet<>();

    /** Runners that the handler executor has not begun yet. */
    private int unbegun;

    /** Runners that have a job. */
    private int running;

    /** Since when handlers are free and no job has started, by {@link System#nanoTime}. */
    private long idleSince = System.nanoTime();

    RunnerSlots(int concurrency) {
        this.concurrency = concurrency;
    }

    /** Takes jobs on a thread of the handler executor. What it does is decided under the queue's lock. */
    public static final class Runner {

        private final long signedOnAt = System.nanoTime();
        private boolean begun;
        private @Nullable LocalJob job;

        @Nullable LocalJob job() {
            return job;
        }

        boolean isBegun() {
            return begun;
        }
    }

    int running() {
        return running;
    }

    boolean isFull() {
        return runners.size() >= concurrency;
    }

    boolean contains(Runner runner) {
        return runners.contains(runner);
    }

    /** Signs on as many runners as so many ready jobs need and the concurrency allows. */
    List<Runner> signOnFor(int ready) {
        List<Runner> missing = new ArrayList<>();
        for (int i = Math.min(ready - unbegun, concurrency - runners.size()); i > 0; i--) {
            missing.add(signOn());
        }
        return missing;
    }

    Runner signOn() {
        Runner runner = new Runner();
        signOn(runner);
        return runner;
    }

    private void signOn(Runner runner) {
        runners.add(runner);
        unbegun++;
    }

    /** Begins a runner that is signed on; returns false if it has begun already. */
    boolean begin(Runner runner) {
        if (runner.begun) {
            return false;
        }
        runner.begun = true;
        unbegun--;
        return true;
    }

    /** Signs on a runner that was taken for lost, in place of one that has not begun; returns false if there is no room. */
    boolean signOnLate(Runner runner) {
        if (isFull()) {
            Runner other = runners.stream().filter(one -> !one.begun).findAny().orElse(null);
            if (other == null) {
                return false;
            }
            signOff(other);
        }
        signOn(runner);
        return true;
    }

    /** Tells of the jobs that runners have. */
    void running(Consumer<LocalJob> teller) {
        for (Runner runner : runners) {
            if (runner.job != null) {
                teller.accept(runner.job);
            }
        }
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
        boolean signedOn = runners.remove(runner);
        if (signedOn && !runner.begun) {
            unbegun--;
        }
        return signedOn;
    }

    /** Returns those that the executor has not begun for so long. */
    List<Runner> unbegun(Duration longerThan) {
        long time = System.nanoTime();
        return runners.stream()
                .filter(runner -> !runner.begun && time - runner.signedOnAt > longerThan.toNanos())
                .toList();
    }

    boolean anyBegun() {
        return runners.stream().anyMatch(runner -> runner.begun);
    }

    /** Returns how long no job has started although a handler is free; zero while all handlers run. */
    Duration sinceStart() {
        return running >= concurrency ? Duration.ZERO : Duration.ofNanos(System.nanoTime() - idleSince);
    }
}
