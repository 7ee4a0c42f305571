package dev.pgworker.test;

import java.time.Instant;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;

import org.jspecify.annotations.Nullable;
import tools.jackson.databind.json.JsonMapper;

import dev.pgworker.job.Job;
import dev.pgworker.job.JobProgress;
import dev.pgworker.job.JobRequest;
import dev.pgworker.job.JobScheduler;
import dev.pgworker.job.JobSpec;
import dev.pgworker.job.Task;
import dev.pgworker.step.JobSteps;
import dev.pgworker.task.BatchResult;
import dev.pgworker.task.JobContext;
import dev.pgworker.task.JobHandlerMethods;
import dev.pgworker.task.PayloadCodec;
import dev.pgworker.task.TaskRegistration;

/**
 * An attempt of a job without a worker and a database, for unit tests of handlers. Pass it to one, or to {@link
 * #run(Object) run} one as a worker does.
 *
 * <p>Jobs that the handler adds by it are kept in memory, see {@link #addedJobs}.
 *
 * @since 0.1.0
 */
public final class TestJobContext implements JobContext {

    private final Job job;
    private final String workerId;
    private final PayloadCodec codec;
    private final TestJobScheduler scheduler;
    private final boolean interrupted;
    private final boolean cancelled;
    private final boolean owned;
    private final List<JobProgress> progress = new CopyOnWriteArrayList<>();
    private final TestJobSteps steps;
    private volatile @Nullable String result;

    private TestJobContext(Job job, Builder builder) {
        this.job = job;
        this.workerId = builder.workerId;
        this.codec = builder.codec;
        this.scheduler = new TestJobScheduler(builder.codec);
        this.interrupted = builder.interrupted;
        this.cancelled = builder.cancelled;
        this.owned = builder.owned;
        this.steps = new TestJobSteps(job, builder.codec, builder.record);
    }

    /** Returns the first attempt of a job with this payload. */
    public static <P> TestJobContext of(Task<P> task, P payload) {
        return builder(task, payload).build();
    }

    /** Returns the first attempt of a job with this payload. */
    public static TestJobContext of(String identifier, @Nullable Object payload) {
        return builder(identifier, payload).build();
    }

    /** Returns a builder for an attempt of a job with this payload. */
    public static <P> Builder builder(Task<P> task, P payload) {
        return new Builder(JobRequest.of(task, payload));
    }

    /** Returns a builder for an attempt of a job with this payload, or with the empty object if that is null. */
    public static Builder builder(String identifier, @Nullable Object payload) {
        return new Builder(JobRequest.of(identifier, payload));
    }

    /**
     * Runs the handler of the job's task among the {@code @JobHandler} methods of an object on the calling thread. The payload is
     * read from the JSON as which it would be stored. Interceptors, transactions, timeouts and retries are the worker's, and
     * do not take part.
     *
     * @param bean an object with handler methods, of which one is for the job's task
     * @return how the items of a batch job went, or null for any other job
     * @throws IllegalArgumentException if the object has no handler of the task
     * @throws dev.pgworker.task.HandlerDefinitionException if a method cannot be a handler
     * @throws dev.pgworker.task.PayloadException if the payload does not fit the handler's type
     * @throws Exception whatever the handler throws
     */
    public @Nullable BatchResult run(Object bean) throws Exception {
        List<TaskRegistration> handlers = JobHandlerMethods.find(bean);
        for (TaskRegistration handler : handlers) {
            if (handler.identifier().equals(job.taskIdentifier())) {
                return run(handler);
            }
        }
        throw new IllegalArgumentException(bean.getClass().getName() + " has no handler for the task \""
                + job.taskIdentifier() + "\", only for "
                + handlers.stream().map(TaskRegistration::identifier).toList());
    }

    /**
     * As {@link #run(Object)}, for a handler that is a function.
     *
     * @throws IllegalArgumentException if the handler is of another task
     * @throws Exception whatever the handler throws
     */
    public @Nullable BatchResult run(TaskRegistration handler) throws Exception {
        if (!handler.identifier().equals(job.taskIdentifier())) {
            throw new IllegalArgumentException("The handler is of the task \"" + handler.identifier()
                    + "\", and not of \"" + job.taskIdentifier() + "\"");
        }
        return handler.run(this, codec);
    }

    /** Returns the jobs that the handler has added by this context. */
    public EnqueuedJobs addedJobs() {
        return scheduler.jobs();
    }

    /** Returns what the handler has reported about its progress, in this order. */
    public List<JobProgress> progress() {
        return List.copyOf(progress);
    }

    @Override
    public void progress(long done, long total, @Nullable String text) {
        requireNotNegative("done", done);
        requireNotNegative("total", total);
        progress.add(new JobProgress(done, total, text, Instant.now()));
    }

    private static void requireNotNegative(String name, long value) {
        if (value < 0) {
            throw new IllegalArgumentException(name + " must not be negative, but is " + value);
        }
    }

    /** Returns the result of the run as JSON text; null if the handler has not returned or set any. */
    public @Nullable String result() {
        return result;
    }

    @Override
    public void result(@Nullable Object value) {
        result = value == null ? null : codec.encodeResult(job.taskIdentifier(), value);
    }

    @Override
    public JobSteps steps() {
        return steps;
    }

    /** Returns the steps that the handler ran or came to the end of, and those that it took from the record of the builder. */
    public RunSteps runSteps() {
        return new RunSteps(steps.ran(), steps.taken());
    }

    @Override
    public Job job() {
        return job;
    }

    @Override
    public String workerId() {
        return workerId;
    }

    @Override
    public JobScheduler jobScheduler() {
        return scheduler;
    }

    @Override
    public boolean isInterrupted() {
        return interrupted;
    }

    @Override
    public boolean isCancelled() {
        return cancelled;
    }

    @Override
    public boolean isOwned() {
        return owned;
    }

    @Override
    public String toString() {
        return job.toString();
    }

    /**
     * Builds a {@link TestJobContext}. Not safe for use by several threads.
     *
     * @since 0.1.0
     */
    public static final class Builder {

        private final JobRequest request;
        private @Nullable Long id;
        private JobSpec spec = JobSpec.DEFAULT;
        private int attempt = 1;
        private boolean last;
        private String workerId = "test-worker";
        private boolean interrupted;
        private boolean cancelled;
        private boolean owned = true;
        private PayloadCodec codec = new PayloadCodec(new JsonMapper());
        private final Map<String, @Nullable String> record = new HashMap<>();

        private Builder(JobRequest request) {
            this.request = request;
        }

        /** Sets the job's id, positive; one that no other job has unless set. */
        public Builder id(long id) {
            if (id <= 0) {
                throw new IllegalArgumentException("id must be positive, but is " + id);
            }
            this.id = id;
            return this;
        }

        /** Sets the queue, priority, key, flags and so on as if the job had been added with this spec. */
        public Builder spec(JobSpec spec) {
            this.spec = spec;
            return this;
        }

        /** Sets which attempt this is, 1 to the spec's maximum; the first unless set. */
        public Builder attempt(int attempt) {
            this.attempt = attempt;
            this.last = false;
            return this;
        }

        /** Makes this the last attempt that the spec allows. */
        public Builder lastAttempt() {
            this.last = true;
            return this;
        }

        /** Sets the id of the worker; {@code test-worker} unless set. */
        public Builder workerId(String workerId) {
            this.workerId = workerId;
            return this;
        }

        /** Sets whether the worker wants the handler to end; false unless set. */
        public Builder interrupted(boolean interrupted) {
            this.interrupted = interrupted;
            return this;
        }

        /** Sets whether the job has been cancelled; false unless set. */
        public Builder cancelled(boolean cancelled) {
            this.cancelled = cancelled;
            return this;
        }

        /** Sets whether the job is still this worker's; true unless set. */
        public Builder owned(boolean owned) {
            this.owned = owned;
            return this;
        }

        /**
         * Records a step, as if an earlier attempt had ended it. The value is the result of a step that does something, or the payload
         * of the signal that a step waits for. A handler that comes to a wait or a sleep that is not recorded ends with {@link
         * dev.pgworker.step.JobSuspended}.
         *
         * @param result what it returned, as JSON of the codec set before; null for nothing
         */
        public Builder recorded(String step, @Nullable Object result) {
            record.put(step, result == null ? null : codec.encodeResult(request.identifier(), result));
            return this;
        }

        /** Sets how payloads are written and read; by a plain {@code JsonMapper} unless set. */
        public Builder codec(PayloadCodec codec) {
            this.codec = codec;
            return this;
        }

        /**
         * Returns the context.
         *
         * @throws IllegalArgumentException if the payload cannot be written, or the attempt is out of its range
         */
        public TestJobContext build() {
            Job added = TestJobs.of(
                    id == null ? TestJobs.nextId() : id,
                    new JobRequest(request.identifier(), request.payload(), request.payloadType(), spec),
                    codec);
            int number = last ? added.maxAttempts() : attempt;
            if (number < 1 || number > added.maxAttempts()) {
                throw new IllegalArgumentException(
                        "attempt must be between 1 and " + added.maxAttempts() + ", but is " + attempt);
            }
            return new TestJobContext(TestJobs.claimed(added, number, workerId), this);
        }
    }
}
