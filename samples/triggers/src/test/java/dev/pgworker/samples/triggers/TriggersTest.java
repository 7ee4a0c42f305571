package dev.pgworker.samples.triggers;

import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.boot.test.context.SpringBootTest.WebEnvironment;
import org.springframework.boot.test.context.TestConfiguration;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Import;
import org.springframework.context.annotation.Primary;
import org.springframework.dao.DataAccessException;
import org.springframework.jdbc.core.simple.JdbcClient;
import org.springframework.test.annotation.DirtiesContext;
import org.springframework.test.context.DynamicPropertyRegistry;
import org.springframework.test.context.DynamicPropertySource;
import org.springframework.transaction.support.TransactionTemplate;

import dev.pgworker.testsupport.TestPostgres;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

@SpringBootTest(webEnvironment = WebEnvironment.NONE)
@Import(TriggersTest.Recording.class)
@DirtiesContext
class TriggersTest {

    private static final String DATABASE = TestPostgres.newDatabase("triggers");

    /** Roles belong to the whole server. */
    private static final String ROLE =
            "triggers_signup_" + ProcessHandle.current().pid();

    @Autowired
    JdbcClient jdbc;

    @Autowired
    TransactionTemplate transactions;

    @Autowired
    BlockingQueue<Mail> mails;

    record Mail(String address, String text) {}

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
            return (address, text) -> mails.add(new Mail(address, text));
        }
    }

    @AfterEach
    void nothingElseWasSent() {
        assertThat(mails).isEmpty();
    }

    @Test
    void anInsertSendsAWelcome() throws Exception {
        insert("Ada");

        assertThat(nextMail()).isEqualTo(new Mail("Ada@example.org", "Welcome, Ada"));
    }

    @Test
    void aChangeOfTheAddressAsksForConfirmation() throws Exception {
        insert("Grace");
        nextMail();

        jdbc.sql("update users set email = 'hopper@example.org' where name = 'Grace'")
                .update();

        assertThat(nextMail()).isEqualTo(new Mail("hopper@example.org", "Is this your address, Grace?"));
    }

    @Test
    void aRolledBackInsertSendsNothing() {
        OffsetDateTime begun = transactions.execute(transaction -> {
            insert("Nobody");
            assertThat(jobsOf(now())).isEqualTo(1);
            transaction.setRollbackOnly();
            return now();
        });

        assertThat(jobsOf(begun)).isZero();
    }

    /** Looks at the jobs from inside the transaction, where no worker takes them away. */
    @Test
    void anUpdateThatLeavesTheAddressAsItIsAddsNoJob() {
        transactions.executeWithoutResult(transaction -> {
            insert("Alan");
            jdbc.sql("update users set email = email, name = 'Alan Turing' where name = 'Alan'")
                    .update();

            assertThat(jobsOf(now())).isEqualTo(1);
            transaction.setRollbackOnly();
        });
    }

    @Test
    void manyRowsInOneStatementAreOneJobEach() throws Exception {
        jdbc.sql(
                        "insert into users (name, email) select 'User ' || i, i || '@example.org' from generate_series(1, 50) i")
                .update();

        List<String> addresses = new ArrayList<>();
        for (int i = 0; i < 50; i++) {
            addresses.add(nextMail().address());
        }
        assertThat(addresses)
                .containsExactlyInAnyOrderElementsOf(IntStream.rangeClosed(1, 50)
                        .mapToObj(i -> i + "@example.org")
                        .toList());
    }

    @Test
    void aRoleWithRightsOnUsersAloneCausesJobsAndCannotReachThem() throws Exception {
        jdbc.sql("create role " + ROLE).update();
        jdbc.sql("grant select, insert, update on users to " + ROLE).update();
        try {
            as(ROLE, () -> insert("Edsger"));
            assertThat(nextMail().text()).isEqualTo("Welcome, Edsger");

            assertDenied("select graphile_worker.add_job('welcome_mail', '{\"id\": 1}')");
            assertDenied("select count(*) from graphile_worker.jobs");
            assertDenied("create temp table mine (id int); create trigger t after insert on mine"
                    + " for each row execute function enqueue_job('anything')");
        } finally {
            jdbc.sql("drop owned by " + ROLE).update();
            jdbc.sql("drop role " + ROLE).update();
        }
    }

    private void assertDenied(String sql) {
        assertThatThrownBy(() -> as(ROLE, () -> jdbc.sql(sql).query().listOfRows()))
                .isInstanceOf(DataAccessException.class)
                .rootCause()
                .hasMessageContaining("permission denied");
    }

    private void as(String role, Runnable work) {
        transactions.executeWithoutResult(transaction -> {
            jdbc.sql("set local role " + role).update();
            work.run();
        });
    }

    private void insert(String name) {
        jdbc.sql("insert into users (name, email) values (?, ?)")
                .params(name, name + "@example.org")
                .update();
    }

    private Mail nextMail() throws InterruptedException {
        Mail mail = mails.poll(120, TimeUnit.SECONDS);
        assertThat(mail).as("a mail").isNotNull();
        return mail;
    }

    /** Within a transaction, the time of its beginning, which its jobs have as {@code created_at}. */
    private OffsetDateTime now() {
        return jdbc.sql("select now()").query(OffsetDateTime.class).single();
    }

    private int jobsOf(OffsetDateTime transaction) {
        return jdbc.sql("select count(*) from graphile_worker.jobs where created_at = ?")
                .param(transaction)
                .query(Integer.class)
                .single();
    }
}
