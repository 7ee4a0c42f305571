package dev.pgworker.samples.outbox;

import java.util.Optional;

import org.springframework.jdbc.core.simple.JdbcClient;
import org.springframework.stereotype.Service;
import org.springframework.transaction.annotation.Transactional;

import dev.pgworker.job.JobScheduler;
import dev.pgworker.job.JobSpec;
import dev.pgworker.job.Task;

/** Stores orders and, in the same transaction, the jobs that tell the broker about them. */
@Service
class OrderService {

    record ChangedOrder(long id) {}

    static final Task<ChangedOrder> PUBLISH_ORDER = Task.of("publish_order", ChangedOrder.class);

    private final JdbcClient jdbc;
    private final JobScheduler jobs;

    OrderService(JdbcClient jdbc, JobScheduler jobs) {
        this.jdbc = jdbc;
        this.jobs = jobs;
    }

    @Transactional
    Order place(NewOrder order) {
        Order placed = jdbc.sql("insert into orders (customer, item) values (?, ?) returning *")
                .params(order.customer(), order.item())
                .query(Order.class)
                .single();
        publishLater(placed);
        return placed;
    }

    @Transactional
    Optional<Order> ship(long id) {
        Optional<Order> shipped = jdbc.sql("""
                        update orders set status = 'shipped', change = nextval('order_change')
                        where id = ? and status = 'placed' returning *
                        """).param(id).query(Order.class).optional();
        shipped.ifPresent(this::publishLater);
        return shipped;
    }

    /** One job for an order however often it changes until then, and one at a time for a customer. */
    private void publishLater(Order order) {
        JobSpec spec = JobSpec.builder()
                .queueName("customer:" + order.customer())
                .jobKey("order:" + order.id())
                .build();
        jobs.addJob(PUBLISH_ORDER, new ChangedOrder(order.id()), spec);
    }
}
