package dev.pgworker.internal.lifecycle;

import java.lang.reflect.Method;
import java.util.function.Supplier;

import io.micrometer.observation.Observation;
import io.micrometer.observation.ObservationRegistry;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.springframework.scheduling.support.DefaultScheduledTaskObservationConvention;
import org.springframework.scheduling.support.ScheduledTaskObservationContext;
import org.springframework.scheduling.support.ScheduledTaskObservationDocumentation;

import dev.pgworker.internal.failure.WorkerLog;

/**
 * One execution of a task, observed as Spring observes those of {@code @Scheduled} methods. Handlers of observations are the
 * application's: what they throw is logged and does not touch the task.
 */
final class WorkObservation {

    private static final Logger log = WorkerLog.of(WorkObservation.class);

    private final ScheduledTaskObservationContext context;
    private final Observation observation;
    private Observation.@Nullable Scope scope;

    private WorkObservation(ScheduledTaskObservationContext context, ObservationRegistry registry) {
        this.context = context;
        observation = ScheduledTaskObservationDocumentation.TASKS_SCHEDULED_EXECUTION.observation(
                null, new DefaultScheduledTaskObservationConvention(), () -> context, registry);
    }

    /**
     * Begins to observe.
     *
     * @param method what the target executes
     * @return null if nothing observes, or the observation has failed
     */
    static @Nullable WorkObservation begin(ObservationRegistry registry, Object target, Supplier<Method> method) {
        if (registry.isNoop()) {
            return null;
        }
        try {
            WorkObservation begun =
                    new WorkObservation(new ScheduledTaskObservationContext(target, method.get()), registry);
            begun.observation.start();
            begun.scope = begun.observation.openScope();
            return begun;
        } catch (RuntimeException | LinkageError e) {
            log.debug("A task is not observed", e);
            return null;
        }
    }

    /**
     * Ends an observation.
     *
     * @param failure what the execution has ended with; null if it has succeeded
     */
    void end(@Nullable Throwable failure) {
        try {
            if (failure == null) {
                context.setComplete(true);
            } else {
                observation.error(failure);
            }
            if (scope != null) {
                scope.close();
            }
            observation.stop();
        } catch (RuntimeException | LinkageError e) {
            log.debug("The observation of a task has failed", e);
        }
    }
}
