package dev.pgworker.test;

import org.assertj.core.api.AbstractAssert;

import dev.pgworker.job.Task;

/**
 * Assertions on the jobs that there are. A failure shows all of them.
 *
 * <pre>{@code
 * assertThat(worker.jobs()).hasEnqueued(HELLO).withPayload(new Greeting("Ada")).inQueue("mail");
 * }</pre>
 *
 * @since 0.1.0
 */
public final class EnqueuedJobsAssert extends AbstractAssert<EnqueuedJobsAssert, EnqueuedJobs> {

    EnqueuedJobsAssert(EnqueuedJobs actual) {
        super(actual, EnqueuedJobsAssert.class);
    }

    /** Verifies that there is no job. */
    public EnqueuedJobsAssert isEmpty() {
        return hasSize(0);
    }

    /** Verifies how many jobs there are. */
    public EnqueuedJobsAssert hasSize(int expected) {
        isNotNull();
        if (actual.size() != expected) {
            throw failure("Expecting %s jobs but %s", expected, actual);
        }
        return this;
    }

    /**
     * Verifies that there is a job of this task, and returns the assertions on it. Where there are several, each further
     * assertion narrows them down, and one is enough.
     */
    public <P> EnqueuedJobAssert<P> hasEnqueued(Task<P> task) {
        isNotNull();
        return new EnqueuedJobAssert<>(actual, task);
    }

    /** As {@link #hasEnqueued(Task)}, with payloads of any type, which are compared as JSON. */
    public EnqueuedJobAssert<Object> hasEnqueued(String identifier) {
        return hasEnqueued(Task.of(identifier, Object.class));
    }

    /** Verifies that there is no job of this task. */
    public EnqueuedJobsAssert hasNotEnqueued(Task<?> task) {
        return hasNotEnqueued(task.identifier());
    }

    /** Verifies that there is no job of the task with this identifier. */
    public EnqueuedJobsAssert hasNotEnqueued(String identifier) {
        isNotNull();
        if (actual.of(identifier).size() > 0) {
            throw failure("Expecting no job of task \"%s\" but %s", identifier, actual);
        }
        return this;
    }
}
