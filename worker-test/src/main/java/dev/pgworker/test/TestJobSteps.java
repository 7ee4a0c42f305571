package dev.pgworker.test;

import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

import org.jspecify.annotations.Nullable;

import dev.pgworker.job.Job;
import dev.pgworker.step.JobSteps;
import dev.pgworker.step.JobSuspended;
import dev.pgworker.step.Step;
import dev.pgworker.task.PayloadCodec;

/** Steps of a job without a database: the record is what the test says, and every transaction that of the caller. */
final class TestJobSteps implements JobSteps {

    private final Job job;
    private final PayloadCodec codec;

    /** JSON by name; null for a step without a result. */
    private final Map<String, @Nullable String> record;

    private final Map<String, Integer> uses = new HashMap<>();
    private final List<String> ran = new ArrayList<>();
    private final List<String> taken = new ArrayList<>();

    TestJobSteps(Job job, PayloadCodec codec, Map<String, @Nullable String> record) {
        this.job = job;
        this.codec = codec;
        this.record = new HashMap<>(record);
    }

    synchronized List<String> ran() {
        return List.copyOf(ran);
    }

    synchronized List<String> taken() {
        return List.copyOf(taken);
    }

    /** Returns the name of the step, numbered, if it has to be run; null if it is recorded. */
    private synchronized String begin(String name) {
        int use = uses.merge(name, 1, Integer::sum);
        return use == 1 ? name : name + "#" + use;
    }

    private synchronized boolean take(String name) {
        return record.containsKey(name) && taken.add(name);
    }

    @SuppressWarnings({"unchecked", "NullAway", "TypeParameterUnusedInFormals"}) // what is recorded as null was null
    private synchronized <T extends @Nullable Object> T recorded(String name, Class<T> type) {
        String json = record.get(name);
        return json == null
                ? null
                : (T) codec.decodeResult("The result of step \"" + name + "\"", json, type, "Record another one");
    }

    private synchronized void end(String name, @Nullable Object result) {
        record.put(name, result == null ? null : codec.encodeResult(job.taskIdentifier(), result));
        ran.add(name);
    }

    private record TestStep(String name, String idempotencyKey) implements Step {}

    @Override
    public <T extends @Nullable Object, E extends Exception> T run(String given, Class<T> type, Work<T, E> work)
            throws E {
        String name = begin(given);
        if (take(name)) {
            return recorded(name, type);
        }
        T result = work.run(new TestStep(name, job.id() + "-" + name));
        end(name, result);
        return result;
    }

    @Override
    public <T extends @Nullable Object, E extends Exception> T inTransaction(
            String name, Class<T> type, Transaction<T, E> work) throws E {
        return run(name, type, step -> work.run());
    }

    @Override
    @SuppressWarnings("NullAway") // a test that sends no payload is told so by what it sends to
    public <T> T await(String signal, Class<T> type, Duration timeout) {
        return this.<T>recorded(awaited(signal), type);
    }

    @Override
    public void await(String signal, Duration timeout) {
        String unused = awaited(signal);
    }

    private String awaited(String given) {
        String name = begin(given);
        if (!take(name)) {
            throw new JobSuspended("The job waits at step \"" + name + "\": let this pass");
        }
        return name;
    }

    @Override
    public void sleep(String name, Duration time) {
        String unused = awaited(name);
    }

    @Override
    public void sleepUntil(String name, Instant time) {
        String unused = awaited(name);
    }
}
