package dev.pgworker.internal.client;

import java.util.List;
import java.util.function.Supplier;

import org.jspecify.annotations.Nullable;
import org.springframework.util.function.SingletonSupplier;

import dev.pgworker.job.JobRequest;
import dev.pgworker.job.ScheduleInterceptor;

/**
 * The interceptors that see all jobs before they are added: each gets what the one before returned. Safe for use
 * by many threads.
 */
public final class ScheduleInterceptorChain {

    private final Supplier<List<ScheduleInterceptor>> interceptors;

    /** Creates a chain whose interceptors are asked for when the first job is added. */
    public ScheduleInterceptorChain(Supplier<List<ScheduleInterceptor>> interceptors) {
        this.interceptors = SingletonSupplier.of(interceptors);
    }

    /** Returns true if there are no interceptors. */
    public boolean isEmpty() {
        return interceptors.get().isEmpty();
    }

    /**
     * Returns the job to add in place of the given one; null for none, whereupon no further interceptor is asked. What an
     * interceptor throws goes to the caller as it is.
     */
    public @Nullable JobRequest apply(JobRequest request) {
        JobRequest current = request;
        for (ScheduleInterceptor interceptor : interceptors.get()) {
            current = interceptor.beforeSchedule(current);
            if (current == null) {
                return null;
            }
        }
        return current;
    }
}
