package dev.pgworker.internal.client;

import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.springframework.dao.DataAccessException;
import org.springframework.jdbc.support.JdbcTransactionManager;
import org.springframework.transaction.TransactionDefinition;
import org.springframework.transaction.support.TransactionTemplate;

import dev.pgworker.internal.store.JobRows;
import dev.pgworker.job.Job;
import dev.pgworker.job.JobRequest;
import dev.pgworker.job.JobSpec;
import dev.pgworker.testing.TestSchema;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

/** Jobs without keys are written by functions that return ids only: rows and results are those of the SQL interface. */
class PlainAddTest {

    @RegisterExtension
    final TestSchema db = new TestSchema();

    /** Every attribute on its own, all together, texts that need quoting, and the ends of every range. */
    private static final List<JobRequest> requests = List.of(
            request("plain", null, JobSpec.builder()),
            request("null", "null", JobSpec.builder()),
            request("plain", Map.of("a", List.of(1, "x")), JobSpec.builder().queueName("q")),
            request(
                    "Ünï 中文 \uD83D\uDE80",
                    "\\ \" ' , {} \u0001 \uD83D\uDE80 NULL",
                    JobSpec.builder().queueName("NULL")),
            request("NULL", "", JobSpec.builder().queueName("q \"x\" \\ {,} é").flags("NULL", "b,\"c\\", "{}", "ä")),
            request("plain", 1, JobSpec.builder().flags("long flag", "a", "b")),
            request("p", -1.5, JobSpec.builder().priority(-32_768).maxAttempts(1)),
            request("p", true, JobSpec.builder().priority(32_767).maxAttempts(32_767)),
            runAt("-4712-01-01T00:00:00Z"),
            runAt("0000-03-01T12:00:00.5Z"),
            runAt("0001-01-01T00:00:00Z"),
            runAt("1582-10-10T00:00:00.000001Z"),
            runAt("1969-12-31T23:59:59.9999994Z"),
            runAt("2026-03-29T01:30:00.1234565Z"),
            runAt("2099-12-31T23:59:59.9999999Z"),
            runAt("9999-12-31T23:59:59.999999Z"),
            runAt("+10000-01-01T00:00:00Z"),
            runAt("+294276-12-31T23:59:59Z"));

    private static JobRequest request(String task, Object payload, JobSpec.Builder spec) {
        return JobRequest.of(task, payload, spec.build());
    }

    private static JobRequest runAt(String instant) {
        return request("later", instant, JobSpec.builder().runAt(Instant.parse(instant)));
    }

    /** What is stored of the jobs with these ids, in their order; the time of the transaction reads as "now". */
    private static final String ROWS = """
            select concat_ws(' | ', v.task_identifier, coalesce(v.queue_name, '-'), j.payload::text, j.priority,
                     case when j.run_at = j.created_at then 'now' else (j.run_at at time zone 'UTC')::text end,
                     j.attempts, j.max_attempts, coalesce(j.last_error, '-'), j.updated_at = j.created_at,
                     coalesce(j.key, '-'), coalesce(j.locked_by, '-'), j.locked_at is null, j.revision,
                     coalesce(j.flags::text, '-'), j.is_available)
            from {schema}._private_jobs j join {schema}.jobs v using (id)
            where j.id = any(?) order by j.id
            """;

    private List<String> rows(List<Job> jobs) {
        Long[] ids = jobs.stream().map(Job::id).toArray(Long[]::new);
        return db.sql(ROWS).param(ids).query(String.class).list();
    }

    @Test
    void oneByOneInBulkAndThroughTheSqlInterfaceTheRowsAreTheSame() {
        List<Job> single = new ArrayList<>();
        for (JobRequest request : requests) {
            single.add(db.scheduler().addJob(request.identifier(), request.payload(), request.spec()));
        }
        List<Job> bulk = db.scheduler().addJobs(requests);
        List<Job> published = publicAddJobs();

        assertThat(rows(published)).hasSameSizeAs(requests);
        assertThat(rows(single)).isEqualTo(rows(published));
        assertThat(rows(bulk)).isEqualTo(rows(published));
        assertThat(bulk).extracting(Job::id).isSorted().doesNotHaveDuplicates();
    }

    @Test
    void jobsThatDifferInTheirPayloadsOnlyAreNoExceptions() {
        for (JobRequest request : requests) {
            Job single = db.scheduler().addJob(request.identifier(), request.payload(), request.spec());
            List<Job> bulk = db.scheduler()
                    .addJobs(List.of(request, JobRequest.of(request.identifier(), "other", request.spec()), request));

            assertThat(bulk).extracting(Job::payload).containsExactly(single.payload(), "\"other\"", single.payload());
            for (Job job : bulk) {
                assertThat(job).isEqualTo(stored(job.id()));
            }
            assertThat(rows(List.of(bulk.get(0), bulk.get(2))))
                    .containsOnly(rows(List.of(single)).get(0));
        }
    }

    /** A job with a key, taken away again, sends the whole batch through {@code add_jobs}. */
    private List<Job> publicAddJobs() {
        List<JobRequest> keyed = new ArrayList<>(requests);
        keyed.add(request("keyed", 1, JobSpec.builder().jobKey("k")));
        return db.scheduler().addJobs(keyed).subList(0, requests.size());
    }

    @Test
    void theJobReturnedIsTheOneStored() {
        List<Job> returned = new ArrayList<>(db.scheduler().addJobs(requests));
        for (JobRequest request : requests) {
            returned.add(db.scheduler().addJob(request.identifier(), request.payload(), request.spec()));
        }

        for (Job job : returned) {
            assertThat(job).isEqualTo(stored(job.id()));
        }
    }

    private Job stored(long id) {
        return db.sql("""
                        select j.id, j.payload, j.priority, j.run_at, j.attempts, j.max_attempts, j.last_error,
                               j.created_at, j.updated_at, j.key, j.locked_at, j.locked_by, j.revision, j.flags,
                               v.task_identifier, v.queue_name
                        from {schema}._private_jobs j join {schema}.jobs v using (id) where j.id = ?""")
                .param(id)
                .query((row, number) -> JobRows.addedJob(row, row.getString(15), row.getString(16)))
                .single();
    }

    @Test
    void whatTheDatabaseRefusesIsRefusedOnBothWays() {
        db.sql("alter table {schema}._private_jobs add constraint odd check (payload::text <> '7')")
                .update();

        assertThatThrownBy(() -> db.scheduler().addJob("t", 7)).isInstanceOf(DataAccessException.class);
        assertThatThrownBy(() -> db.scheduler().addJobs(List.of(JobRequest.of("t", 6), JobRequest.of("t", 7))))
                .isInstanceOf(DataAccessException.class);
        assertThat(db.jobs()).isZero();
    }

    /** The clean-up deletes names that nobody uses; a snapshot taken before must not add a job to one. */
    @Test
    void aNameDeletedAfterTheSnapshotFailsTheTransaction() {
        JobSpec queued = JobSpec.builder().queueName("q").build();
        for (boolean bulk : new boolean[] {false, true}) {
            for (Map.Entry<String, JobSpec> deletion : List.of(
                    Map.entry("_private_tasks", JobSpec.DEFAULT),
                    Map.entry("_private_tasks", queued),
                    Map.entry("_private_job_queues", queued))) {
                String deleted = deletion.getKey();
                JobSpec spec = deletion.getValue();
                db.scheduler().addJob("t", 1, spec);
                db.sql("delete from {schema}._private_jobs").update();
                TransactionTemplate transaction = new TransactionTemplate(new JdbcTransactionManager(db.dataSource()));
                transaction.setIsolationLevel(TransactionDefinition.ISOLATION_REPEATABLE_READ);

                assertThatThrownBy(() -> transaction.executeWithoutResult(status -> {
                            assertThat(db.jobs()).isZero();
                            elsewhere("delete from {schema}." + deleted);
                            if (bulk) {
                                db.scheduler().addJobs(List.of(JobRequest.of("t", 1, spec)));
                            } else {
                                db.scheduler().addJob("t", 1, spec);
                            }
                        }))
                        .as("%s, bulk: %s", deleted, bulk)
                        .hasRootCauseInstanceOf(java.sql.SQLException.class)
                        .rootCause()
                        .extracting(e -> ((java.sql.SQLException) e).getSQLState())
                        .isEqualTo("40001");
            }
        }
    }

    private void elsewhere(String statement) {
        Thread thread = new Thread(() -> db.sql(statement).update());
        thread.start();
        try {
            thread.join();
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    @Test
    void bothNotify() throws Exception {
        try (var connection = db.dataSource().getConnection()) {
            var notifications = connection.unwrap(org.postgresql.PGConnection.class);
            try (var statement = connection.createStatement()) {
                statement.execute("listen \"jobs:insert\"");
            }
            JobSpec spec =
                    JobSpec.builder().runAt(Instant.ofEpochMilli(7)).priority(3).build();
            JobSpec queued = JobSpec.builder().queueName("q").build();
            JobSpec keyed = JobSpec.builder().jobKey("k").priority(-1).build();
            db.scheduler().addJob("t", 1, spec);
            assertThat(notifications.getNotifications(10_000)[0].getParameter())
                    .endsWith(",\"count\":1,\"at\":7,\"p\":[3],\"id\":1}");
            db.scheduler().addJobs(List.of(JobRequest.of("t", 1, spec), JobRequest.of("t", 2, spec)));
            assertThat(notifications.getNotifications(10_000)[0].getParameter())
                    .endsWith(",\"count\":2,\"at\":7,\"p\":[3]}");
            db.scheduler().addJobs(List.of(JobRequest.of("t", 1), JobRequest.of("u", 2, spec)));
            assertThat(notifications.getNotifications(10_000)[0].getParameter())
                    .endsWith(",\"count\":2,\"at\":7,\"p\":[0,3]}");
            db.scheduler().addJob("t", 1, queued);
            assertThat(notifications.getNotifications(10_000)[0].getParameter()).endsWith(",\"p\":[0],\"q\":true}");
            db.scheduler().addJobs(List.of(JobRequest.of("t", 1, queued), JobRequest.of("u", 2, queued)));
            assertThat(notifications.getNotifications(10_000)[0].getParameter())
                    .contains(",\"count\":2,\"at\":")
                    .endsWith(",\"p\":[0],\"q\":true}");
            db.scheduler().addJobs(List.of(JobRequest.of("t", 1, keyed), JobRequest.of("u", 2, spec)));
            assertThat(notifications.getNotifications(10_000)[0].getParameter())
                    .endsWith(",\"count\":2,\"at\":7,\"p\":[-1,3]}");
            db.sql("select {schema}.add_job('t', run_at => '-infinity')")
                    .query((row, number) -> 1)
                    .single();
            assertThat(notifications.getNotifications(10_000)[0].getParameter())
                    .matches(".*,\"count\":1,\"p\":\\[0],\"id\":[0-9]+}");
            try (var statement = connection.createStatement()) {
                statement.execute("unlisten *");
            }
        }
    }

    @Test
    @Tag("thorough")
    void aStreamOfManyQueuesAndTasksKeepsTheirOrder() {
        int total = 200_000;

        long added = db.scheduler()
                .addJobs(IntStream.range(0, total)
                        .mapToObj(i -> request("t" + i % 7, i, JobSpec.builder().queueName("q" + i % 4_001))));

        assertThat(added).isEqualTo(total);
        assertThat(db.sql("""
                        select count(*) from (
                          select j.payload::text::int as n, row_number() over (order by j.id) - 1 as place,
                                 v.task_identifier, v.queue_name
                          from {schema}._private_jobs j join {schema}.jobs v using (id)) a
                        where n = place and task_identifier = 't' || n % 7 and queue_name = 'q' || n % 4001
                        """).query(Long.class).single()).isEqualTo(total);
    }
}
