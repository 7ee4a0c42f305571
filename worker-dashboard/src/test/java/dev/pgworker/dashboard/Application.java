package dev.pgworker.dashboard;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;

import org.springframework.boot.WebApplicationType;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.boot.web.server.context.WebServerApplicationContext;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Configuration;
import org.springframework.jdbc.core.simple.JdbcClient;
import org.springframework.jdbc.datasource.DriverManagerDataSource;

import dev.pgworker.autoconfigure.WorkerInstances;
import dev.pgworker.job.JobChanges;
import dev.pgworker.job.JobQueries;
import dev.pgworker.job.JobScheduler;
import dev.pgworker.testsupport.TestPostgres;

/** An application with a dashboard on a real server, on a free port of this machine, with a schema of its own. */
final class Application implements AutoCloseable {

    private static final AtomicInteger counter = new AtomicInteger();

    private static final String WITHOUT_SECURITY = "spring.autoconfigure.exclude="
            + "org.springframework.boot.security.autoconfigure.SecurityAutoConfiguration,"
            + "org.springframework.boot.security.autoconfigure.UserDetailsServiceAutoConfiguration,"
            + "org.springframework.boot.security.autoconfigure.web.servlet.SecurityFilterAutoConfiguration,"
            + "org.springframework.boot.security.autoconfigure.web.servlet.ServletWebSecurityAutoConfiguration";

    private final String schema;
    private final ConfigurableApplicationContext context;

    private Application(String schema, ConfigurableApplicationContext context) {
        this.schema = schema;
        this.context = context;
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    static class Plain {}

    static String newSchema() {
        return "d" + ProcessHandle.current().pid() + "_" + counter.incrementAndGet();
    }

    /** Starts an application that nobody signs in to. */
    static Application unsecured(String... properties) {
        return unsecured(List.of(), properties);
    }

    static Application unsecured(List<Class<?>> configurations, String... properties) {
        return start(
                newSchema(), configurations, with(List.of(WITHOUT_SECURITY, "server.address=127.0.0.1"), properties));
    }

    /** Starts an application with Spring Security. */
    static Application secured(List<Class<?>> configurations, String... properties) {
        return start(newSchema(), configurations, with(List.of(), properties));
    }

    static String[] with(List<String> some, String... others) {
        List<String> all = new ArrayList<>(some);
        all.addAll(List.of(others));
        return all.toArray(String[]::new);
    }

    static String[] withoutSecurity(String... properties) {
        return with(List.of(WITHOUT_SECURITY), properties);
    }

    static Application start(String schema, List<Class<?>> configurations, String... properties) {
        List<Class<?>> all = new ArrayList<>(configurations);
        all.add(Plain.class);
        List<String> given = new ArrayList<>(List.of(
                "spring.datasource.url=" + TestPostgres.jdbcUrl(),
                "spring.datasource.hikari.minimum-idle=0",
                "spring.datasource.hikari.maximum-pool-size=12",
                "spring.main.banner-mode=off",
                "pgworker.schema.name=" + schema,
                "pgworker.dashboard.enabled=true",
                "server.port=0"));
        given.addAll(List.of(properties));
        return new Application(
                schema,
                new SpringApplicationBuilder(all.toArray(Class[]::new))
                        .web(WebApplicationType.SERVLET)
                        .properties(given.toArray(String[]::new))
                        .run());
    }

    Http http() {
        return new Http("http://localhost:" + port());
    }

    /** Returns requests to the dashboard's data, of the default worker. */
    Http api() {
        return new Http("http://localhost:" + port() + "/pgworker/api");
    }

    int port() {
        return ((WebServerApplicationContext) context).getWebServer().getPort();
    }

    ConfigurableApplicationContext context() {
        return context;
    }

    JobScheduler jobs() {
        return context.getBean(WorkerInstances.class).get("default").jobScheduler();
    }

    JobQueries queries() {
        return context.getBean(WorkerInstances.class).get("default").jobQueries();
    }

    JobChanges changes() {
        return context.getBean(WorkerInstances.class).get("default").jobChanges();
    }

    String schema() {
        return schema;
    }

    /** Returns a statement, outside the application, in which {schema} stands for the schema's name. */
    JdbcClient.StatementSpec sql(String text) {
        return JdbcClient.create(new DriverManagerDataSource(TestPostgres.jdbcUrl()))
                .sql(text.replace("{schema}", schema));
    }

    @Override
    public void close() {
        context.close();
        sql("drop schema if exists {schema} cascade").update();
    }
}
