package dev.pgworker.samples.testing;

import java.time.Duration;

import org.junit.jupiter.api.Test;

import dev.pgworker.test.TestJobScheduler;

import static org.assertj.core.api.Assertions.assertThat;

/** What adds jobs, without any database. */
class OrderServiceTest {

    @Test
    void placesAnOrder() {
        TestJobScheduler jobs = new TestJobScheduler();

        new OrderService(jobs).place(new Order(42, "ada@example.org"));

        assertThat(jobs.jobs()).hasEnqueued(OrderService.REMIND).dueIn(Duration.ofDays(3));
    }
}
