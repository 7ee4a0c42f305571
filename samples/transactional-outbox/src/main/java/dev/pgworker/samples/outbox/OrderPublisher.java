package dev.pgworker.samples.outbox;

import java.time.Duration;

import org.springframework.jdbc.core.simple.JdbcClient;
import org.springframework.stereotype.Component;

import dev.pgworker.samples.outbox.OrderService.ChangedOrder;
import dev.pgworker.task.JobControlException;
import dev.pgworker.task.JobHandler;

/** Tells the broker about changed orders. */
@Component
class OrderPublisher {

    private static final Duration UNTIL_THE_EARLIER_ONE_IS_TRIED_AGAIN = Duration.ofSeconds(1);

    private final JdbcClient jdbc;
    private final Broker broker;

    OrderPublisher(JdbcClient jdbc, Broker broker) {
        this.jdbc = jdbc;
        this.broker = broker;
    }

    /**
     * Publishes the order as it is now, once for each change. The row in {@code delivered} and the end of the job are
     * one transaction, which a failing broker rolls back.
     */
    @JobHandler(value = "publish_order", transactional = true)
    void publish(ChangedOrder changed) {
        Order order = jdbc.sql("select * from orders where id = ?")
                .param(changed.id())
                .query(Order.class)
                .single();
        // A queue goes on to its next job while a failed one waits for its retry.
        if (isPrecededByUndelivered(order)) {
            throw JobControlException.snoozeFor(UNTIL_THE_EARLIER_ONE_IS_TRIED_AGAIN);
        }
        if (recordDelivery(order)) {
            broker.publish(order);
        }
    }

    private boolean isPrecededByUndelivered(Order order) {
        return jdbc.sql("""
                        select exists (
                          select from orders o
                          where o.customer = ? and o.change < ? and not exists (
                            select from delivered d where d.order_id = o.id and d.change = o.change))
                        """)
                .params(order.customer(), order.change())
                .query(Boolean.class)
                .single();
    }

    /** Returns false if an earlier job has delivered this change already. */
    private boolean recordDelivery(Order order) {
        return jdbc.sql("insert into delivered (order_id, change) values (?, ?) on conflict do nothing")
                        .params(order.id(), order.change())
                        .update()
                == 1;
    }
}
