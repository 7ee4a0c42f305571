package dev.pgworker.task;

import java.lang.reflect.Type;
import java.util.List;

import org.jspecify.annotations.Nullable;

import dev.pgworker.internal.argument.Arguments;
import dev.pgworker.job.Task;

/**
 * A task that this application can run: its identifier, its handler and its options. Declare beans of this type to
 * register handlers that are functions rather than annotated methods.
 *
 * @since 0.1.0
 */
public final class TaskRegistration {

    private final String identifier;
    private final String source;
    private final @Nullable Type payloadType;
    private final Invoker invoker;
    private final TaskOptions options;
    private final String worker;

    TaskRegistration(
            String identifier, String source, @Nullable Type payloadType, Invoker invoker, TaskOptions options) {
        this(identifier, source, payloadType, invoker, options, "");
    }

    TaskRegistration(
            String identifier,
            String source,
            @Nullable Type payloadType,
            Invoker invoker,
            TaskOptions options,
            String worker) {
        this.identifier = Arguments.requireIdentifier(identifier);
        this.source = source;
        this.payloadType = payloadType;
        this.invoker = invoker;
        this.options = Arguments.requireNonNull("options", options);
        this.worker = Arguments.requireNonNull("worker", worker);
    }

    /** Decodes the payload of a context's job and calls the handler; returns the outcomes of the items of a batch. */
    @FunctionalInterface
    interface Invoker {
        @Nullable BatchResult invoke(JobContext context, PayloadCodec codec) throws Exception;
    }

    /** Returns the registration of a function. */
    public static <P> TaskRegistration of(Task<P> task, TaskHandler<P> handler) {
        Arguments.requireNonNull("task", task);
        Arguments.requireNonNull("handler", handler);
        return new TaskRegistration(
                task.identifier(),
                handler.getClass().getName(),
                task.payloadType(),
                (context, codec) -> {
                    handler.handle(codec.decode(context.job(), task), context);
                    return null;
                },
                TaskOptions.DEFAULT);
    }

    /** Returns the registration of a function that handles lists of items, each of which may fail separately. */
    public static <T> TaskRegistration ofBatch(Task<List<T>> task, BatchTaskHandler<T> handler) {
        Arguments.requireNonNull("task", task);
        Arguments.requireNonNull("handler", handler);
        return new TaskRegistration(
                task.identifier(),
                handler.getClass().getName(),
                task.payloadType(),
                (context, codec) -> {
                    codec.requireItems(context.job());
                    return handler.handle(codec.decode(context.job(), task), context);
                },
                TaskOptions.DEFAULT);
    }

    /** Returns a copy of this registration with the given options. */
    public TaskRegistration with(TaskOptions options) {
        return new TaskRegistration(identifier, source, payloadType, invoker, options, worker);
    }

    /** Returns a copy of this registration for the worker with the given name, in an application that has several. */
    public TaskRegistration onWorker(String worker) {
        return new TaskRegistration(identifier, source, payloadType, invoker, options, worker);
    }

    /**
     * Returns the name of the worker that runs the jobs, as in {@link JobHandler#worker}; empty if none is specified.
     */
    public String worker() {
        return worker;
    }

    /** Returns the task's name. */
    public String identifier() {
        return identifier;
    }

    /** Returns the class and method of the handler, for messages. */
    public String source() {
        return source;
    }

    /** Returns the type of payload that the handler takes; null if it takes none. */
    public @Nullable Type payloadType() {
        return payloadType;
    }

    /** Returns the options of the task. */
    public TaskOptions options() {
        return options;
    }

    /**
     * Runs one attempt on the calling thread.
     *
     * @return the outcomes of the items of a batch job, or null for any other job
     * @throws PayloadException if the payload does not fit the handler's type
     * @throws Exception whatever the handler throws
     */
    public @Nullable BatchResult run(JobContext context, PayloadCodec codec) throws Exception {
        return invoker.invoke(Arguments.requireNonNull("context", context), Arguments.requireNonNull("codec", codec));
    }
}
