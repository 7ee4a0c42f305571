package dev.pgworker.samples.testing;

import org.junit.jupiter.api.Test;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.boot.testcontainers.service.connection.ServiceConnection;
import org.testcontainers.junit.jupiter.Container;
import org.testcontainers.junit.jupiter.Testcontainers;
import org.testcontainers.postgresql.PostgreSQLContainer;

import dev.pgworker.test.AutoConfigureTestWorker;
import dev.pgworker.test.TestWorker;

import static org.assertj.core.api.Assertions.assertThat;

@SpringBootTest
@Testcontainers(disabledWithoutDocker = true)
@AutoConfigureTestWorker
class ContainerTest {

    @Container
    @ServiceConnection
    static final PostgreSQLContainer postgres = new PostgreSQLContainer("postgres:18");

    @Autowired
    TestWorker worker;

    @Autowired
    OrderService orders;

    @Test
    void confirmsAnOrder() {
        orders.place(new Order(42, "ada@example.org"));

        assertThat(worker.runDue()).hasRun(OrderService.CONFIRM).isCompleted();
    }
}
