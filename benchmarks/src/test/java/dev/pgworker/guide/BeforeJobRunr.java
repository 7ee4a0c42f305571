package dev.pgworker.guide;

import java.time.Instant;
import java.util.UUID;

import org.jobrunr.jobs.annotations.Job;
import org.jobrunr.jobs.annotations.Recurring;
import org.jobrunr.jobs.lambdas.JobRequest;
import org.jobrunr.jobs.lambdas.JobRequestHandler;
import org.jobrunr.scheduling.JobRequestScheduler;
import org.springframework.stereotype.Component;

/** JobRunr, as the page on it begins with. */
final class BeforeJobRunr {

    private final JobRequestScheduler scheduler;

    BeforeJobRunr(JobRequestScheduler scheduler) {
        this.scheduler = scheduler;
    }

    record SendInvoice(String number, String address) implements JobRequest {

        @Override
        public Class<SendInvoiceHandler> getJobRequestHandler() {
            return SendInvoiceHandler.class;
        }
    }

    @Component
    static class SendInvoiceHandler implements JobRequestHandler<SendInvoice> {

        private final Mailer mailer;

        SendInvoiceHandler(Mailer mailer) {
            this.mailer = mailer;
        }

        @Override
        @Job(name = "Send an invoice", retries = 4)
        public void run(SendInvoice invoice) {
            mailer.send(invoice.address(), invoice.number());
        }
    }

    @Component
    static class Reminders {

        private final Mailer mailer;

        Reminders(Mailer mailer) {
            this.mailer = mailer;
        }

        @Recurring(id = "remind-debtors", cron = "0 8 * * 1-5", zoneId = "Europe/Berlin")
        public void remind() {
            mailer.remindDebtors();
        }
    }

    void issue(UUID id, SendInvoice invoice) {
        scheduler.schedule(id, Instant.now().plusSeconds(600), invoice);
    }

    void cancel(UUID id) {
        scheduler.delete(id);
    }
}
