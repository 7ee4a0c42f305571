package dev.pgworker.samples.testing;

import org.springframework.stereotype.Component;

import dev.pgworker.crontab.CronJob;
import dev.pgworker.task.JobContext;
import dev.pgworker.task.JobHandler;

@Component
class OrderHandlers {

    private final Mailer mailer;

    OrderHandlers(Mailer mailer) {
        this.mailer = mailer;
    }

    @JobHandler("confirm")
    void confirm(Order order, JobContext context) {
        if (context.isLastAttempt()) {
            context.addJob("call-customer", order);
        }
        mailer.send(order.email(), "We have your order " + order.id());
    }

    @JobHandler("report")
    @CronJob(value = "0 7 * * *", fill = "2d")
    void report() {
        mailer.send("office@example.org", "Orders of yesterday");
    }

    @JobHandler("remind")
    void remind(Order order) {
        mailer.send(order.email(), "Your order " + order.id() + " is ready");
    }
}
