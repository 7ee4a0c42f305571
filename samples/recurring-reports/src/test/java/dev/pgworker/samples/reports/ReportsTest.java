package dev.pgworker.samples.reports;

import java.time.Duration;
import java.time.Instant;
import java.time.LocalTime;
import java.time.OffsetDateTime;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

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

import dev.pgworker.event.WorkerEvent;
import dev.pgworker.event.WorkerEvent.CronItemBehind;
import dev.pgworker.event.WorkerEvent.JobCompleted;
import dev.pgworker.event.WorkerEventListener;
import dev.pgworker.job.Job;
import dev.pgworker.schedule.Overlap;
import dev.pgworker.schedule.RecurringJob;
import dev.pgworker.schedule.RecurringJobs;
import dev.pgworker.testsupport.TestPostgres;

import static org.assertj.core.api.Assertions.assertThat;

@SpringBootTest(webEnvironment = WebEnvironment.NONE, properties = "pause=5h")
@Import({Pause.class, ReportsTest.Recording.class})
@DirtiesContext
class ReportsTest {

    private static final String DATABASE = TestPostgres.newDatabase("reports");

    @Autowired
    RecurringJobs recurring;

    @Autowired
    CustomerReports customers;

    @Autowired
    JdbcClient jdbc;

    @Autowired
    Pause pause;

    @Autowired
    BlockingQueue<WorkerEvent> events;

    record Report(OffsetDateTime until, boolean backfilled) {}

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

    @Test
    void onlyTheReportWithAFillMakesUpForAPause() throws Exception {
        List<String> behind = new ArrayList<>();
        int reports = 0;
        while (reports < 5) {
            WorkerEvent event = events.poll(120, TimeUnit.SECONDS);
            assertThat(event).as("an event before report %s", reports).isNotNull();
            if (event instanceof CronItemBehind item) {
                behind.add(item.identifier());
            }
            if (event instanceof JobCompleted done
                    && done.job().taskIdentifier().equals("hourly_report")) {
                reports++;
            }
        }

        OffsetDateTime first = pause.begin().atOffset(ZoneOffset.UTC).truncatedTo(ChronoUnit.HOURS);
        assertThat(hourlyReports().subList(0, 5))
                .containsExactly(
                        new Report(first.plusHours(1), true),
                        new Report(first.plusHours(2), true),
                        new Report(first.plusHours(3), true),
                        new Report(first.plusHours(4), true),
                        new Report(first.plusHours(5), true));
        assertThat(behind).contains("hourly_report").doesNotContain("refresh_dashboard");
    }

    @Test
    void theDailyReportGoesByTheClocksOfNewYork() {
        RecurringJob daily = recurring.find("daily_report").orElseThrow();

        assertThat(daily.nextRun().atZone(ZoneId.of("America/New_York")).toLocalTime())
                .isEqualTo(LocalTime.of(7, 30));
    }

    @Test
    void aTriggeredReportMakesUpForNothing() {
        Job job = recurring.trigger("daily_report");

        assertThat(job.payload()).contains("\"backfilled\":false");
    }

    @Test
    void aDeclaredScheduleIsKeptInTheDatabase() {
        RecurringJob figures = recurring.find("collect_figures").orElseThrow();

        assertThat(figures.origin()).isEqualTo(RecurringJob.Origin.DECLARED);
        assertThat(figures.schedule().overlap()).isEqualTo(Overlap.SKIP);
        assertThat(Duration.between(figures.schedule().next(Instant.EPOCH, 1).get(0), Instant.EPOCH))
                .isEqualTo(Duration.ofSeconds(-10));
    }

    @Test
    void customersOrderTheirReportAndCancelIt() {
        customers.order("acme", LocalTime.of(7, 30), ZoneId.of("America/New_York"));
        customers.order("acme", LocalTime.of(8, 15), ZoneId.of("Europe/Berlin"));

        RecurringJob order = recurring.find("customer_report/acme").orElseThrow();
        assertThat(order.nextRun().atZone(ZoneId.of("Europe/Berlin")).toLocalTime())
                .isEqualTo(LocalTime.of(8, 15));
        assertThat(recurring.trigger("customer_report/acme").payload()).contains("\"customer\":\"acme\"");
        assertThat(customers.cancel("acme")).isTrue();
        assertThat(recurring.find("customer_report/acme")).isEmpty();
    }

    private List<Report> hourlyReports() {
        return jdbc.sql("select until, backfilled from report where name = 'hourly' order by until")
                .query(Report.class)
                .list();
    }
}
