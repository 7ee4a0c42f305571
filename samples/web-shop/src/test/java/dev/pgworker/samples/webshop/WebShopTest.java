package dev.pgworker.samples.webshop;

import java.util.List;
import java.util.Objects;
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
import org.springframework.context.annotation.Primary;
import org.springframework.jdbc.core.simple.JdbcClient;
import org.springframework.test.annotation.DirtiesContext;
import org.springframework.test.context.DynamicPropertyRegistry;
import org.springframework.test.context.DynamicPropertySource;
import org.springframework.transaction.support.TransactionTemplate;

import dev.pgworker.event.WorkerEvent.JobCompleted;
import dev.pgworker.event.WorkerEvent.JobFailed;
import dev.pgworker.event.WorkerEvent.OfJob;
import dev.pgworker.event.WorkerEventListener;
import dev.pgworker.testsupport.TestPostgres;

import static org.assertj.core.api.Assertions.assertThat;

@SpringBootTest(webEnvironment = WebEnvironment.NONE, properties = "shop.remind-after=1h")
@Import(WebShopTest.Recording.class)
@DirtiesContext
class WebShopTest {

    private static final String DATABASE = TestPostgres.newDatabase("webshop");

    @Autowired
    OrderService service;

    @Autowired
    OrderRepository orders;

    @Autowired
    JdbcClient jdbc;

    @Autowired
    TransactionTemplate transactions;

    @Autowired
    BlockingQueue<Mail> mails;

    @Autowired
    BlockingQueue<OfJob> ended;

    record Mail(String customer, String text) {}

    @DynamicPropertySource
    static void database(DynamicPropertyRegistry registry) {
        registry.add("spring.datasource.url", () -> DATABASE);
    }

    @TestConfiguration(proxyBeanMethods = false)
    static class Recording {

        @Bean
        BlockingQueue<Mail> mails() {
            return new LinkedBlockingQueue<>();
        }

        @Bean
        @Primary
        Mailer recorder(BlockingQueue<Mail> mails) {
            return (customer, text) -> mails.add(new Mail(customer, text));
        }

        @Bean
        BlockingQueue<OfJob> ended() {
            return new LinkedBlockingQueue<>();
        }

        @Bean
        WorkerEventListener listener(BlockingQueue<OfJob> ended) {
            return event -> {
                if (event instanceof JobCompleted || event instanceof JobFailed) {
                    ended.add((OfJob) event);
                }
            };
        }
    }

    @BeforeEach
    void forget() {
        mails.clear();
        ended.clear();
    }

    @Test
    void anOrderIsConfirmedAndInvoiced() throws Exception {
        Order order = service.place(new NewOrder("ada", "tea"));

        awaitCompleted(2);
        assertThat(mails).containsExactly(new Mail("ada", "Thank you for ordering tea"));
        assertThat(invoiceNumberOf(order)).isEqualTo(1);
    }

    @Test
    void aRollbackLeavesNeitherOrderNorJobs() {
        transactions.executeWithoutResult(transaction -> {
            service.place(new NewOrder("nobody", "tea"));
            assertThat(jobs()).isEqualTo(3);
            transaction.setRollbackOnly();
        });

        assertThat(orders.findByCustomerAndPaidFalseOrderById("nobody")).isEmpty();
        assertThat(remindersOf("nobody")).isZero();
        assertThat(mails).isEmpty();
    }

    @Test
    void theInvoicesOfACustomerAreNumberedWithoutGaps() throws Exception {
        List<Order> placed = transactions.execute(transaction -> List.of("tea", "cup", "pot", "milk").stream()
                .map(item -> service.place(new NewOrder("grace", item)))
                .toList());

        awaitCompleted(8);
        assertThat(placed).extracting(this::invoiceNumberOf).containsExactly(1, 2, 3, 4);
    }

    @Test
    void twoOrdersLeaveOneReminderOfWhatIsUnpaid() throws Exception {
        Order tea = service.place(new NewOrder("alan", "tea"));
        service.place(new NewOrder("alan", "cup"));
        service.place(new NewOrder("alan", "pot"));
        service.pay(Objects.requireNonNull(tea.getId()));
        awaitCompleted(6);
        mails.clear();
        assertThat(remindersOf("alan")).isEqualTo(1);

        remindNow("alan");

        awaitCompleted(1);
        assertThat(mails).containsExactly(new Mail("alan", "Please pay for cup, pot"));
    }

    @Test
    void nobodyIsRemindedOfWhatIsPaid() throws Exception {
        Order order = service.place(new NewOrder("edsger", "tea"));
        service.pay(Objects.requireNonNull(order.getId()));
        awaitCompleted(2);
        mails.clear();

        remindNow("edsger");

        awaitCompleted(1);
        assertThat(mails).isEmpty();
    }

    private void awaitCompleted(int jobs) throws InterruptedException {
        for (int i = 0; i < jobs; i++) {
            assertThat(ended.poll(120, TimeUnit.SECONDS)).isInstanceOf(JobCompleted.class);
        }
    }

    private Integer invoiceNumberOf(Order order) {
        return orders.findById(Objects.requireNonNull(order.getId()))
                .orElseThrow()
                .getInvoiceNumber();
    }

    private void remindNow(String customer) {
        jdbc.sql("""
                        select graphile_worker.reschedule_jobs(array_agg(id), run_at => now())
                        from graphile_worker.jobs where key = ?
                        """).param("reminder:" + customer).query().listOfRows();
    }

    private int remindersOf(String customer) {
        return jdbc.sql("select count(*) from graphile_worker.jobs where key = ?")
                .param("reminder:" + customer)
                .query(Integer.class)
                .single();
    }

    /** Counts those that the transaction has added. */
    private int jobs() {
        return jdbc.sql("select count(*) from graphile_worker.jobs where created_at = now()")
                .query(Integer.class)
                .single();
    }
}
