package dev.pgworker.samples.outbox;

import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.boot.test.context.SpringBootTest.WebEnvironment;
import org.springframework.boot.test.context.TestConfiguration;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Import;
import org.springframework.jdbc.core.simple.JdbcClient;
import org.springframework.test.annotation.DirtiesContext;
import org.springframework.test.context.DynamicPropertyRegistry;
import org.springframework.test.context.DynamicPropertySource;
import org.springframework.transaction.support.TransactionTemplate;

import dev.pgworker.event.WorkerEvent;
import dev.pgworker.event.WorkerEvent.JobCompleted;
import dev.pgworker.event.WorkerEvent.JobFailed;
import dev.pgworker.event.WorkerEvent.JobSnoozed;
import dev.pgworker.event.WorkerEventListener;
import dev.pgworker.testsupport.TestPostgres;

import static org.assertj.core.api.Assertions.assertThat;

@SpringBootTest(webEnvironment = WebEnvironment.NONE)
@Import(OutboxTest.Recording.class)
@DirtiesContext
class OutboxTest {

    private static final String DATABASE = TestPostgres.newDatabase("outbox");

    @Autowired
    JdbcClient jdbc;

    @Autowired
    TransactionTemplate transactions;

    @Autowired
    OrderService orders;

    @Autowired
    InMemoryBroker broker;

    @Autowired
    BlockingQueue<WorkerEvent> events;

    @DynamicPropertySource
    static void database(DynamicPropertyRegistry registry) {
        registry.add("spring.datasource.url", () -> DATABASE);
    }

    @TestConfiguration(proxyBeanMethods = false)
    static class Recording {

        @Bean
        BlockingQueue<WorkerEvent> events() {
            return new LinkedBlockingQueue<>();
        }

        @Bean
        WorkerEventListener recorder(BlockingQueue<WorkerEvent> events) {
            return events::add;
        }
    }

    @BeforeEach
    void forgetEvents() {
        events.clear();
    }

    @Test
    void aCommittedOrderReachesTheBroker() throws Exception {
        Order order = orders.place(new NewOrder("ada", "tea"));

        await(JobCompleted.class);
        assertThat(messagesFor("ada")).containsExactly(order);
        assertThat(deliveriesOf(order)).isEqualTo(1);
    }

    @Test
    void aRollbackLeavesNeitherOrderNorJob() {
        transactions.executeWithoutResult(transaction -> {
            orders.place(new NewOrder("nobody", "tea"));
            assertThat(jobsOf("nobody")).isEqualTo(1);
            transaction.setRollbackOnly();
        });

        assertThat(ordersOf("nobody")).isZero();
        assertThat(jobsOf("nobody")).isZero();
        assertThat(messagesFor("nobody")).isEmpty();
    }

    @Test
    void changesOfAnOrderThatIsNotYetPublishedAreOneMessage() throws Exception {
        Order shipped = transactions.execute(transaction -> {
            Order placed = orders.place(new NewOrder("grace", "tea"));
            Order changed = orders.ship(placed.id()).orElseThrow();
            assertThat(jobsOf("grace")).isEqualTo(1);
            return changed;
        });

        await(JobCompleted.class);
        assertThat(messagesFor("grace")).containsExactly(shipped);
    }

    @Test
    void afterAFailureOfTheBrokerACustomersMessagesKeepTheirOrder() throws Exception {
        broker.fail(1);
        Order tea = orders.place(new NewOrder("alan", "tea"));
        Order cup = orders.place(new NewOrder("alan", "cup"));
        await(JobFailed.class);
        await(JobSnoozed.class);

        retryNow("alan");

        await(JobCompleted.class);
        await(JobCompleted.class);
        assertThat(messagesFor("alan")).containsExactly(tea, cup);
    }

    @Test
    void aFailureHoldsNobodyElseUp() throws Exception {
        broker.fail(1);
        orders.place(new NewOrder("edsger", "tea"));
        await(JobFailed.class);

        Order cup = orders.place(new NewOrder("barbara", "cup"));
        await(JobCompleted.class);
        assertThat(messagesFor("barbara")).containsExactly(cup);

        retryNow("edsger");
        await(JobCompleted.class);
    }

    @Test
    void theDeliveryOfAFailedAttemptIsRolledBackAndThatOfTheNextIsRecordedOnce() throws Exception {
        broker.fail(Integer.MAX_VALUE);
        Order order = orders.place(new NewOrder("tony", "tea"));
        await(JobFailed.class);
        assertThat(deliveriesOf(order)).isZero();

        broker.fail(0);
        retryNow("tony");

        await(JobCompleted.class);
        assertThat(deliveriesOf(order)).isEqualTo(1);
        assertThat(messagesFor("tony")).containsExactly(order);
        assertThat(jobsOf("tony")).isZero();
    }

    private void retryNow(String customer) {
        jdbc.sql("""
                        select graphile_worker.reschedule_jobs(array_agg(id), run_at => now())
                        from graphile_worker.jobs where queue_name = ?
                        """).param("customer:" + customer).query().listOfRows();
    }

    private void await(Class<? extends WorkerEvent> type) throws InterruptedException {
        WorkerEvent event;
        do {
            event = events.poll(120, TimeUnit.SECONDS);
            assertThat(event).as(type.getSimpleName()).isNotNull();
        } while (!type.isInstance(event));
    }

    private List<Order> messagesFor(String customer) {
        return broker.messages().stream()
                .filter(order -> order.customer().equals(customer))
                .toList();
    }

    private int deliveriesOf(Order order) {
        return count("select count(*) from delivered where order_id = ?", order.id());
    }

    private int ordersOf(String customer) {
        return count("select count(*) from orders where customer = ?", customer);
    }

    private int jobsOf(String customer) {
        return count("select count(*) from graphile_worker.jobs where queue_name = ?", "customer:" + customer);
    }

    private int count(String sql, Object parameter) {
        return jdbc.sql(sql).param(parameter).query(Integer.class).single();
    }
}
