package dev.pgworker.guide;

import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeoutException;

import org.jspecify.annotations.Nullable;
import org.springframework.stereotype.Component;
import org.springframework.stereotype.Service;

import dev.pgworker.job.JobScheduler;
import dev.pgworker.job.Task;
import dev.pgworker.task.JobHandler;

/** The code of docs/results.md. */
final class AwaitedReports {

    private AwaitedReports() {}

    record Report(long customer, int orders) {}

    @Component
    static class ReportHandlers {

        @JobHandler("report")
        Report report(long customer) {
            return new Report(customer, 3);
        }
    }

    @Service
    static class Reports {

        static final Task<Long> REPORT = Task.of("report", Long.class);

        private final JobScheduler jobs;

        Reports(JobScheduler jobs) {
            this.jobs = jobs;
        }

        @Nullable Report now(long customer) throws InterruptedException, TimeoutException {
            return jobs.addJobForResult(REPORT, customer, Report.class).await(Duration.ofSeconds(20));
        }

        long order(long customer) {
            return jobs.addJobForResult(REPORT, customer, Report.class).jobId();
        }

        CompletableFuture<Report> fetch(long jobId) {
            return jobs.resultOf(jobId, Report.class).future();
        }
    }
}
