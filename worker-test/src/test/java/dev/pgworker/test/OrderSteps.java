package dev.pgworker.test;

import java.time.Duration;

import org.springframework.stereotype.Component;

import dev.pgworker.step.JobSignals;
import dev.pgworker.step.JobSteps;
import dev.pgworker.task.JobHandler;

/** The code of docs/steps.md: an order that is charged. */
final class OrderSteps {

    private OrderSteps() {}

    record Order(long id, long cents) {}

    record Charge(String reference) {}

    record Approval(String by) {}

    interface Payments {

        Charge charge(Order order, String idempotencyKey);
    }

    interface Bookings {

        void save(Order order, Charge charge, Approval approval);
    }

    interface Mails {

        void thank(Order order);
    }

    @Component
    static class OrderHandler {

        private final Payments payments;
        private final Bookings bookings;
        private final Mails mails;

        OrderHandler(Payments payments, Bookings bookings, Mails mails) {
            this.payments = payments;
            this.bookings = bookings;
            this.mails = mails;
        }

        @JobHandler("order")
        void order(Order order, JobSteps steps) {
            Charge charge = steps.run("charge", Charge.class, step -> payments.charge(order, step.idempotencyKey()));
            Approval approval = steps.await("approval-" + order.id(), Approval.class, Duration.ofDays(7));
            steps.inTransaction("book", () -> bookings.save(order, charge, approval));
            steps.sleep("cool-down", Duration.ofHours(1));
            steps.run("thank", step -> mails.thank(order));
        }
    }

    @Component
    static class Approvals {

        private final JobSignals signals;

        Approvals(JobSignals signals) {
            this.signals = signals;
        }

        void approve(long order, String user) {
            signals.send("approval-" + order, new Approval(user));
        }
    }
}
