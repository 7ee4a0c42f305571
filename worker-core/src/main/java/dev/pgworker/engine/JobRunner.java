package dev.pgworker.engine;

import dev.pgworker.event.WorkerEvent;
import dev.pgworker.event.WorkerEvents;
import dev.pgworker.task.PayloadCodec;
import dev.pgworker.task.TaskRegistration;
import dev.pgworker.task.TaskRegistry;

/** Runs one attempt: finds the handler, decodes, calls, and tells how it went. Touches no table. */
public final class JobRunner {

    private final TaskRegistry tasks;
    private final PayloadCodec codec;
    private final WorkerEvents events;

    /** Creates a runner for the given tasks. */
    public JobRunner(TaskRegistry tasks, PayloadCodec codec, WorkerEvents events) {
        this.tasks = tasks;
        this.codec = codec;
        this.events = events;
    }

    /** Runs on the handler's thread; whatever the handler throws is an outcome. */
    @SuppressWarnings("CatchAndPrintStackTrace")
    JobOutcome run(Attempt attempt) {
        if (events.isWatched()) {
            events.publish(new WorkerEvent.JobStarted(attempt.workerId(), attempt.job()));
        }
        try {
            TaskRegistration task = tasks.find(attempt.job().taskIdentifier());
            if (task == null) {
                throw new IllegalStateException(
                        "No handler for task \"" + attempt.job().taskIdentifier() + "\"");
            }
            task.run(attempt, codec);
            return JobOutcome.Success.INSTANCE;
        } catch (Throwable e) {
            return attempt.isInterrupted() ? new JobOutcome.Returned(true) : new JobOutcome.Failure(e);
        }
    }
}
