package dev.pgworker;

import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;

import org.awaitility.Awaitility;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.postgresql.PGConnection;
import org.postgresql.PGNotification;
import org.springframework.core.NestedExceptionUtils;
import org.springframework.dao.DataAccessException;

import dev.pgworker.job.Job;
import dev.pgworker.job.JobKeyMode;
import dev.pgworker.job.JobSpec;
import dev.pgworker.testing.ClaimSql;
import dev.pgworker.testing.OwnThread;
import dev.pgworker.testing.TestSchema;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

/** What add_job and remove_job make of a job key, in every state of the job that has it. */
class JobKeyTest {

    private static final Instant EARLY = Instant.parse("2100-01-01T00:00:00Z");
    private static final Instant LATE = Instant.parse("2100-06-01T00:00:00Z");

    @RegisterExtension
    final TestSchema db = new TestSchema();

    // Replace

    @Test
    void replaceSetsEveryAttributeAndKeepsTheRow() {
        Job old = add("old", Map.of("n", 1), full(JobKeyMode.REPLACE));
        fail(old.id(), 3);

        Job job = add(
                "new",
                Map.of("n", 2),
                JobSpec.builder()
                        .jobKey("k")
                        .queueName("other")
                        .runAt(LATE)
                        .maxAttempts(9)
                        .priority(2)
                        .flags("z"));

        assertThat(job.id()).isEqualTo(old.id());
        assertThat(row(job.id()))
                .containsEntry("task_identifier", "new")
                .containsEntry("queue_name", "other")
                .containsEntry("payload", "{\"n\":2}")
                .containsEntry("run_at", LATE.toString())
                .containsEntry("max_attempts", 9)
                .containsEntry("priority", 2)
                .containsEntry("flags", "{\"z\": true}")
                .containsEntry("revision", 1)
                .containsEntry("attempts", 0)
                .containsEntry("last_error", null)
                .containsEntry("key", "k");
        assertThat(db.jobs()).isEqualTo(1);
    }

    @Test
    void replaceResetsWhatIsOmitted() {
        Job old = add("old", Map.of("n", 1), full(JobKeyMode.REPLACE));

        Job job = add("new", null, JobSpec.builder().jobKey("k"));

        assertThat(job.id()).isEqualTo(old.id());
        assertThat(row(job.id()))
                .containsEntry("queue_name", null)
                .containsEntry("payload", "{}")
                .containsEntry("max_attempts", 25)
                .containsEntry("priority", 0)
                .containsEntry("flags", null)
                .containsEntry("revision", 1);
        assertThat(job.runAt()).isEqualTo(job.updatedAt()).isAfter(old.updatedAt());
        assertThat(job.createdAt()).isEqualTo(old.createdAt());
    }

    @Test
    void aNullModeReplaces() {
        long id = add("old", 1, full(JobKeyMode.REPLACE)).id();

        db.sql("select {schema}.add_job('new', '2', job_key := 'k', job_key_mode := null)")
                .query()
                .singleRow();

        assertThat(row(id)).containsEntry("payload", "2").containsEntry("priority", 0);
        assertThat(Instant.parse((String) row(id).get("run_at"))).isBefore(EARLY);
    }

    @Test
    void everyAddUnderAKeyThatChangesSomethingWakesTheWorkers() throws Exception {
        try (Connection connection = db.dataSource().getConnection();
                var statement = connection.createStatement()) {
            statement.execute("listen \"jobs:insert\"");
            for (JobKeyMode mode : JobKeyMode.values()) {
                String marker = "after " + mode;
                add("t", 1, JobSpec.builder().jobKey("k").jobKeyMode(mode));
                db.sql("select pg_notify('jobs:insert', ?)")
                        .param(marker)
                        .query()
                        .singleRow();
                var notifications = new java.util.ArrayList<String>();
                while (!notifications.contains(marker)) {
                    // The channel is shared by all schemas of the server; only this test runs on it now.
                    for (var n :
                            connection.unwrap(org.postgresql.PGConnection.class).getNotifications(5_000)) {
                        notifications.add(n.getParameter());
                    }
                }
                if (mode == JobKeyMode.UNSAFE_DEDUPE) {
                    assertThat(notifications).as("nothing has changed").hasSize(1);
                } else {
                    assertThat(notifications).hasSize(2).first().asString().contains("\"count\":1");
                }
            }
            statement.execute("unlisten *");
        }
    }

    // Preserve run_at

    @Test
    void preserveRunAtKeepsOnlyTheTimeOfAJobThatHasNotBeenTried() {
        long id = add("old", 1, full(JobKeyMode.REPLACE)).id();

        Job job = add("new", 2, JobSpec.builder().jobKey("k").runAt(LATE).jobKeyMode(JobKeyMode.PRESERVE_RUN_AT));

        assertThat(job.id()).isEqualTo(id);
        assertThat(job.runAt()).isEqualTo(EARLY);
        assertThat(row(id))
                .containsEntry("task_identifier", "new")
                .containsEntry("queue_name", null)
                .containsEntry("payload", "2")
                .containsEntry("priority", 0)
                .containsEntry("max_attempts", 25)
                .containsEntry("flags", null)
                .containsEntry("revision", 1);
    }

    @Test
    void preserveRunAtTakesTheNewTimeOnceTheJobHasFailed() {
        long id = add("old", 1, full(JobKeyMode.REPLACE)).id();
        fail(id, 1);

        Job job = add("new", 2, JobSpec.builder().jobKey("k").runAt(LATE).jobKeyMode(JobKeyMode.PRESERVE_RUN_AT));

        assertThat(job.id()).isEqualTo(id);
        assertThat(job.runAt()).isEqualTo(LATE);
        assertThat(row(id)).containsEntry("attempts", 0).containsEntry("last_error", null);
    }

    // Unsafe dedupe

    @Test
    void unsafeDedupeTouchesOnlyRevisionAndTime() {
        for (String state : List.of("waiting", "tried", "locked", "failed")) {
            db.sql("delete from {schema}._private_jobs").update();
            Job old = add("old", List.of(1), full(JobKeyMode.REPLACE));
            bring(old.id(), state);
            Map<String, @Nullable Object> before = row(old.id());

            Job job = add(
                    "new",
                    List.of(2),
                    JobSpec.builder().jobKey("k").queueName("q2").jobKeyMode(JobKeyMode.UNSAFE_DEDUPE));

            Map<String, @Nullable Object> after = row(old.id());
            assertThat(job.id()).isEqualTo(old.id());
            assertThat(job.taskIdentifier()).isEqualTo("old");
            assertThat(job.queueName()).isEqualTo("q");
            assertThat(job.updatedAt()).isAfter(old.updatedAt());
            assertThat(after).containsEntry("revision", 1);
            assertThat(before).containsEntry("revision", 0);
            before.remove("revision");
            after.remove("revision");
            assertThat(after).isEqualTo(before);
            assertThat(db.jobs()).isEqualTo(1);
        }
    }

    @Test
    void unsafeDedupeAddsWhereTheKeyIsFree() {
        Job job = add("t", 1, JobSpec.builder().jobKey("k").jobKeyMode(JobKeyMode.UNSAFE_DEDUPE));

        assertThat(job.revision()).isZero();
        assertThat(db.jobs()).isEqualTo(1);
    }

    // Payloads

    @Test
    void onlyTwoArraysAreMerged() {
        for (List<String> example : List.of(
                List.of("[1]", "[2,3]", "[1, 2, 3]"),
                List.of("[]", "[1]", "[1]"),
                List.of("[1]", "[]", "[1]"),
                List.of("[1]", "{\"a\":1}", "{\"a\": 1}"),
                List.of("{\"a\":1}", "[1]", "[1]"),
                List.of("[1]", "2", "2"),
                List.of("[1]", "", "{}"),
                List.of("{\"a\":1}", "{\"b\":2}", "{\"b\": 2}"))) {
            for (String mode : List.of("replace", "preserve_run_at")) {
                for (String payload : example.subList(0, 2)) {
                    db.sql("select {schema}.add_job('t', nullif(?, '')::json, job_key := ?, job_key_mode := ?)")
                            .params(payload, example + mode, mode)
                            .query()
                            .singleRow();
                }
                assertThat(db.sql("select payload::jsonb::text from {schema}._private_jobs where key = ?")
                                .param(example + mode)
                                .query(String.class)
                                .single())
                        .as(example + mode)
                        .isEqualTo(example.get(2));
            }
        }
    }

    @Test
    void theArrayOfALockedOrFailedJobIsNotMerged() {
        for (String state : List.of("locked", "failed")) {
            bring(add("t", List.of(1), JobSpec.builder().jobKey(state)).id(), state);

            Job job = add("t", List.of(2), JobSpec.builder().jobKey(state));

            assertThat(job.payload()).isEqualTo("[2]");
        }
    }

    // Locked and failed jobs

    @Test
    void aLockedJobLosesItsKeyAndItsAttemptsAndANewJobIsAdded() {
        for (int hours : List.of(0, 3, 4, 5)) {
            db.sql("delete from {schema}._private_jobs").update();
            JobKeyMode mode = hours % 2 == 0 ? JobKeyMode.REPLACE : JobKeyMode.PRESERVE_RUN_AT;
            Job old = add("old", 1, full(JobKeyMode.REPLACE));
            lock(old.id(), hours);

            Job job = add("new", 2, JobSpec.builder().jobKey("k").runAt(LATE).jobKeyMode(mode));

            assertThat(job.id()).isGreaterThan(old.id());
            assertThat(job.runAt()).isEqualTo(LATE);
            assertThat(row(job.id()))
                    .containsEntry("key", "k")
                    .containsEntry("revision", 0)
                    .containsEntry("attempts", 0);
            assertThat(row(old.id()))
                    .containsEntry("key", null)
                    .containsEntry("attempts", 5)
                    .containsEntry("max_attempts", 5)
                    .containsEntry("locked_by", "w")
                    .containsEntry("payload", "1")
                    .containsEntry("last_error", "before");
        }
    }

    @Test
    void aPermanentlyFailedJobLosesItsKeyAndANewJobIsAdded() {
        for (JobKeyMode mode : List.of(JobKeyMode.REPLACE, JobKeyMode.PRESERVE_RUN_AT)) {
            db.sql("delete from {schema}._private_jobs").update();
            Job old = add("old", 1, full(JobKeyMode.REPLACE));
            bring(old.id(), "failed");

            Job job = add("new", 2, JobSpec.builder().jobKey("k").runAt(LATE).jobKeyMode(mode));

            assertThat(job.id()).isGreaterThan(old.id());
            assertThat(row(job.id())).containsEntry("key", "k").containsEntry("revision", 0);
            assertThat(row(old.id()))
                    .containsEntry("key", null)
                    .containsEntry("attempts", 5)
                    .containsEntry("last_error", "broken");
        }
    }

    @Test
    void anAddWaitsForAClaimThatIsNotCommittedAndIsNotLost() throws Exception {
        long id = add("t", 1, JobSpec.builder().jobKey("k")).id();
        try (Connection claiming = db.dataSource().getConnection()) {
            claiming.setAutoCommit(false);
            try (var statement = claiming.createStatement()) {
                statement.execute(db.schema().in("select * from " + ClaimSql.claim("'w'", "1") + " c"));
            }
            CompletableFuture<Job> adding = CompletableFuture.supplyAsync(
                    () -> add("t", 2, JobSpec.builder().jobKey("k")), OwnThread.EACH);
            awaitSomebodyWaitsForARow();
            assertThat(adding).isNotDone();
            claiming.commit();

            Job job = adding.get(120, TimeUnit.SECONDS);
            assertThat(job.id()).isGreaterThan(id);
            assertThat(row(job.id())).containsEntry("key", "k").containsEntry("payload", "2");
        }
    }

    @Test
    void anAddWaitsForACompletionThatIsNotCommittedAndIsNotLost() throws Exception {
        long id = add("t", 1, JobSpec.builder().jobKey("k")).id();
        try (Connection completing = db.dataSource().getConnection()) {
            completing.setAutoCommit(false);
            try (var statement = completing.createStatement()) {
                statement.execute(db.schema().in("delete from {schema}._private_jobs"));
            }
            CompletableFuture<Job> adding = CompletableFuture.supplyAsync(
                    () -> add("t", 2, JobSpec.builder().jobKey("k")), OwnThread.EACH);
            awaitSomebodyWaitsForARow();
            completing.commit();

            assertThat(adding.get(120, TimeUnit.SECONDS).id()).isGreaterThan(id);
            assertThat(db.jobs()).isEqualTo(1);
        }
    }

    private void awaitSomebodyWaitsForARow() {
        Awaitility.await()
                .pollInterval(Duration.ofMillis(5))
                .until(() -> db.sql("""
                                select exists (
                                  select from pg_stat_activity
                                  where wait_event_type = 'Lock' and query like '%' || ? || '%add_job%')""")
                        .param(db.schema().name())
                        .query(Boolean.class)
                        .single());
    }

    // Removing

    @Test
    void removeDeletesAJobThatDoesNotRun() {
        for (String state : List.of("waiting", "tried", "failed", "locked")) {
            db.sql("delete from {schema}._private_jobs").update();
            int hours = state.equals("locked") ? 4 : 0;
            long id = add("t", 1, full(JobKeyMode.REPLACE)).id();
            bring(id, state);
            if (hours > 0) {
                lock(id, hours);
                db.sql("update {schema}._private_job_queues set locked_by = 'w', locked_at = now()")
                        .update();
            }

            assertThat(remove("k")).isEqualTo(id);

            assertThat(db.jobs()).isZero();
            assertThat(db.sql("select count(*) from {schema}._private_job_queues where locked_by is not null")
                            .query(Integer.class)
                            .single())
                    .isZero();
        }
    }

    @Test
    void removeOnlyKeepsARunningJobFromRunningAgain() {
        for (int hours : List.of(0, 3)) {
            db.sql("delete from {schema}._private_jobs").update();
            long id = add("t", 1, full(JobKeyMode.REPLACE)).id();
            lock(id, hours);

            assertThat(remove("k")).isEqualTo(id);

            assertThat(row(id))
                    .containsEntry("key", null)
                    .containsEntry("attempts", 5)
                    .containsEntry("locked_by", "w")
                    .containsEntry("last_error", "before");
            assertThat(remove("k")).isNull();
        }
    }

    @Test
    void removeOfAnUnknownKeyOrOfNullIsNothing() {
        add("t", 1, JobSpec.builder().jobKey("k"));

        assertThat(remove("other")).isNull();
        assertThat(remove(null)).isNull();
        assertThat(db.jobs()).isEqualTo(1);
    }

    @Test
    void aReleaseAfterRemovalOrReplacementDoesNotMakeTheJobRunAgain() {
        for (String action : List.of("retry", "back", "fail")) {
            long removed =
                    add("t", 1, JobSpec.builder().jobKey("removed" + action)).id();
            long replaced =
                    add("t", 1, JobSpec.builder().jobKey("replaced" + action)).id();
            lock(removed, 0);
            lock(replaced, 0);
            remove("removed" + action);
            add("t", 2, JobSpec.builder().jobKey("replaced" + action).runAt(LATE));

            for (long id : List.of(removed, replaced)) {
                db.sql("""
                                select count(*) from {schema}.pgworker_release('w', array[row(?::bigint,
                                  (select locked_at from {schema}._private_jobs where id = ?), ?, 0, null, null, ?, 1, null, null,
                                  null, null)::{schema}.pgworker_outcome])""")
                        .params(id, id, action, (id == removed ? "removed" : "replaced") + action)
                        .query(Integer.class)
                        .single();
                assertThat(row(id))
                        .as(action)
                        .containsEntry("locked_by", null)
                        .containsEntry("attempts", 25)
                        .containsEntry("max_attempts", 25);
            }
        }
    }

    // Locks of four hours and administration

    @Test
    void administrationSkipsRunningJobsButNotLocksOfFourHours() {
        for (String call : List.of(
                "complete_jobs(array(select id from {schema}.jobs))",
                "permanently_fail_jobs(array(select id from {schema}.jobs), 'enough')",
                "reschedule_jobs(array(select id from {schema}.jobs), attempts := 0)")) {
            db.sql("delete from {schema}._private_jobs").update();
            long running = add("t", 1, JobSpec.DEFAULT.toBuilder()).id();
            long stuck = add("t", 2, JobSpec.builder().queueName("q")).id();
            long waiting = add("t", 3, JobSpec.DEFAULT.toBuilder()).id();
            lock(running, 3);
            lock(stuck, 4);
            db.sql("update {schema}._private_job_queues set locked_by = 'w', locked_at = now()")
                    .update();

            assertThat(db.sql("select id from {schema}." + call)
                            .query(Long.class)
                            .list())
                    .as(call)
                    .containsExactly(stuck, waiting);
            assertThat(db.sql("select locked_by from {schema}.jobs where id = ?")
                            .param(running)
                            .query(String.class)
                            .single())
                    .isEqualTo("w");
            assertThat(db.sql("select count(*) from {schema}.jobs where locked_by is not null")
                            .query(Integer.class)
                            .single())
                    .isEqualTo(1);
            assertThat(db.sql("select count(*) from {schema}._private_job_queues where locked_by is not null")
                            .query(Integer.class)
                            .single())
                    .isZero();
        }
    }

    // Refusals

    @Test
    void badArgumentsHaveTheStatesOfTheInterface() {
        add("t", 1, JobSpec.builder().jobKey("used"));

        for (var expected : Map.ofEntries(
                        Map.entry("add_job('t', job_key := '')", "23514"),
                        Map.entry("add_job('t', job_key := repeat('k', 513))", "23514"),
                        Map.entry("add_job(repeat('t', 129))", "23514"),
                        Map.entry("add_job('t', queue_name := repeat('q', 129))", "23514"),
                        Map.entry("add_job('t', max_attempts := 0)", "23514"),
                        Map.entry("add_job('t', max_attempts := 0, job_key := 'used')", "23514"),
                        Map.entry("add_job('t', max_attempts := 32768)", "22003"),
                        Map.entry("add_job('t', priority := 32768)", "22003"),
                        Map.entry("add_job('t', priority := -32769, job_key := 'used')", "22003"),
                        Map.entry("add_job(null)", "23502"),
                        Map.entry("add_job('t', job_key := 'k', job_key_mode := 'other')", "GWBKM"),
                        Map.entry("add_job('t', job_key := 'used', job_key_mode := 'REPLACE')", "GWBKM"),
                        Map.entry(
                                "add_jobs(array[('t',null,null,null,null,'k',null,null),('t',null,null,null,null,'k',null,null)]::{schema}.job_spec[])",
                                "21000"),
                        Map.entry(
                                "add_jobs(array[(null,null,null,null,null,null,null,null)]::{schema}.job_spec[])",
                                "23502"),
                        Map.entry(
                                "add_jobs(array[(null,null,null,null,null,'k',null,null)]::{schema}.job_spec[])",
                                "23502"),
                        Map.entry(
                                "add_jobs(array[('t',null,null,null,null,'',null,null)]::{schema}.job_spec[])",
                                "23514"),
                        Map.entry(
                                "add_jobs(array[('t',null,null,null,null,repeat('k',513),null,null)]::{schema}.job_spec[])",
                                "23514"),
                        Map.entry(
                                "add_jobs(array[(repeat('t',129),null,null,null,null,null,null,null)]::{schema}.job_spec[])",
                                "23514"),
                        Map.entry(
                                "add_jobs(array[('t',null,repeat('q',129),null,null,null,null,null)]::{schema}.job_spec[])",
                                "23514"),
                        Map.entry(
                                "add_jobs(array[('t',null,null,null,0,'used',null,null)]::{schema}.job_spec[])",
                                "23514"),
                        Map.entry(
                                "add_jobs(array[('t',null,null,null,0,null,null,null)]::{schema}.job_spec[])", "23514"))
                .entrySet()) {
            var error = catchThrowableOfType(
                    DataAccessException.class,
                    () -> db.sql("select * from {schema}." + expected.getKey())
                            .query()
                            .listOfRows());

            assertThat(error).as(expected.getKey()).isNotNull();
            assertThat(((SQLException) NestedExceptionUtils.getRootCause(error)).getSQLState())
                    .as(expected.getKey())
                    .isEqualTo(expected.getValue());
        }
        assertThat(db.jobs()).isEqualTo(1);
        assertThat(db.sql("select revision from {schema}.jobs")
                        .query(Integer.class)
                        .single())
                .isZero();
    }

    @Test
    void whatTheInterfaceAllowsIsStored() {
        String key = "\uD83D\uDE00".repeat(512);
        assertThat(add("t".repeat(128), 1, JobSpec.builder().jobKey(key).queueName("q".repeat(128)))
                        .key())
                .isEqualTo(key);
        assertThat(add("t".repeat(128), 2, JobSpec.builder().jobKey(key)).revision())
                .isEqualTo(1);
        assertThat(db.sql("select (j).id from {schema}.add_job('t', job_key_mode := 'nonsense') j")
                        .query(Long.class)
                        .single())
                .as("the mode means nothing without a key")
                .isPositive();
    }

    @Test
    void theJavaInterfaceNamesABadKeyBeforeAnySql() {
        for (String key : List.of("", "k".repeat(513), "a\0b")) {
            assertThatIllegalArgumentException()
                    .isThrownBy(() -> JobSpec.builder().jobKey(key).build())
                    .withMessageContaining("jobKey");
        }
    }

    // Helpers

    @Test
    void noMessageQuotesThePayload() {
        for (String call : List.of(
                "add_job('t', '\"secret\"', max_attempts := 0)",
                "add_job(repeat('t', 129), '\"secret\"')",
                "add_job('t', '\"secret\"', priority := 99999)",
                "add_job('t', '\"secret\"', job_key := '')",
                "add_job(null, '\"secret\"')",
                "add_jobs(array[('t','\"secret\"',null,null,0,null,null,null)]::{schema}.job_spec[])",
                "add_jobs(array[(null,'\"secret\"',null,null,null,'k',null,null)]::{schema}.job_spec[])")) {
            var error = catchThrowableOfType(
                    DataAccessException.class,
                    () -> db.sql("select * from {schema}." + call).query().listOfRows());
            assertThat(NestedExceptionUtils.getRootCause(error).getMessage())
                    .as(call)
                    .doesNotContain("secret");
        }
    }

    @Test
    void anAddThatChangesNothingTellsNobody() throws SQLException {
        try (Connection listening = db.dataSource().getConnection()) {
            listening.createStatement().execute("listen \"jobs:insert\"");
            add("t", 1, JobSpec.builder().jobKey("a").jobKeyMode(JobKeyMode.UNSAFE_DEDUPE));
            add("t", 1, JobSpec.builder().jobKey("a").jobKeyMode(JobKeyMode.UNSAFE_DEDUPE));
            add("t", 1, JobSpec.builder().jobKey("a").jobKeyMode(JobKeyMode.REPLACE));

            long told = 0;
            for (int i = 0; i < 10 && told < 3; i++) {
                PGNotification[] some = listening.unwrap(PGConnection.class).getNotifications(100);
                told += some == null ? 0 : some.length;
            }
            assertThat(told).isEqualTo(2);
            listening.createStatement().execute("unlisten *");
        }
    }

    private Job add(String task, @Nullable Object payload, JobSpec.Builder spec) {
        return db.scheduler().addJob(task, payload, spec.build());
    }

    /** A spec under the key "k" with nothing left at its default. */
    private static JobSpec.Builder full(JobKeyMode mode) {
        return JobSpec.builder()
                .jobKey("k")
                .jobKeyMode(mode)
                .queueName("q")
                .runAt(EARLY)
                .maxAttempts(5)
                .priority(-4)
                .flags("x", "y");
    }

    private @Nullable Long remove(@Nullable String key) {
        return db
                .sql("select (r).id from {schema}.remove_job(?::text) r")
                .param(key)
                .query((row, n) -> row.getObject(1, Long.class))
                .stream()
                .filter(java.util.Objects::nonNull)
                .findFirst()
                .orElse(null);
    }

    private void bring(long id, String state) {
        switch (state) {
            case "tried" -> fail(id, 1);
            case "locked" -> lock(id, 0);
            case "failed" ->
                db.sql("update {schema}._private_jobs set attempts = max_attempts, last_error = 'broken' where id = ?")
                        .param(id)
                        .update();
            default -> assertThat(state).isEqualTo("waiting");
        }
    }

    private void fail(long id, int attempts) {
        db.sql("update {schema}._private_jobs set attempts = ?, last_error = 'broken' where id = ?")
                .params(attempts, id)
                .update();
    }

    private void lock(long id, int hours) {
        db.sql("""
                        update {schema}._private_jobs
                        set locked_by = 'w', locked_at = now() - ? * interval '1 hour', attempts = 1, last_error = 'before'
                        where id = ?""").params(hours, id).update();
    }

    /** The row without updated_at, with names for ids and text for what JDBC has odd types for. */
    private Map<String, @Nullable Object> row(long id) {
        Map<String, @Nullable Object> row = new java.util.HashMap<>(db.sql("""
                        select v.*, v.flags::text as flags, j.payload::text as payload,
                          to_char(v.run_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') as run_at
                        from {schema}.jobs v join {schema}._private_jobs j on j.id = v.id where v.id = ?""")
                .param(id)
                .query((r, n) -> {
                    Map<String, @Nullable Object> columns = new java.util.HashMap<>();
                    for (int i = 1; i <= r.getMetaData().getColumnCount(); i++) {
                        columns.put(r.getMetaData().getColumnLabel(i), r.getObject(i));
                    }
                    return columns;
                })
                .single());
        row.remove("updated_at");
        return row;
    }
}
