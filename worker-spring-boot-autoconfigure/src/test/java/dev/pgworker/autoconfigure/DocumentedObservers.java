package dev.pgworker.autoconfigure;

import java.time.Duration;

import org.springframework.context.annotation.Bean;

import dev.pgworker.event.WorkerEvent;
import dev.pgworker.event.WorkerEventListener;
import dev.pgworker.job.JobRequest;
import dev.pgworker.job.ScheduleInterceptor;
import dev.pgworker.task.JobControlException;
import dev.pgworker.task.JobInterceptor;

/** Listeners and interceptors that the guide shows: they stand here so that they compile. */
class DocumentedObservers {

    interface Pager {
        void call(String text);
    }

    interface Tenants {
        boolean isClosed(String flag);

        boolean isMoving(String flag);

        void enter(String flag);

        void leave();
    }

    static final class Identity {
        static final ThreadLocal<String> current = new ThreadLocal<>();

        private Identity() {}
    }

    @Bean
    WorkerEventListener alarm(Pager pager) {
        return event -> {
            if (event instanceof WorkerEvent.JobFailed failed && failed.permanently()) {
                pager.call("Job " + failed.job().id() + " failed: "
                        + failed.error().getMessage());
            }
        };
    }

    @Bean
    JobInterceptor tenants(Tenants tenants) {
        return (context, execution) -> {
            String flag = context.job().flags().stream().findFirst().orElse("none");
            if (tenants.isClosed(flag)) {
                return null; // the job counts as done, its handler is not called
            }
            if (tenants.isMoving(flag)) {
                throw JobControlException.snoozeFor(Duration.ofMinutes(5));
            }
            tenants.enter(flag);
            try {
                return execution.proceed();
            } finally {
                tenants.leave();
            }
        };
    }

    @Bean
    JobInterceptor identity() {
        return (context, execution) -> {
            Identity.current.set("job:" + context.job().taskIdentifier());
            try {
                return execution.proceed();
            } finally {
                Identity.current.remove();
            }
        };
    }

    @Bean
    ScheduleInterceptor houseRules() {
        return request -> {
            if (request.identifier().startsWith("legacy_")) {
                throw new IllegalArgumentException("Task " + request.identifier() + " is not used any more");
            }
            if (request.identifier().equals("newsletter") && request.spec().jobKey() == null) {
                return null; // the caller gets a Job for which isSkipped() is true
            }
            return JobRequest.of(
                    request.identifier(),
                    request.payload(),
                    request.spec().toBuilder().flags("mine").build());
        };
    }
}
