package dev.pgworker.samples.testing;

import org.junit.jupiter.api.Test;

import dev.pgworker.test.TestJobContext;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.mockito.ArgumentMatchers.any;
import static org.mockito.Mockito.doThrow;
import static org.mockito.Mockito.mock;
import static org.mockito.Mockito.verify;

/** A handler without any database. */
class OrderHandlersTest {

    final Mailer mailer = mock();
    final OrderHandlers handlers = new OrderHandlers(mailer);

    @Test
    void sendsAMail() throws Exception {
        TestJobContext.of(OrderService.CONFIRM, new Order(42, "ada@example.org"))
                .run(handlers);

        verify(mailer).send("ada@example.org", "We have your order 42");
    }

    @Test
    void theLastAttemptHasSomebodyCall() {
        doThrow(new IllegalStateException("no mail today")).when(mailer).send(any(), any());
        Order order = new Order(42, "ada@example.org");
        TestJobContext context = TestJobContext.builder(OrderService.CONFIRM, order)
                .lastAttempt()
                .build();

        assertThatThrownBy(() -> handlers.confirm(order, context)).hasMessage("no mail today");

        assertThat(context.addedJobs()).hasEnqueued("call-customer").withPayload(order);
    }
}
