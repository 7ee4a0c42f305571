package dev.pgworker.dashboard;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;

import org.awaitility.Awaitility;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.jdbc.datasource.DriverManagerDataSource;

import dev.pgworker.job.Job;
import dev.pgworker.schema.SchemaMigrator;
import dev.pgworker.schema.WorkerSchema;
import dev.pgworker.testsupport.ForeignApplication;
import dev.pgworker.testsupport.PgBouncer;
import dev.pgworker.testsupport.TestPostgres;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

/** An application with a worker and a dashboard behind PgBouncer, which gives the same sessions of the server to another application. */
@Tag("thorough")
@ExtendWith(OutputCaptureExtension.class)
class PoolerTest {

    private static final int SESSIONS = 6;

    /** Each page, often enough for the driver to prepare what it reads. */
    private static final int TIMES = 8;

    private static final List<String> PAGES = List.of(
            "overview",
            "series?window=15m&points=15",
            "jobs",
            "jobs?search=squirrel",
            "jobs/count",
            "history",
            "queues",
            "tasks",
            "crontab",
            "schedules",
            "limits",
            "workers",
            "maintenance");

    private final List<AutoCloseable> closed = new ArrayList<>();
    private final String url = TestPostgres.newDatabase("pooled");

    @AfterEach
    void close() throws Exception {
        for (int i = closed.size() - 1; i >= 0; i--) {
            closed.get(i).close();
        }
    }

    private String behind(String mode) throws IOException {
        int server = Integer.parseInt(url.replaceFirst(".*?:(\\d+)/.*", "$1"));
        PgBouncer bouncer = PgBouncer.start(server, "pages-" + mode, mode, mode.equals("session") ? 60 : SESSIONS);
        Assumptions.assumeTrue(bouncer != null, "PgBouncer is not installed");
        closed.add(bouncer);
        return ForeignApplication.unprepared(bouncer.behind(url));
    }

    private ForeignApplication foreign(String pooled) throws Exception {
        ForeignApplication foreign = ForeignApplication.start(url, pooled, 3);
        closed.add(foreign);
        return foreign;
    }

    private Application application(String pooled, String... properties) {
        Application application = Application.unsecured(
                List.of(Handlers.class),
                Application.with(
                        List.of(
                                "spring.datasource.url=" + pooled,
                                "pgworker.dashboard.allow-actions=true",
                                "pgworker.history.enabled=true",
                                "pgworker.statistics.enabled=true"),
                        properties));
        closed.add(application);
        return application;
    }

    @ParameterizedTest
    @ValueSource(strings = {"session", "transaction"})
    void pagesAndActionsLeaveNothing(String mode) throws Exception {
        String pooled = behind(mode);
        ForeignApplication foreign = foreign(pooled);
        Application application = application(pooled, "pgworker.listen.url=" + (mode.equals("session") ? pooled : url));
        for (int i = 0; i < 20; i++) {
            application.jobs().addJob("quick");
        }
        Job kept = application.jobs().addJob("elsewhere");
        Http http = application.api().withCsrf();
        try (Events tab = Events.open(application.port(), "/pgworker/api/default/live?ids=" + kept.id())) {
            for (int i = 0; i < TIMES; i++) {
                PAGES.forEach(page -> http.json("/default/" + page));
                http.json("/default/jobs/" + kept.id());
                tab.await("overview", data -> true);
            }
            http.json("/default/jobs/run-now", "{\"ids\":[" + kept.id() + "]}");
            http.json("/default/jobs/fail", "{\"ids\":[" + kept.id() + "],\"reason\":\"a test\"}");
            http.json("/default/crontab/pause", "{\"identifier\":\"nightly\"}");
            http.json("/default/crontab/resume", "{\"identifier\":\"nightly\"}");
            String selection = http.json("/default/bulk/preview", "{\"action\":\"remove\",\"filter\":{}}")
                    .path("selection")
                    .asString();
            http.json("/default/bulk", "{\"action\":\"remove\",\"selection\":\"" + selection + "\"}");
            tab.await("bulk", data -> !data.path("state").asString().equals("running"));
            http.json("/default/cleanup", "{\"tasks\":[\"gc_job_queues\"]}");
            http.json("/default/sweep", "{}");
        }
        Awaitility.await()
                .until(() -> application
                                .queries()
                                .count(dev.pgworker.job.JobQuery.ALL)
                                .total()
                        == 0);
        closed.remove(application);
        application.close();
        if (mode.equals("transaction")) {
            foreign.lookAtSessions(SESSIONS);
        }
        assertThat(foreign.seen()).isEmpty();
    }

    @Test
    void aPoolerWithoutTransactionsStopsTheStart() throws Exception {
        String pooled = behind("statement");
        ForeignApplication foreign = foreign(pooled);

        assertThatThrownBy(() -> application(pooled))
                .rootCause()
                .hasMessageContaining("allows no transactions")
                .hasMessageContaining("pool_mode=transaction");
        assertThat(foreign.seen()).isEmpty();
    }

    /** The start that looks at nothing does not fail. */
    @Test
    void aPoolerWithoutTransactionsIsToldWhereNothingIsLookedAt(CapturedOutput output) throws Exception {
        String pooled = behind("statement");
        ForeignApplication foreign = foreign(pooled);
        String schema = Application.newSchema();
        new SchemaMigrator(new DriverManagerDataSource(url), new WorkerSchema(schema)).migrate();

        Application application = application(
                pooled, "pgworker.schema.name=" + schema, "pgworker.schema.mode=none", "pgworker.listen.url=" + url);

        Awaitility.await()
                .until(() -> output.getAll()
                        .contains("The connection pooler allows no transactions: use pool_mode=transaction"));
        assertThat(application.api().get("/default/overview").statusCode()).isEqualTo(503);
        assertThat(foreign.seen()).isEmpty();
    }
}
