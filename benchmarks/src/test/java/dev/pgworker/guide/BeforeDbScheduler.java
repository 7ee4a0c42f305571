package dev.pgworker.guide;

import java.time.Duration;
import java.time.Instant;
import java.time.ZoneId;

import com.github.kagkarlsson.scheduler.SchedulerClient;
import com.github.kagkarlsson.scheduler.task.FailureHandler;
import com.github.kagkarlsson.scheduler.task.TaskDescriptor;
import com.github.kagkarlsson.scheduler.task.helper.OneTimeTask;
import com.github.kagkarlsson.scheduler.task.helper.RecurringTask;
import com.github.kagkarlsson.scheduler.task.helper.Tasks;
import com.github.kagkarlsson.scheduler.task.schedule.Schedules;
import org.springframework.context.annotation.Bean;

/** db-scheduler, as the page on it begins with. */
final class BeforeDbScheduler {

    private final SchedulerClient scheduler;

    BeforeDbScheduler(SchedulerClient scheduler) {
        this.scheduler = scheduler;
    }

    record Invoice(String number, String address) {}

    static final TaskDescriptor<Invoice> SEND_INVOICE = TaskDescriptor.of("send_invoice", Invoice.class);

    @Bean
    OneTimeTask<Invoice> sendInvoice(Mailer mailer) {
        return Tasks.oneTime(SEND_INVOICE)
                .onFailure(FailureHandler.<Invoice>maxRetries(4)
                        .withBackoff(Duration.ofSeconds(10), 2.0)
                        .thenRemove())
                .execute((instance, context) -> {
                    Invoice invoice = instance.getData();
                    mailer.send(invoice.address(), invoice.number());
                });
    }

    @Bean
    RecurringTask<Void> remindDebtors(Mailer mailer) {
        return Tasks.recurring("remind_debtors", Schedules.cron("0 0 8 * * MON-FRI", ZoneId.of("Europe/Berlin")))
                .execute((instance, context) -> mailer.remindDebtors());
    }

    void issue(Invoice invoice) {
        scheduler.scheduleIfNotExists(
                SEND_INVOICE.instance(invoice.number()).data(invoice).build(),
                Instant.now().plus(Duration.ofMinutes(10)));
    }

    void cancel(String number) {
        scheduler.cancel(SEND_INVOICE.instanceId(number));
    }
}
