package dev.pgworker.guide;

import java.time.ZoneId;
import java.util.Map;

import org.springframework.stereotype.Component;

import dev.pgworker.crontab.CronJob;
import dev.pgworker.schedule.Misfire;
import dev.pgworker.schedule.Recurrence;
import dev.pgworker.schedule.RecurringJobs;
import dev.pgworker.schedule.Schedule;
import dev.pgworker.task.JobContext;
import dev.pgworker.task.JobHandler;

/** What {@link BeforeScheduled} and the like become. */
final class MovedSchedules {

    private MovedSchedules() {}

    @Component
    static class Reminders {

        private final Mailer mailer;

        Reminders(Mailer mailer) {
            this.mailer = mailer;
        }

        @JobHandler("remind_debtors")
        @CronJob(cron = "0 0 8 * * MON-FRI", zone = "Europe/Berlin", misfire = Misfire.RUN_ONCE)
        void remind() {
            mailer.remindDebtors();
        }
    }

    @Component
    static class Tenants {

        private final RecurringJobs recurring;

        Tenants(RecurringJobs recurring) {
            this.recurring = recurring;
        }

        void remindDaily(String tenant) {
            recurring.put(Schedule.builder(
                            "reminders/" + tenant,
                            Recurrence.cron("0 0 8 * * *", ZoneId.of("Europe/Berlin")),
                            "remind_debtors",
                            Map.of("tenant", tenant))
                    .misfire(Misfire.RUN_ONCE)
                    .build());
        }
    }

    @Component
    static class Partner {

        private int polls;

        @JobHandler("poll_partner")
        @CronJob(fixedDelay = "${partner.delay:30s}")
        void poll() {
            polls++;
        }

        int polls() {
            return polls;
        }
    }

    @Component
    static class Prices {

        private final Mailer mailer;

        Prices(Mailer mailer) {
            this.mailer = mailer;
        }

        @JobHandler("import_prices")
        @CronJob(cron = "${prices.cron:-}")
        void importPrices(JobContext context) {
            context.scheduledRun().ifPresent(run -> mailer.send("prices", "due at " + run.scheduledAt()));
        }
    }
}
