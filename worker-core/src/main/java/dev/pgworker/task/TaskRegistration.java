package dev.pgworker.task;

import dev.pgworker.job.Arguments;
import dev.pgworker.job.Task;

/**
 * A task that this application can run: its identifier and what runs it. Declare beans of this type to register
 * handlers that are functions rather than annotated methods.
 */
public final class TaskRegistration {

    private final String identifier;
    private final String source;
    private final Invoker invoker;

    TaskRegistration(String identifier, String source, Invoker invoker) {
        this.identifier = Arguments.requireIdentifier(identifier);
        this.source = source;
        this.invoker = invoker;
    }

    /** Decodes the payload of a context's job and calls the handler. */
    @FunctionalInterface
    interface Invoker {
        void invoke(JobContext context, PayloadCodec codec) throws Exception;
    }

    /** Returns the registration of a function. */
    public static <P> TaskRegistration of(Task<P> task, TaskHandler<P> handler) {
        Arguments.requireNonNull("handler", handler);
        return new TaskRegistration(
                task.identifier(),
                handler.getClass().getName(),
                (context, codec) -> handler.handle(codec.decode(context.job(), task), context));
    }

    /** Returns the task's name. */
    public String identifier() {
        return identifier;
    }

    /** Returns the class and method of the handler, for messages. */
    public String source() {
        return source;
    }

    /**
     * Runs one attempt on the calling thread.
     *
     * @throws PayloadException if the payload does not fit the handler's type
     * @throws Exception whatever the handler throws
     */
    public void run(JobContext context, PayloadCodec codec) throws Exception {
        invoker.invoke(context, codec);
    }
}
