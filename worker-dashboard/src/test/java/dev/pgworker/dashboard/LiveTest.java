package dev.pgworker.dashboard;

import java.io.IOException;
import java.net.InetAddress;
import java.net.Socket;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import javax.sql.DataSource;

import org.awaitility.Awaitility;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.springframework.beans.factory.config.BeanPostProcessor;
import org.springframework.context.annotation.Configuration;
import org.springframework.jdbc.datasource.DelegatingDataSource;
import tools.jackson.databind.JsonNode;

import dev.pgworker.job.Job;
import dev.pgworker.job.JobRequest;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

/** What open tabs are told, and what they cost. */
class LiveTest {

    private static final String LIVE = "/pgworker/api/default/live";

    @Test
    void tabsAreToldWhatBecomesOfTheirJobs() throws Exception {
        try (Application application = Application.unsecured(List.of(Handlers.class), "pgworker.concurrency=2")) {
            Job slow = application.jobs().addJob("slow");
            Job quick = application.jobs().addJob("elsewhere");
            try (Events tab = Events.open(application.port(), LIVE + "?ids=" + slow.id() + "," + quick.id());
                    Events other = Events.open(application.port(), LIVE)) {
                JsonNode overview = tab.await("overview", data -> true);
                assertThat(overview.path("backlog").path("ready").asInt()).isPositive();
                assertThat(overview.path("newestId").asLong()).isGreaterThanOrEqualTo(quick.id());

                JsonNode running =
                        tab.await("jobs", data -> !data.path("running").isEmpty());
                assertThat(running.path("running")
                                .get(0)
                                .path("progress")
                                .path("text")
                                .asString())
                        .isEqualTo("first part");
                application.context().getBean(Handlers.class).release();
                JsonNode gone =
                        tab.await("jobs", data -> data.path("gone").toString().equals("[" + slow.id() + "]"));
                assertThat(gone.path("running")).isEmpty();
                other.await("overview", data -> true);
                assertThat(other.count("jobs")).isZero();
            }
        }
    }

    @Test
    void tabsAreToldOfALongChange() throws Exception {
        try (Application application =
                Application.unsecured("pgworker.enabled=false", "pgworker.dashboard.allow-actions=true")) {
            application
                    .jobs()
                    .addJobs(IntStream.range(0, 5_000)
                            .mapToObj(i -> JobRequest.of("many", i))
                            .toList());
            Http http = application.api().withCsrf();
            try (Events tab = Events.open(application.port(), LIVE)) {
                tab.await("overview", data -> true);
                String selection = http.json("/default/bulk/preview", "{\"action\":\"remove\",\"filter\":{}}")
                        .path("selection")
                        .asString();
                String bulk = http.json("/default/bulk", "{\"action\":\"remove\",\"selection\":\"" + selection + "\"}")
                        .path("bulk")
                        .asString();
                http.json("/default/bulk/" + bulk + "/stop", "{}");

                JsonNode end =
                        tab.await("bulk", data -> !data.path("state").asString().equals("running"));

                int changed = end.path("changed").asInt();
                assertThat(end.path("state").asString()).isEqualTo(changed == 5_000 ? "done" : "stopped");
                assertThat(application
                                .queries()
                                .count(dev.pgworker.job.JobQuery.ALL)
                                .total())
                        .isEqualTo(5_000 - changed);
            }
        }
    }

    /** Counts the connections that an application takes from its pool. */
    @Configuration(proxyBeanMethods = false)
    static class Counting implements BeanPostProcessor {

        private final AtomicInteger taken = new AtomicInteger();

        @Override
        public Object postProcessAfterInitialization(Object bean, String name) {
            if (!(bean instanceof DataSource pool)) {
                return bean;
            }
            return new DelegatingDataSource(pool) {
                @Override
                public Connection getConnection() throws SQLException {
                    taken.incrementAndGet();
                    return super.getConnection();
                }
            };
        }
    }

    /** Twenty tabs cost what one does. */
    @Test
    @Tag("thorough")
    void allTabsAreServedByOneReading() throws Exception {
        try (Application application = Application.unsecured(List.of(Counting.class), "pgworker.enabled=false")) {
            AtomicInteger taken = application.context().getBean(Counting.class).taken;
            List<Events> tabs = new ArrayList<>();
            try {
                for (int i = 0; i < 20; i++) {
                    tabs.add(Events.open(application.port(), LIVE + "?ids=" + (i + 1)));
                }
                for (Events tab : tabs) {
                    tab.await("overview", data -> true);
                }
                Events first = tabs.get(0);
                first.drain();
                first.await("overview", data -> true);
                int before = taken.get();
                for (int i = 0; i < 3; i++) {
                    first.await("overview", data -> true);
                }
                // A busy machine may be some readings behind; each tab's own would be 60.
                assertThat(taken.get() - before).isLessThan(30);
            } finally {
                for (Events tab : tabs) {
                    tab.close();
                }
            }
        }
    }

    @Test
    @Tag("thorough")
    void theThreadEndsWithTheLastTab() throws Exception {
        try (Application application = Application.unsecured("pgworker.enabled=false")) {
            LiveHub hub = application.context().getBean(Dashboard.class).hub();
            try (Events tab = Events.open(application.port(), LIVE)) {
                tab.await("overview", data -> true);
                assertThat(threads("worker-dashboard-live")).isEqualTo(1);
            }
            await(() -> hub.clients() == 0 && threads("worker-dashboard-live") == 0);
        }
        await(() -> threads("worker-dashboard") == 0);
    }

    private static long threads(String name) {
        return Thread.getAllStackTraces().keySet().stream()
                .filter(thread -> thread.getName().startsWith(name))
                .count();
    }

    private static void await(Callable<Boolean> condition) {
        Awaitility.await().until(condition);
    }

    @Test
    @Tag("thorough")
    void aTabThatReadsNothingHindersNobody() throws Exception {
        try (Application application = Application.unsecured("pgworker.enabled=false");
                Socket deaf = new Socket(InetAddress.getLoopbackAddress(), application.port())) {
            deaf.setReceiveBufferSize(1024);
            deaf.getOutputStream().write(("GET " + LIVE + " HTTP/1.1\r\nHost: localhost\r\n\r\n").getBytes(UTF_8));
            LiveHub hub = application.context().getBean(Dashboard.class).hub();
            await(() -> hub.clients() == 1);
            try (Events tab = Events.open(application.port(), LIVE)) {
                tab.await("overview", data -> true);
                String large = "x".repeat(500_000);
                for (int i = 0; i < 40; i++) {
                    int number = i;
                    hub.publish("default", "bulk", java.util.Map.of("number", number, "text", large));
                    tab.await("bulk", data -> data.path("number").asInt() == number);
                }
            }
            // The deaf one was given up, and the other one has closed.
            await(() -> hub.clients() == 0);
        }
    }

    @Test
    void aStopEndsTheStreamsAtOnce() throws Exception {
        Application application =
                Application.unsecured("pgworker.enabled=false", "spring.lifecycle.timeout-per-shutdown-phase=30s");
        try (Events tab = Events.open(application.port(), LIVE)) {
            tab.await("overview", data -> true);
            long begin = System.nanoTime();
            application.close();
            tab.await("closed", data -> true);

            assertThat(Duration.ofNanos(System.nanoTime() - begin)).isLessThan(Duration.ofSeconds(25));
        }
    }

    @Test
    void thereIsALimitOfTabs() throws IOException, InterruptedException {
        try (Application application = Application.unsecured("pgworker.enabled=false")) {
            LiveHub hub = application.context().getBean(Dashboard.class).hub();
            List<Events> tabs = new ArrayList<>();
            try {
                // Streams end by themselves: a slow machine opens more than the limit before one is refused.
                Events.Event first;
                do {
                    Events tab = Events.open(application.port(), LIVE);
                    tabs.add(tab);
                    first = tab.awaitAny();
                    assertThat(hub.clients()).isLessThanOrEqualTo(LiveHub.MOST_CLIENTS);
                } while (!first.name().equals("refused"));

                assertThat(tabs).hasSizeGreaterThan(LiveHub.MOST_CLIENTS);
                assertThat(first.data().toString()).contains("100 tabs");
                assertThat(application.api().get("/me").statusCode()).isEqualTo(200);
            } finally {
                for (Events tab : tabs) {
                    tab.close();
                }
            }
        }
    }
}
