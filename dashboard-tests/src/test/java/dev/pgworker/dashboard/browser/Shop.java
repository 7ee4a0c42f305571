package dev.pgworker.dashboard.browser;

import java.net.SocketTimeoutException;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;

import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import org.springframework.jdbc.core.simple.JdbcClient;
import tools.jackson.databind.JsonNode;

import dev.pgworker.autoconfigure.WorkerInstances;
import dev.pgworker.flow.JobFlows;
import dev.pgworker.job.JobQueries;
import dev.pgworker.job.JobScheduler;
import dev.pgworker.limit.JobLimits;
import dev.pgworker.schedule.RecurringJobs;
import dev.pgworker.task.JobContext;
import dev.pgworker.task.JobHandler;

/** An application with the dashboard, and with handlers that do what a test wants. */
final class Shop implements AutoCloseable {

    private static final Map<String, Object> PROPERTIES = Map.ofEntries(
            // What lies on the class path is another application's.
            Map.entry("spring.config.name", "none"),
            Map.entry("spring.main.banner-mode", "off"),
            Map.entry("server.address", "localhost"),
            Map.entry("server.port", "0"),
            Map.entry("server.shutdown", "immediate"),
            Map.entry("spring.datasource.hikari.maximum-pool-size", "15"),
            Map.entry("spring.datasource.hikari.connection-timeout", "2000"),
            Map.entry("pgworker.concurrency", "4"),
            Map.entry("pgworker.forbidden-flags", "after-hours"),
            Map.entry("pgworker.crontab", """
                    0 4 * * * send_mail ?id=nightly-mail&tz=Europe/Berlin {to: "everybody"}
                    */5 * * * * charge_card ?id=charges
                    """),
            Map.entry("pgworker.history.enabled", "true"),
            Map.entry("pgworker.statistics.enabled", "true"),
            Map.entry("pgworker.dashboard.enabled", "true"),
            Map.entry("pgworker.dashboard.allow-actions", "true"),
            Map.entry("pgworker.dashboard.payloads", "shown"),
            Map.entry("pgworker.instances.reports.concurrency", "1"),
            // Dead workers are there to be swept by hand.
            Map.entry("pgworker.recovery.enabled", "false"),
            Map.entry("pgworker.instances.reports.recovery.enabled", "false"),
            Map.entry("logging.level.root", "warn"));

    private final ConfigurableApplicationContext context;

    /** Starts one on a database; the properties are given as {@code name=value}, and take the place of the usual ones. */
    Shop(String jdbcUrl, String... properties) {
        context = new SpringApplicationBuilder(Application.class)
                .properties(PROPERTIES)
                .run(arguments(jdbcUrl, properties));
    }

    private static String[] arguments(String jdbcUrl, String... properties) {
        return java.util.stream.Stream.concat(
                        java.util.stream.Stream.of("spring.datasource.url=" + jdbcUrl), List.of(properties).stream())
                .map(property -> "--" + property)
                .toArray(String[]::new);
    }

    @Override
    public void close() {
        Handlers.mayEnd.countDown();
        context.close();
    }

    int port() {
        return Integer.parseInt(context.getEnvironment().getRequiredProperty("local.server.port"));
    }

    /** Returns where the dashboard is, with a slash at the end. */
    String dashboard() {
        return "http://localhost:" + port() + "/pgworker/";
    }

    JobScheduler jobs() {
        return context.getBean(JobScheduler.class);
    }

    JobQueries queries() {
        return context.getBean(JobQueries.class);
    }

    RecurringJobs schedules() {
        return context.getBean(WorkerInstances.class)
                .get(WorkerInstances.DEFAULT)
                .recurringJobs();
    }

    JobFlows flows() {
        return context.getBean(WorkerInstances.class)
                .get(WorkerInstances.DEFAULT)
                .jobFlows();
    }

    JobLimits limits() {
        return context.getBean(WorkerInstances.class)
                .get(WorkerInstances.DEFAULT)
                .jobLimits();
    }

    JdbcClient.StatementSpec sql(String sql) {
        return context.getBean(JdbcClient.class).sql(sql);
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    @Import(Handlers.class)
    static class Application {}

    static class Handlers {

        /** Until it is open, imports run. */
        static volatile CountDownLatch mayEnd = new CountDownLatch(1);

        @JobHandler("send_mail")
        void mail(JsonNode mail, JobContext context) {
            context.result(Map.of("sent", mail));
        }

        @JobHandler("charge_card")
        void charge(JsonNode charge) throws Exception {
            try {
                post("/v2/charges");
            } catch (SocketTimeoutException e) {
                throw new IllegalStateException("The payment gateway did not answer", e);
            }
        }

        private static void post(String path) throws SocketTimeoutException {
            throw new SocketTimeoutException("POST https://api.payments.example" + path + ": Read timed out");
        }

        @JobHandler("import_catalog")
        void importCatalog(JsonNode catalog, JobContext context) throws InterruptedException {
            context.progress(3, 10, catalog.path("progress").asString("page 3 of 10"));
            mayEnd.await();
            context.result(catalog);
        }

        /** Says what its payload says in every way in which a handler can say something. */
        @JobHandler("echo")
        void echo(JsonNode text, JobContext context) throws Exception {
            context.progress(1, 2, text.asString());
            context.result(text);
            throw new Exception(text.asString());
        }

        @JobHandler(value = "sales_report", worker = "reports")
        void report(JsonNode report) {}
    }
}
