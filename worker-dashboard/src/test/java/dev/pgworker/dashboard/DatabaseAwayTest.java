package dev.pgworker.dashboard;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.List;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import javax.sql.DataSource;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.jdbc.datasource.DriverManagerDataSource;
import tools.jackson.databind.JsonNode;

import dev.pgworker.testsupport.TestPostgres;

import static org.assertj.core.api.Assertions.assertThat;

/** What visitors see while the database is away, busy or has no connection to give; and how little reading needs. */
class DatabaseAwayTest {

    @Test
    void tabsGoOnWhenTheDatabaseIsBack() throws Exception {
        String url = TestPostgres.newDatabase("dashboard");
        try (Application application = Application.unsecured(
                        "pgworker.enabled=false",
                        "spring.datasource.url=" + url,
                        "spring.datasource.hikari.connection-timeout=1000");
                Events tab = Events.open(application.port(), "/pgworker/api/default/live")) {
            tab.await("overview", data -> true);
            String database = url.replaceAll(".*/([^?]*).*", "$1");

            execute("alter database " + database + " with allow_connections false");
            execute("select pg_terminate_backend(pid) from pg_stat_activity where datname = '" + database + "'");
            assertThat(tab.await("down", data -> true).path("error").asString())
                    .contains("The database cannot be reached");
            var answer = application.api().get("/default/queues");
            assertThat(answer.statusCode()).isEqualTo(503);
            assertThat(answer.headers().firstValue("Retry-After")).isPresent();
            assertThat(application.api().get("/me").statusCode()).isEqualTo(200);

            execute("alter database " + database + " with allow_connections true");
            tab.await("overview", data -> true);
            assertThat(application.api().get("/default/queues").statusCode()).isEqualTo(200);
        }
    }

    private static void execute(String sql) throws SQLException {
        try (Connection connection = DriverManager.getConnection(TestPostgres.jdbcUrl());
                Statement statement = connection.createStatement()) {
            statement.execute(sql);
        }
    }

    @Test
    @Tag("thorough")
    void anExhaustedPoolIsToldSoon() throws SQLException {
        try (Application application = Application.unsecured(
                        "pgworker.enabled=false", "spring.datasource.hikari.maximum-pool-size=1");
                Connection only =
                        application.context().getBean(DataSource.class).getConnection()) {
            assertThat(only.isValid(1)).isTrue();
            var answer = application.api().get("/default/overview");

            assertThat(answer.statusCode()).isEqualTo(503);
            assertThat(Http.error(answer)).contains("all connections are in use");
        }
    }

    @Test
    @Tag("thorough")
    void aReadingThatTakesLongIsEnded() throws SQLException {
        try (Application application = Application.unsecured("pgworker.enabled=false");
                Connection other = DriverManager.getConnection(TestPostgres.jdbcUrl());
                Statement statement = other.createStatement()) {
            other.setAutoCommit(false);
            statement.execute("lock table " + application.schema() + "._private_jobs in access exclusive mode");

            var answer = application.api().get("/default/jobs");

            assertThat(answer.statusCode()).isEqualTo(503);
            assertThat(Http.error(answer)).contains("took longer than a few seconds");
            other.rollback();
            assertThat(application.api().get("/default/jobs").statusCode()).isEqualTo(200);
        }
    }

    @Test
    void aLockedHistoryIsMissingFromItsPlaceAlone() throws SQLException {
        try (Application application =
                        Application.unsecured("pgworker.auto-startup=false", "pgworker.crontab=0 4 * * * a");
                Connection other = DriverManager.getConnection(TestPostgres.jdbcUrl());
                Statement statement = other.createStatement()) {
            long id = application.jobs().addJob("a").id();
            other.setAutoCommit(false);
            statement.execute("lock table " + application.schema() + ".pgworker_history in access exclusive mode");

            JsonNode job = application.api().json("/default/jobs/" + id);
            assertThat(job.path("job").path("task").asString()).isEqualTo("a");
            assertThat(job.path("historyError").asString()).contains("The history is not shown", "took longer");
            JsonNode item =
                    application.api().json("/default/crontab").path("items").path(0);
            assertThat(item.path("task").asString()).isEqualTo("a");
            assertThat(item.path("lastRunsReason").asString()).contains("The history is not shown", "took longer");
            other.rollback();
            assertThat(application
                            .api()
                            .json("/default/jobs/" + id)
                            .path("historyError")
                            .isNull())
                    .isTrue();
        }
    }

    /** They are read where workers read them, whatever the other pages read from. */
    @Test
    @Tag("thorough")
    void aReadingOfLockedLimitsIsEnded() throws SQLException {
        try (Application application = Application.unsecured(
                        List.of(Replica.class), "pgworker.enabled=false", "pgworker.dashboard.data-source=replica");
                Connection other = DriverManager.getConnection(TestPostgres.jdbcUrl());
                Statement statement = other.createStatement()) {
            other.setAutoCommit(false);
            statement.execute("lock table " + application.schema() + ".pgworker_limits in access exclusive mode");

            for (String page : List.of("/default/limits", "/default/limits/one?name=a")) {
                var answer = application.api().get(page);
                assertThat(answer.statusCode()).isEqualTo(503);
                assertThat(Http.error(answer)).contains("took longer than a few seconds");
            }
            assertThat(application.api().get("/default/jobs").statusCode()).isEqualTo(200);
        }
    }

    /** The data source to read from. */
    @Configuration(proxyBeanMethods = false)
    static class Replica {

        @Bean(defaultCandidate = false)
        DataSource replica() {
            return new DriverManagerDataSource(TestPostgres.jdbcUrl());
        }
    }

    @Test
    void aMissingSchemaIsTold() {
        try (Application application = Application.unsecured("pgworker.enabled=false", "pgworker.schema.mode=none")) {
            var answer = application.api().get("/default/jobs");

            assertThat(answer.statusCode()).isEqualTo(503);
            assertThat(Http.error(answer)).contains("pgworker.schema.mode=migrate");
        }
    }

    /** The data source to read from, whose user may do nothing else. */
    @Configuration(proxyBeanMethods = false)
    static class Viewer {

        @Bean(defaultCandidate = false)
        DataSource replica() {
            return new DriverManagerDataSource(
                    TestPostgres.jdbcUrl().replaceAll("user=[^&]*", "user=dashboard_viewer"));
        }
    }

    /** Returns what docs/schema.md grants to a viewer. */
    private static String grantsOfTheGuide(String schema) throws IOException {
        String page = Files.readString(Path.of("../docs/schema.md"));
        String begin = "-- role: viewer\n";
        String grants = page.substring(page.indexOf(begin) + begin.length());
        return grants.substring(0, grants.indexOf("```"))
                .replace("graphile_worker", schema)
                .replaceAll("\\bviewer\\b", "dashboard_viewer");
    }

    @Test
    void everyPageIsReadWithTheRightsToReadAlone() throws SQLException, IOException {
        execute("create role dashboard_viewer login");
        try (Application application = Application.unsecured(
                List.of(Viewer.class),
                "pgworker.enabled=false",
                "pgworker.dashboard.data-source=replica",
                "pgworker.dashboard.allow-actions=true")) {
            long id = application.jobs().addJob("a").id();
            var refused = application.api().get("/default/jobs");
            assertThat(refused.statusCode()).isEqualTo(503);
            assertThat(Http.error(refused)).contains("lacks a right", "permission denied");
            String grants = grantsOfTheGuide(application.schema());
            Pattern ofHistory = Pattern.compile("grant [^;]*pgworker_history[^;]*;");
            execute(ofHistory.matcher(grants).replaceAll(""));
            for (String path : List.of("overview", "jobs/" + id)) {
                var answer = application.api().get("/default/" + path);
                assertThat(answer.statusCode()).as(path + ": " + answer.body()).isEqualTo(200);
                assertThat(answer.body()).contains("The history is not shown. The database user lacks a right");
            }
            var history = application.api().get("/default/history");
            assertThat(history.statusCode()).isEqualTo(503);
            assertThat(Http.error(history)).contains("The role viewer in docs/schema.md");
            for (MatchResult grant : ofHistory.matcher(grants).results().toList()) {
                execute(grant.group());
            }

            for (String path : List.of(
                    "overview",
                    "series",
                    "jobs",
                    "jobs/count",
                    "jobs/" + id,
                    "history",
                    "queues",
                    "tasks",
                    "crontab",
                    "workers",
                    "maintenance")) {
                var answer = application.api().get("/default/" + path);
                assertThat(answer.statusCode()).as(path + ": " + answer.body()).isEqualTo(200);
            }
            Http operator = application.api().withCsrf();
            assertThat(operator.json("/default/jobs/remove", "{\"ids\":[" + id + "]}")
                            .path("changed"))
                    .hasSize(1);
        } finally {
            execute("drop owned by dashboard_viewer");
            execute("drop role dashboard_viewer");
        }
    }
}
