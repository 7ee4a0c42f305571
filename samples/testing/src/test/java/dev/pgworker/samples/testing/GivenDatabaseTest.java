package dev.pgworker.samples.testing;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIfEnvironmentVariable;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.test.context.SpringBootTest;

import dev.pgworker.test.AutoConfigureTestWorker;
import dev.pgworker.test.TestWorker;

import static org.assertj.core.api.Assertions.assertThat;

@SpringBootTest(properties = {"spring.datasource.url=${TEST_JDBC_URL}", "pgworker.schema.name=orders_test_worker"})
@EnabledIfEnvironmentVariable(
        named = "TEST_JDBC_URL",
        matches = ".+",
        disabledReason = "TEST_JDBC_URL does not name a database, for instance"
                + " jdbc:postgresql://localhost/test?user=me&password=secret")
@AutoConfigureTestWorker(clearBeforeEach = true)
class GivenDatabaseTest {

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
