package dev.pgworker.autoconfigure.observation;

import java.util.Objects;

import io.micrometer.observation.Observation;
import io.micrometer.observation.ObservationRegistry;
import org.jspecify.annotations.Nullable;

import dev.pgworker.job.Job;
import dev.pgworker.step.JobSuspended;
import dev.pgworker.task.BatchResult;
import dev.pgworker.task.JobContext;
import dev.pgworker.task.JobControlException;
import dev.pgworker.task.JobInterceptor;

/** Observes each run of a job as the receipt of a message, within the trace that its payload carries. */
final class ObservedRuns implements JobInterceptor {

    private static final JobProcessConvention DEFAULT = new JobProcessConvention() {};

    private final ObservationRegistry registry;
    private final @Nullable JobProcessConvention convention;
    private final boolean propagate;

    /**
     * Creates an interceptor.
     *
     * @param convention that of the application, or null for the default
     * @param propagate whether to look for traces in payloads
     */
    ObservedRuns(ObservationRegistry registry, @Nullable JobProcessConvention convention, boolean propagate) {
        this.registry = registry;
        this.convention = convention;
        this.propagate = propagate;
    }

    @Override
    public @Nullable BatchResult intercept(JobContext context, Execution execution) throws Exception {
        if (registry.isNoop()) {
            return execution.proceed();
        }
        Job job = context.job();
        PayloadTrace.Found found = propagate ? PayloadTrace.in(job.payload()) : null;
        Observation observation = observation(job, found == null ? PayloadTrace.NONE : found.trace());
        observation.start();
        try (Observation.Scope scope = observation.openScope()) {
            Objects.requireNonNull(scope);
            BatchResult result = found == null ? execution.proceed() : execution.proceed(found.payload());
            if (result != null) {
                result.errors().stream().filter(Objects::nonNull).findFirst().ifPresent(observation::error);
            }
            return result;
        } catch (Throwable e) {
            if (!isNoFailure(e)) {
                observation.error(e);
            }
            throw e;
        } finally {
            observation.stop();
        }
    }

    private static boolean isNoFailure(Throwable e) {
        return e instanceof JobSuspended
                || (e instanceof JobControlException control
                        && control.decision() == JobControlException.Decision.SNOOZE);
    }

    private Observation observation(Job job, PayloadTrace trace) {
        return Observation.createNotStarted(convention, DEFAULT, () -> new JobProcessContext(job, trace), registry);
    }
}
