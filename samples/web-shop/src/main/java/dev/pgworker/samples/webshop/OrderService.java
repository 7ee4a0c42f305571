package dev.pgworker.samples.webshop;

import java.time.Duration;
import java.util.Objects;
import java.util.Optional;

import org.springframework.beans.factory.annotation.Value;
import org.springframework.stereotype.Service;
import org.springframework.transaction.annotation.Transactional;

import dev.pgworker.job.JobScheduler;
import dev.pgworker.job.JobSpec;
import dev.pgworker.job.Task;

/** Saves orders and, in the same transaction, adds the jobs that they entail. */
@Service
class OrderService {

    /** Which order a job is about: its handler loads it as it is then. */
    record OrderId(long id) {}

    record Customer(String name) {}

    static final Task<OrderId> CONFIRM_ORDER = Task.of("confirm_order", OrderId.class);
    static final Task<OrderId> INVOICE_ORDER = Task.of("invoice_order", OrderId.class);
    static final Task<Customer> REMIND_OF_PAYMENT = Task.of("remind_of_payment", Customer.class);

    private final OrderRepository orders;
    private final JobScheduler jobs;
    private final Duration remindAfter;

    OrderService(OrderRepository orders, JobScheduler jobs, @Value("${shop.remind-after}") Duration remindAfter) {
        this.orders = orders;
        this.jobs = jobs;
        this.remindAfter = remindAfter;
    }

    /** Saves the order and adds its jobs: all of it or nothing. */
    @Transactional
    Order place(NewOrder newOrder) {
        String customer = newOrder.customer();
        Order order = orders.save(new Order(customer, newOrder.item()));
        OrderId orderId = new OrderId(Objects.requireNonNull(order.getId()));

        jobs.addJob(CONFIRM_ORDER, orderId);

        // One after the other for a customer, so that the numbers have no gaps; customers do not wait for each other.
        jobs.addJob(
                INVOICE_ORDER,
                orderId,
                JobSpec.builder().queueName("customer:" + customer).build());

        // Replaces the reminder that an earlier order has left: one mail, counted from the latest order.
        jobs.addJob(
                REMIND_OF_PAYMENT,
                new Customer(customer),
                JobSpec.builder()
                        .runIn(remindAfter)
                        .jobKey("reminder:" + customer)
                        .build());
        return order;
    }

    @Transactional
    Optional<Order> pay(long id) {
        Optional<Order> order = orders.findForChangeById(id);
        order.ifPresent(Order::pay);
        return order;
    }
}
