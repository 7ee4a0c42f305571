package dev.pgworker.samples.testing;

import java.time.Duration;

import org.junit.jupiter.api.Test;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.jdbc.test.autoconfigure.JdbcTest;
import org.springframework.context.annotation.Import;

import dev.pgworker.test.AutoConfigureTestWorker;
import dev.pgworker.test.TestWorker;

import static org.assertj.core.api.Assertions.assertThat;

@JdbcTest
@Import(OrderService.class)
@AutoConfigureTestWorker(clearBeforeEach = true)
class OrdersInATransactionTest implements OnEmbeddedPostgres {

    @Autowired
    TestWorker worker;

    @Autowired
    OrderService orders;

    @Test
    void placesAnOrder() {
        Order order = new Order(42, "ada@example.org");

        orders.place(order);

        assertThat(worker.jobs()).hasSize(2);
        assertThat(worker.jobs())
                .hasEnqueued(OrderService.CONFIRM)
                .withPayload(order)
                .inQueue("mail")
                .due();
        assertThat(worker.jobs())
                .hasEnqueued(OrderService.REMIND)
                .withPayload(order)
                .withKey("remind-42")
                .dueIn(Duration.ofDays(3));
    }
}
