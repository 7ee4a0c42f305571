package dev.pgworker.samples.dashboard;

import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

import org.awaitility.Awaitility;
import org.junit.jupiter.api.Test;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.boot.test.context.SpringBootTest.WebEnvironment;
import org.springframework.boot.test.context.TestConfiguration;
import org.springframework.boot.test.web.server.LocalServerPort;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Import;
import org.springframework.test.annotation.DirtiesContext;
import org.springframework.test.context.DynamicPropertyRegistry;
import org.springframework.test.context.DynamicPropertySource;

import dev.pgworker.event.WorkerEvent.JobCompleted;
import dev.pgworker.event.WorkerEvent.JobFailed;
import dev.pgworker.event.WorkerEvent.OfJob;
import dev.pgworker.event.WorkerEventListener;
import dev.pgworker.job.JobQueries;
import dev.pgworker.job.JobQuery;
import dev.pgworker.job.JobState;
import dev.pgworker.schedule.RecurringJobs;
import dev.pgworker.testsupport.TestPostgres;

import static org.assertj.core.api.Assertions.assertThat;

/** Jobs of every kind happen. */
@SpringBootTest(
        webEnvironment = WebEnvironment.RANDOM_PORT,
        properties = {"shop.order-every=20ms", "shop.step=1ms"})
@Import(DashboardSampleTest.Recording.class)
@DirtiesContext
class DashboardSampleTest {

    private static final String DATABASE = TestPostgres.newDatabase("dashboard");

    @LocalServerPort
    int port;

    @Autowired
    JobQueries queries;

    @Autowired
    RecurringJobs recurring;

    @Autowired
    Map<Class<?>, Set<String>> tasksOf;

    @DynamicPropertySource
    static void database(DynamicPropertyRegistry registry) {
        registry.add("spring.datasource.url", () -> DATABASE);
    }

    @TestConfiguration(proxyBeanMethods = false)
    static class Recording {

        @Bean
        Map<Class<?>, Set<String>> tasksOf() {
            return new ConcurrentHashMap<>();
        }

        @Bean
        WorkerEventListener listener(Map<Class<?>, Set<String>> tasksOf) {
            return event -> {
                if (event instanceof OfJob ofJob) {
                    tasksOf.computeIfAbsent(event.getClass(), type -> ConcurrentHashMap.newKeySet())
                            .add(ofJob.job().taskIdentifier());
                }
            };
        }
    }

    @Test
    void jobsSucceedFailAndWait() {
        Awaitility.await().untilAsserted(() -> {
            assertThat(tasksOf.get(JobCompleted.class))
                    .contains("confirm_order", "charge_card", "send_invoice", "resize_photos", "import_catalog");
            assertThat(tasksOf.get(JobFailed.class)).contains("charge_card");
            assertThat(waiting("print_shipping_label", JobState.READY)).isPositive();
            assertThat(waiting("rebuild_search_index", JobState.READY)).isEqualTo(1);
            assertThat(waiting("remind_unpaid", JobState.SCHEDULED)).isPositive();
            assertThat(waiting("charge_card", JobState.FAILED)).isPositive();
            assertThat(waiting("charge_card", JobState.RETRYING)).isPositive();
        });
        assertThat(recurring.find("clear-carts").orElseThrow().isPaused()).isTrue();
    }

    @Test
    void theDashboardShowsThem() throws Exception {
        assertThat(get("")).contains("<title>");
        assertThat(get("api/me")).contains("\"run-now\"", "\"reports\"");
        assertThat(get("api/default/crontab"))
                .contains("stock-of-acme", "sales-report")
                .as("Each recurring job has runs of its own to show")
                .doesNotContain("Several recurring jobs");
        assertThat(get("api/default/schedules"))
                .contains("photos-of-the-window", "catalog-of-acme", "month-end-report", "\"declared\":true")
                .contains("Every 20 seconds", "At 18:30 on the last weekday of the month (Europe/Berlin)");
        Awaitility.await().untilAsserted(() -> {
            assertThat(get("api/default/schedules?prefix=catalog")).containsPattern("\"lastJobId\":[0-9]");
            assertThat(get("api/default/history?task=send_invoice")).contains("invoices/");
            assertThat(get("api/default/jobs?state=failed")).contains("was refused");
        });
    }

    private String get(String path) throws Exception {
        HttpResponse<String> response = HttpClient.newHttpClient()
                .send(
                        HttpRequest.newBuilder(URI.create("http://localhost:" + port + "/pgworker/" + path))
                                .build(),
                        BodyHandlers.ofString());
        assertThat(response.statusCode()).as(path).isEqualTo(200);
        return response.body();
    }

    private int waiting(String task, JobState state) {
        return queries.list(JobQuery.builder().taskIdentifier(task).state(state).build())
                .jobs()
                .size();
    }
}
