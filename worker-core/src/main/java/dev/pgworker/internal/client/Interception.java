package dev.pgworker.internal.client;

import java.util.List;
import java.util.function.Supplier;

import org.jspecify.annotations.Nullable;
import org.springframework.util.function.SingletonSupplier;

import dev.pgworker.job.JobRequest;
import dev.pgworker.job.ScheduleInterceptor;

/** Asks the interceptors about jobs that are to be added. */
final class Interception {

    private final Supplier<List<ScheduleInterceptor>> interceptors;

    Interception(Supplier<List<ScheduleInterceptor>> interceptors) {
        this.interceptors = SingletonSupplier.of(interceptors);
    }

    /** Returns true if nobody is to be asked. */
    boolean isNone() {
        return interceptors.get().isEmpty();
    }

    /** Returns the job to add; null for none. */
    @Nullable JobRequest of(JobRequest request) {
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
