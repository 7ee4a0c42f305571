package dev.pgworker.guide;

import org.springframework.stereotype.Component;

import dev.pgworker.crontab.CronJob;
import dev.pgworker.job.Task;
import dev.pgworker.task.JobHandler;

@Component
class InvoiceHandlers {

    static final Task<Invoice> SEND_INVOICE = Task.of("send_invoice", Invoice.class);

    private final Mailer mailer;

    InvoiceHandlers(Mailer mailer) {
        this.mailer = mailer;
    }

    @JobHandler(value = "send_invoice", maxAttempts = 5)
    void send(Invoice invoice) {
        mailer.send(invoice.address(), invoice.number());
    }

    @JobHandler("remind_debtors")
    @CronJob(value = "0 8 * * 1-5", zone = "Europe/Berlin", fill = "1d")
    void remind() {
        mailer.remindDebtors();
    }
}
