package dev.pgworker.samples.testing;

import java.time.Duration;

import org.junit.jupiter.api.Test;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.test.context.bean.override.mockito.MockitoBean;

import dev.pgworker.test.AutoConfigureTestWorker;
import dev.pgworker.test.TestWorker;

import static org.assertj.core.api.Assertions.assertThat;
import static org.mockito.Mockito.verify;

@SpringBootTest
@AutoConfigureTestWorker(clearBeforeEach = true)
class EmbeddedPostgresTest implements OnEmbeddedPostgres {

    @Autowired
    TestWorker worker;

    @Autowired
    OrderService orders;

    @MockitoBean
    Mailer mailer;

    @Test
    void confirmsAtOnceAndRemindsAfterThreeDays() {
        orders.place(new Order(42, "ada@example.org"));

        assertThat(worker.runDue()).hasSize(1).allCompleted();
        verify(mailer).send("ada@example.org", "We have your order 42");

        worker.advance(Duration.ofDays(3));

        assertThat(worker.runDue()).hasRun(OrderService.REMIND).isCompleted();
        verify(mailer).send("ada@example.org", "Your order 42 is ready");
    }
}
