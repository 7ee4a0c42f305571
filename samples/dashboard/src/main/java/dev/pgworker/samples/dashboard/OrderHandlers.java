package dev.pgworker.samples.dashboard;

import java.time.Year;
import java.time.ZoneOffset;
import java.util.Locale;
import java.util.concurrent.atomic.AtomicInteger;

import org.springframework.stereotype.Component;

import dev.pgworker.samples.dashboard.Jobs.Charge;
import dev.pgworker.samples.dashboard.Jobs.Invoice;
import dev.pgworker.samples.dashboard.Jobs.Order;
import dev.pgworker.samples.dashboard.Jobs.Reminder;
import dev.pgworker.samples.dashboard.PaymentGateway.CardRefusedException;
import dev.pgworker.samples.dashboard.PaymentGateway.Receipt;
import dev.pgworker.task.JobControlException;
import dev.pgworker.task.JobHandler;

/** What follows from an order: quick jobs, jobs of a queue, and jobs that fail because of somebody else. */
@Component
class OrderHandlers {

    private final ShopProperties shop;
    private final PaymentGateway gateway;
    private final AtomicInteger invoices = new AtomicInteger();

    OrderHandlers(ShopProperties shop, PaymentGateway gateway) {
        this.shop = shop;
        this.gateway = gateway;
    }

    @JobHandler("confirm_order")
    void confirm(Order order) throws InterruptedException {
        shop.work(1);
    }

    /** A gateway that cannot be reached is tried again; a card that is refused is not. */
    @JobHandler(value = "charge_card", maxAttempts = 6, timeout = "30s")
    Receipt charge(Charge charge) throws InterruptedException {
        shop.work(3);
        try {
            return gateway.charge(charge);
        } catch (CardRefusedException e) {
            throw JobControlException.failPermanently("The card of order " + charge.order() + " was refused", e);
        }
    }

    record SentInvoice(String number, String file) {}

    /** In a queue, because the numbers of invoices must have no gaps. */
    @JobHandler("send_invoice")
    SentInvoice invoice(Invoice invoice) throws InterruptedException {
        shop.work(9);
        String number =
                String.format(Locale.ROOT, "%d-%06d", Year.now(ZoneOffset.UTC).getValue(), invoices.incrementAndGet());
        return new SentInvoice(number, "invoices/" + number + ".pdf");
    }

    @JobHandler("remind_unpaid")
    void remind(Reminder reminder) throws InterruptedException {
        shop.work(1);
    }
}
