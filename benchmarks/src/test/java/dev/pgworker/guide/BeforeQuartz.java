package dev.pgworker.guide;

import java.time.Instant;
import java.util.Date;
import java.util.TimeZone;

import org.quartz.CronScheduleBuilder;
import org.quartz.Job;
import org.quartz.JobBuilder;
import org.quartz.JobDetail;
import org.quartz.JobExecutionContext;
import org.quartz.JobKey;
import org.quartz.Scheduler;
import org.quartz.SchedulerException;
import org.quartz.Trigger;
import org.quartz.TriggerBuilder;
import org.springframework.context.annotation.Bean;

/** Quartz, as the page on it begins with. */
final class BeforeQuartz {

    private final Scheduler scheduler;

    BeforeQuartz(Scheduler scheduler) {
        this.scheduler = scheduler;
    }

    static class SendInvoice implements Job {

        private final Mailer mailer;

        SendInvoice(Mailer mailer) {
            this.mailer = mailer;
        }

        @Override
        public void execute(JobExecutionContext context) {
            mailer.send(
                    context.getMergedJobDataMap().getString("address"),
                    context.getMergedJobDataMap().getString("number"));
        }
    }

    void issue(String number, String address) throws SchedulerException {
        JobDetail job = JobBuilder.newJob(SendInvoice.class)
                .withIdentity(number, "invoices")
                .usingJobData("number", number)
                .usingJobData("address", address)
                .requestRecovery()
                .build();
        Trigger trigger = TriggerBuilder.newTrigger()
                .startAt(Date.from(Instant.now().plusSeconds(600)))
                .build();
        scheduler.scheduleJob(job, trigger);
    }

    void cancel(String number) throws SchedulerException {
        scheduler.deleteJob(JobKey.jobKey(number, "invoices"));
    }

    abstract static class RemindDebtors implements Job {}

    @Bean
    JobDetail remindDebtors() {
        return JobBuilder.newJob(RemindDebtors.class)
                .withIdentity("remind_debtors")
                .storeDurably()
                .build();
    }

    @Bean
    Trigger everyWeekday(JobDetail remindDebtors) {
        return TriggerBuilder.newTrigger()
                .forJob(remindDebtors)
                .withSchedule(CronScheduleBuilder.cronSchedule("0 0 8 ? * MON-FRI")
                        .inTimeZone(TimeZone.getTimeZone("Europe/Berlin"))
                        .withMisfireHandlingInstructionFireAndProceed())
                .build();
    }

    void remindDaily(String tenant) throws SchedulerException {
        scheduler.scheduleJob(TriggerBuilder.newTrigger()
                .withIdentity(tenant, "reminders")
                .forJob("remind_debtors")
                .usingJobData("tenant", tenant)
                .withSchedule(CronScheduleBuilder.cronSchedule("0 0 8 * * ?"))
                .build());
    }
}
