package dev.pgworker.guide;

import java.time.Duration;
import java.time.Instant;
import java.time.ZoneId;
import java.util.List;
import java.util.Map;
import java.util.Optional;

import org.springframework.stereotype.Service;
import org.springframework.transaction.annotation.Transactional;

import dev.pgworker.crontab.CronJob;
import dev.pgworker.job.Job;
import dev.pgworker.job.JobSpec;
import dev.pgworker.job.Task;
import dev.pgworker.schedule.Misfire;
import dev.pgworker.schedule.Overlap;
import dev.pgworker.schedule.Recurrence;
import dev.pgworker.schedule.RecurringJob;
import dev.pgworker.schedule.RecurringJobs;
import dev.pgworker.schedule.RecurringQuery;
import dev.pgworker.schedule.Schedule;
import dev.pgworker.task.JobContext;
import dev.pgworker.task.JobHandler;

/** The code of docs/recurring.md. */
final class TenantSchedules {

    private TenantSchedules() {}

    @Service
    static class TenantReports {

        static final Task<Report> REPORT = Task.of("report", Report.class);

        record Report(String tenant) {}

        private final RecurringJobs recurring;

        TenantReports(RecurringJobs recurring) {
            this.recurring = recurring;
        }

        @Transactional
        public void reportDaily(String tenant, ZoneId zone) {
            Recurrence everyMorning = Recurrence.cron("0 30 6 * * MON-FRI", zone);
            recurring.put(Schedule.builder("report/" + tenant, everyMorning, REPORT, new Report(tenant))
                    .jitter(Duration.ofMinutes(10))
                    .build());
        }

        @Transactional
        public void stopReporting(String tenant) {
            recurring.delete("report/" + tenant);
        }
    }

    static class Imports {

        @JobHandler("import_prices")
        @CronJob(cron = "0 0/10 6-22 * * *", zone = "Europe/Berlin")
        void importPrices() {}

        @JobHandler("poll_partner")
        @CronJob(fixedDelay = "30s")
        void poll(JobContext context) {
            context.scheduledRun().ifPresent(run -> context.progress(0, 1, "due at " + run.scheduledAt()));
        }
    }

    List<Recurrence> recurrences() {
        ZoneId zone = ZoneId.of("Europe/Berlin");
        return List.of(
                Recurrence.crontab("30 4 * * 1", zone),
                Recurrence.cron("0 0 8 ? * MON#1", zone),
                Recurrence.fixedRate(Duration.ofMinutes(90), Instant.parse("2026-01-01T00:00:00Z")),
                Recurrence.fixedDelay(Duration.ofSeconds(30)));
    }

    Schedule allOfIt(Recurrence recurrence) {
        return Schedule.builder("rollup", recurrence, "rollup", Map.of("depth", 3))
                .spec(JobSpec.builder().queueName("rollups").maxAttempts(3).build())
                .overlap(Overlap.ALLOW)
                .misfire(Misfire.RUN_ALL)
                .backfill(Duration.ofDays(2))
                .startsAt(Instant.parse("2027-01-01T00:00:00Z"))
                .build();
    }

    List<Object> manage(RecurringJobs recurring) {
        Optional<RecurringJob> one = recurring.find("report/acme"); // next and last run, paused since when and by whom
        List<RecurringJob> some = recurring.list(new RecurringQuery("report/", null, null, null, 100)); // in pages
        boolean paused = recurring.actingAs("ada").pause("report/acme"); // false if it was paused already
        boolean resumed = recurring.resume("report/acme");
        Job job = recurring.trigger("report/acme", Map.of("tenant", "acme", "draft", true)); // one job, at once
        return List.of(one, some, paused, resumed, job);
    }

    List<Instant> preview(Schedule schedule) {
        List<Instant> nextTen = schedule.next(Instant.now(), 10);
        return nextTen;
    }
}
