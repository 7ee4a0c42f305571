package dev.pgworker.samples.datasources;

import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

import org.junit.jupiter.api.Test;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.beans.factory.annotation.Qualifier;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.boot.test.context.SpringBootTest.WebEnvironment;
import org.springframework.boot.test.context.TestConfiguration;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Import;
import org.springframework.jdbc.core.simple.JdbcClient;
import org.springframework.test.annotation.DirtiesContext;
import org.springframework.test.context.DynamicPropertyRegistry;
import org.springframework.test.context.DynamicPropertySource;
import org.springframework.transaction.PlatformTransactionManager;
import org.springframework.transaction.support.TransactionTemplate;

import dev.pgworker.event.WorkerEvent.JobCompleted;
import dev.pgworker.event.WorkerEventListener;
import dev.pgworker.job.JobScheduler;
import dev.pgworker.testsupport.TestPostgres;

import static org.assertj.core.api.Assertions.assertThat;

@SpringBootTest(webEnvironment = WebEnvironment.NONE)
@Import(DataSourcesTest.Recording.class)
@DirtiesContext
class DataSourcesTest {

    private static final String MAIN = TestPostgres.newDatabase("main");
    private static final String REPORTS = TestPostgres.newDatabase("reports");

    @Autowired
    JdbcClient jdbc;

    @Autowired
    @Qualifier("reports") JdbcClient reportsJdbc;

    @Autowired
    JobScheduler jobs;

    @Autowired
    PlatformTransactionManager transactionManager;

    @Autowired
    @Qualifier("reports") PlatformTransactionManager reportsTransactionManager;

    @Autowired
    SaleService sales;

    @Autowired
    ReportService reports;

    @Autowired
    BlockingQueue<Completed> completed;

    record Completed(String worker, String task) {}

    @DynamicPropertySource
    static void databases(DynamicPropertyRegistry registry) {
        registry.add("spring.datasource.url", () -> MAIN);
        registry.add("app.reports-database.url", () -> REPORTS);
    }

    @TestConfiguration(proxyBeanMethods = false)
    static class Recording {

        @Bean
        BlockingQueue<Completed> completed() {
            return new LinkedBlockingQueue<>();
        }

        @Bean
        @Qualifier("default") WorkerEventListener mainRecorder(BlockingQueue<Completed> completed) {
            return recorder("default", completed);
        }

        @Bean
        @Qualifier("reports") WorkerEventListener reportsRecorder(BlockingQueue<Completed> completed) {
            return recorder("reports", completed);
        }

        private static WorkerEventListener recorder(String worker, BlockingQueue<Completed> completed) {
            return event -> {
                if (event instanceof JobCompleted done) {
                    completed.add(new Completed(worker, done.job().taskIdentifier()));
                }
            };
        }
    }

    @Test
    void eachWorkerRunsTheJobsOfItsDatabase() throws Exception {
        sales.sell(new Sale("Ada", "2026-11", 250));
        assertThat(nextCompleted()).isEqualTo(new Completed("default", "receipt"));

        reports.request("2026-11");
        assertThat(nextCompleted()).isEqualTo(new Completed("reports", "monthly-report"));
        assertThat(reports.find("2026-11")).contains(250L);
    }

    @Test
    void aRollbackLeavesNoJobInEitherDatabase() {
        new TransactionTemplate(transactionManager).executeWithoutResult(transaction -> {
            sales.sell(new Sale("Nobody", "1970-01", 1));
            transaction.setRollbackOnly();
        });
        new TransactionTemplate(reportsTransactionManager).executeWithoutResult(transaction -> {
            reports.request("1970-01");
            transaction.setRollbackOnly();
        });

        assertThat(sales.total("1970-01")).isZero();
        assertThat(jobs(jdbc)).isZero();
        assertThat(jobs(reportsJdbc)).isZero();
    }

    /** The transaction is not one of the database that the job is added to. */
    @Test
    void aRollbackOfTheOtherDatabaseLeavesTheJob() throws Exception {
        new TransactionTemplate(reportsTransactionManager).executeWithoutResult(transaction -> {
            jobs.addJob(SaleService.RECEIPT, new SaleService.Receipt("Grace", 1));
            transaction.setRollbackOnly();
        });

        assertThat(nextCompleted()).isEqualTo(new Completed("default", "receipt"));
    }

    private Completed nextCompleted() throws InterruptedException {
        Completed next = completed.poll(120, TimeUnit.SECONDS);
        assertThat(next).as("a completed job").isNotNull();
        return next;
    }

    private static int jobs(JdbcClient jdbc) {
        return jdbc.sql("select count(*) from graphile_worker.jobs")
                .query(Integer.class)
                .single();
    }
}
