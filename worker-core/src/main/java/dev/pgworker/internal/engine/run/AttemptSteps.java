package dev.pgworker.internal.engine.run;

import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.time.Duration;
import java.time.Instant;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import org.jspecify.annotations.Nullable;
import org.springframework.transaction.support.TransactionSynchronizationManager;

import dev.pgworker.internal.argument.Arguments;
import dev.pgworker.internal.engine.run.StepRuns.Recording;
import dev.pgworker.internal.store.StepStore.Ended;
import dev.pgworker.internal.store.StepStore.Recorded;
import dev.pgworker.job.Job;
import dev.pgworker.step.JobStep.Kind;
import dev.pgworker.step.JobSteps;
import dev.pgworker.step.JobSuspended;
import dev.pgworker.step.SignalTimeoutException;
import dev.pgworker.step.Step;

/** The steps of one attempt. Reads the record of the job when the first of them begins. Thread-safe. */
final class AttemptSteps implements JobSteps {

    private static final int MAX_NAME = 128;

    /** More are a loop that does not end, or one whose record is too long to read. */
    private static final int MOST = 10_000;

    private static final Duration LONGEST = Duration.ofDays(3650);

    private final StepRuns runs;
    private final Job job;
    private final Owner attempt;

    /** How often each name has been used. */
    @GuardedBy("this") private final Map<String, Integer> uses = new HashMap<>();

    @GuardedBy("this") private int begun;

    /** What earlier attempts have recorded; null before the first step. */
    @GuardedBy("this") private @Nullable Map<String, Recorded> record;

    /** Those that run a step. */
    private final Set<Thread> running = ConcurrentHashMap.newKeySet();

    private volatile @Nullable Instant suspendedUntil;

    /** The attempt. */
    interface Owner {

        /** Returns whether it has ended, by its handler or without it. */
        boolean isEnded();

        /** Returns whether the calling thread is that of the handler. */
        boolean isOnItsThread();

        /** Throws an exception if the job has been cancelled. */
        void throwIfCancelled();
    }

    /**
     * Creates the steps of an attempt that has not begun any.
     *
     * @param job as it was claimed
     */
    AttemptSteps(StepRuns runs, Job job, Owner attempt) {
        this.runs = runs;
        this.job = job;
        this.attempt = attempt;
    }

    /** Returns until when the job waits at most; null if the attempt has not been suspended. */
    @Nullable Instant suspendedUntil() {
        return suspendedUntil;
    }

    @Override
    public <T extends @Nullable Object, E extends Exception> T run(String name, Class<T> type, Work<T, E> work)
            throws E {
        Arguments.requireNonNull("work", work);
        return step(name, Kind.RUN, type, (step, recording) -> {
            T result;
            running.add(Thread.currentThread());
            try {
                result = work.run(step);
            } finally {
                running.remove(Thread.currentThread());
            }
            runs.end(job, recording.of(result));
            return result;
        });
    }

    @Override
    public <T extends @Nullable Object, E extends Exception> T inTransaction(
            String name, Class<T> type, Transaction<T, E> work) throws E {
        Arguments.requireNonNull("work", work);
        return step(name, Kind.TRANSACTION, type, (step, recording) -> runs.inTransaction(job, work, recording));
    }

    /** Runs a step and records it. */
    private interface Recorder<T extends @Nullable Object, E extends Exception> {
        T run(Step step, Recording<T> recording) throws E;
    }

    private <T extends @Nullable Object, E extends Exception> T step(
            String given, Kind kind, Class<T> type, Recorder<T, E> recorder) throws E {
        Arguments.requireNonNull("type", type);
        String name = begin("name", given);
        Recorded before = recorded(name, Kind.RUN, Kind.TRANSACTION);
        if (before != null) {
            return result(before, type);
        }
        long start = System.nanoTime();
        return recorder.run(
                new Running(name),
                result -> new Ended(
                        name,
                        kind,
                        Duration.ofNanos(System.nanoTime() - start),
                        type == Void.class ? null : type.getTypeName(),
                        runs.encode(job, name, result)));
    }

    @Override
    public <T> T await(String signal, Class<T> type, Duration timeout) {
        Arguments.requireNonNull("type", type);
        Recorded wait = awaited(signal, timeout);
        T payload = result(wait, type);
        if (payload == null) {
            throw new IllegalStateException(
                    "Signal \"" + signal + "\" came to " + job + " without the payload that is to be read as "
                            + type.getTypeName() + ". Send it with one, or wait for it without a type");
        }
        return payload;
    }

    @Override
    public void await(String signal, Duration timeout) {
        Recorded unused = awaited(signal, timeout);
    }

    private Recorded awaited(String signal, Duration timeout) {
        Duration span = Arguments.requireSpan("timeout", timeout, Duration.ZERO, LONGEST);
        String name = begin("signal", signal);
        Recorded wait = await(name, Kind.WAIT, signal, span, null);
        if (wait.timedOut()) {
            throw new SignalTimeoutException(signal);
        }
        return wait;
    }

    @Override
    public void sleep(String name, Duration time) {
        Duration span = Arguments.requireSpan("time", time, Duration.ZERO, LONGEST);
        Recorded unused = await(begin("name", name), Kind.SLEEP, null, span, null);
    }

    @Override
    public void sleepUntil(String name, Instant time) {
        Instant until = Arguments.requireStored("time", Arguments.requireNonNull("time", time));
        Recorded unused = await(begin("name", name), Kind.SLEEP, null, null, until);
    }

    /** Returns the step if it has ended; otherwise the attempt does. */
    private Recorded await(
            String name, Kind kind, @Nullable String signal, @Nullable Duration time, @Nullable Instant until) {
        if (!attempt.isOnItsThread()) {
            throw new IllegalStateException("A job waits on the thread of its handler only");
        }
        Recorded wait = recorded(name, kind);
        if (wait == null || !wait.ended()) {
            wait = runs.await(job, name, signal, time, until);
            requireKind(wait, kind);
        }
        if (!wait.ended()) {
            suspendedUntil = Objects.requireNonNull(wait.dueAt());
            throw suspension();
        }
        return wait;
    }

    private static JobSuspended suspension() {
        return new JobSuspended("The job waits, and this attempt ends: let this pass");
    }

    /** Returns the name of the step that begins. */
    private String begin(String argument, String name) {
        if (Arguments.requireGivenText(argument, name, MAX_NAME).indexOf('#') >= 0) {
            throw new IllegalArgumentException(argument + " must not contain #, but is \"" + name + "\"");
        } else if (suspendedUntil != null) {
            throw suspension();
        } else if (attempt.isEnded()) {
            throw new IllegalStateException("The attempt has ended");
        } else if (running.contains(Thread.currentThread())) {
            throw new IllegalStateException("Step \"" + name + "\" must not begin within another step");
        } else if (TransactionSynchronizationManager.isActualTransactionActive()) {
            throw new IllegalStateException(
                    "Step \"" + name
                            + "\" must not begin in a transaction, which could take back what is recorded as done: begin the transaction in the step");
        }
        attempt.throwIfCancelled();
        synchronized (this) {
            if (++begun > MOST) {
                throw new IllegalStateException("A job must not have more than " + MOST + " steps");
            }
            int use = uses.merge(name, 1, Integer::sum);
            return use == 1 ? name : name + "#" + use;
        }
    }

    private synchronized @Nullable Recorded recorded(String name, Kind... kinds) {
        if (record == null) {
            record = runs.recorded(job);
        }
        Recorded step = record.get(name);
        if (step != null) {
            requireKind(step, kinds);
        }
        return step;
    }

    private void requireKind(Recorded step, Kind... kinds) {
        if (!Set.of(kinds).contains(step.kind())) {
            throw new IllegalStateException("Step \"" + step.name() + "\" of " + job + " is recorded as " + step.kind()
                    + ", and the code has made it " + kinds[0] + ": give what is new another name");
        }
    }

    @SuppressWarnings({"unchecked", "NullAway", "TypeParameterUnusedInFormals"}) // what is recorded as null was null
    private <T extends @Nullable Object> T result(Recorded step, Class<T> type) {
        String json = type == Void.class ? null : runs.result(job, step);
        return json == null
                ? null
                : (T)
                        runs.codec()
                                .decodeResult(
                                        "The result of step \"" + step.name() + "\" of " + job
                                                + (step.resultType() == null
                                                        ? ""
                                                        : ", recorded as " + step.resultType() + ","),
                                        json,
                                        type,
                                        "Have the code read what is recorded, or give the step another name, under which it runs again");
    }

    /** A step whose work is being done. */
    private final class Running implements Step {

        private final String name;

        Running(String name) {
            this.name = name;
        }

        @Override
        public String name() {
            return name;
        }

        /** Made of what neither a claim nor unsafe_dedupe changes. */
        @Override
        public String idempotencyKey() {
            String work = job.createdAt() + "\n" + job.taskIdentifier() + "\n" + job.payload();
            try {
                byte[] digest = MessageDigest.getInstance("SHA-256").digest(work.getBytes(StandardCharsets.UTF_8));
                return job.id() + "-" + HexFormat.of().formatHex(digest, 0, 8) + "-" + name;
            } catch (NoSuchAlgorithmException e) {
                throw new IllegalStateException(e);
            }
        }
    }
}
