package dev.pgworker.samples.dashboard;

import java.math.BigDecimal;
import java.time.Duration;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.random.RandomGenerator;

import org.springframework.scheduling.annotation.Scheduled;
import org.springframework.stereotype.Component;

import dev.pgworker.job.JobKeyMode;
import dev.pgworker.job.JobScheduler;
import dev.pgworker.job.JobSpec;
import dev.pgworker.samples.dashboard.Jobs.Charge;
import dev.pgworker.samples.dashboard.Jobs.Customer;
import dev.pgworker.samples.dashboard.Jobs.Invoice;
import dev.pgworker.samples.dashboard.Jobs.Item;
import dev.pgworker.samples.dashboard.Jobs.Label;
import dev.pgworker.samples.dashboard.Jobs.Order;
import dev.pgworker.samples.dashboard.Jobs.Reminder;

import static dev.pgworker.samples.dashboard.Jobs.CHARGE_CARD;
import static dev.pgworker.samples.dashboard.Jobs.CONFIRM_ORDER;
import static dev.pgworker.samples.dashboard.Jobs.PRINT_LABEL;
import static dev.pgworker.samples.dashboard.Jobs.REMIND_UNPAID;
import static dev.pgworker.samples.dashboard.Jobs.SEND_INVOICE;

/** They order all the time. Each order adds several jobs. */
@Component
class Customers {

    private static final List<String> NAMES = List.of(
            "Ada Lovelace", "Grace Hopper", "Alan Turing", "Edsger Dijkstra", "Barbara Liskov", "Radia Perlman");
    private static final List<String> COUNTRIES = List.of("GB", "US", "DE", "NL", "SE", "JP");
    private static final List<Item> ITEMS = List.of(
            new Item("TEA-DARJ-250", "Darjeeling, 250 g", 1, new BigDecimal("14.90")),
            new Item("POT-BLUE-08", "Teapot, blue, 0.8 l", 1, new BigDecimal("39.00")),
            new Item("CUP-PORC-04", "Cups, porcelain, set of 4", 2, new BigDecimal("28.50")),
            new Item("KET-STEEL-1", "Kettle, steel, 1 l", 1, new BigDecimal("64.00")));

    private final JobScheduler jobs;
    private final RandomGenerator random;
    private final AtomicInteger orders = new AtomicInteger(10_480);

    Customers(JobScheduler jobs, RandomGenerator random) {
        this.jobs = jobs;
        this.random = random;
    }

    @Scheduled(fixedDelayString = "${shop.order-every}")
    void order() {
        Order order = order("SO-" + orders.incrementAndGet());
        Customer customer = order.customer();
        jobs.addJob(CONFIRM_ORDER, order, JobSpec.builder().priority(-10).build());
        String card = random.nextInt(25) == 0 ? "4000 **** **** 0002" : "4242 **** **** " + random.nextInt(1000, 9999);
        jobs.addJob(CHARGE_CARD, new Charge(order.number(), card, order.total(), order.currency()));
        // Once in a while a partner orders for all of its customers: their invoices queue up.
        int invoices = random.nextInt(40) == 0 ? 40 : 1;
        for (int i = 0; i < invoices; i++) {
            invoice(order);
        }
        jobs.addJob(
                PRINT_LABEL,
                new Label(order.number(), "parcel", random.nextInt(5, 80) / 10.0),
                JobSpec.builder().jobKey("label:" + orders.get() % 12).build());
        // Each further order of a customer puts the reminder off.
        jobs.addJob(
                REMIND_UNPAID,
                new Reminder(customer.id(), List.of(order.number())),
                JobSpec.builder()
                        .jobKey("reminder:" + customer.id())
                        .jobKeyMode(JobKeyMode.REPLACE)
                        .runIn(Duration.ofDays(14))
                        .build());
    }

    private void invoice(Order order) {
        jobs.addJob(
                SEND_INVOICE,
                new Invoice(order.number(), order.customer().name(), order.total(), "en"),
                JobSpec.builder().queueName("invoices").build());
    }

    private Order order(String number) {
        int customer = random.nextInt(NAMES.size());
        String name = NAMES.get(customer);
        List<Item> items = ITEMS.subList(0, 1 + random.nextInt(ITEMS.size()));
        BigDecimal total = items.stream()
                .map(item -> item.price().multiply(BigDecimal.valueOf(item.quantity())))
                .reduce(BigDecimal.ZERO, BigDecimal::add);
        return new Order(
                number,
                new Customer(
                        2000 + customer,
                        name,
                        name.toLowerCase(Locale.ROOT).replace(' ', '.') + "@example.com",
                        COUNTRIES.get(customer)),
                items,
                total,
                "EUR");
    }
}
