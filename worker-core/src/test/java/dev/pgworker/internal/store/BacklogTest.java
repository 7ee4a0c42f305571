package dev.pgworker.internal.store;

import java.time.Duration;
import java.util.List;
import java.util.regex.Pattern;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

import dev.pgworker.WorkerClient;
import dev.pgworker.job.JobBacklog;
import dev.pgworker.job.JobQuery;
import dev.pgworker.job.JobSpec;
import dev.pgworker.job.SweepOptions;
import dev.pgworker.schedule.RecurringQuery;
import dev.pgworker.testing.TestSchema;

import static org.assertj.core.api.Assertions.assertThat;

/** What there is to do: exact for few jobs, estimated for many, and read at a bounded cost. */
@Tag("thorough")
class BacklogTest {

    @RegisterExtension
    final TestSchema db = new TestSchema();

    private JobBacklog backlog() {
        return db.queries().backlog();
    }

    @Test
    void ofNothing() {
        assertThat(backlog()).isEqualTo(new JobBacklog(0, 0, 0, 0, 0, null, 0, false));
    }

    @Test
    void ofJobsThatAreDueForEverOrNever() {
        for (String time : List.of("infinity", "-infinity", "-infinity")) {
            db.sql("select {schema}.add_job('t', run_at => ?::timestamptz)")
                    .param(time)
                    .query()
                    .listOfRows();
        }
        db.sql("update {schema}._private_jobs set created_at = now() - interval '1 hour' where run_at = '-infinity'")
                .update();
        db.sql("insert into {schema}._private_workers (id, last_heartbeat_at, started_at) values ('a', 'infinity',"
                        + " '-infinity'), ('b', '-infinity', 'infinity')")
                .update();
        db.sql("insert into {schema}._private_known_crontabs values ('a', '-infinity', 'infinity'), ('b', 'infinity',"
                        + " '-infinity')")
                .update();

        assertThat(backlog().ready()).isEqualTo(2);
        assertThat(backlog().scheduled()).isEqualTo(1);
        assertThat(backlog().oldestDue()).isBetween(Duration.ofMinutes(59), Duration.ofMinutes(61));
        assertThat(db.queries().list(JobQuery.builder().build()).jobs()).hasSize(3);
        assertThat(db.queries().activeWorkers()).hasSize(2);
        assertThat(WorkerClient.recurringJobs(db.dataSource(), db.schema(), db.codec())
                        .list(RecurringQuery.ALL))
                .hasSize(2);
        assertThat(db.operations().sweep(SweepOptions.DEFAULT).workerIds()).containsExactly("b");
    }

    @Test
    void ofAFewJobsIsExact() {
        for (int i = 0; i < 12; i++) {
            db.scheduler()
                    .addJob(
                            "t",
                            null,
                            JobSpec.builder()
                                    .priority(i % 3 - 1)
                                    .queueName(i % 2 == 0 ? "q" : null)
                                    .build());
        }
        List<Long> ids = db.sql("select id from {schema}._private_jobs order by id")
                .query(Long.class)
                .list();
        update("run_at = now() + interval '1 hour'", ids.subList(0, 3));
        update("run_at = now() + interval '1 hour', attempts = 1", ids.subList(3, 5));
        update("attempts = max_attempts", ids.subList(5, 6));
        update("locked_at = now(), locked_by = 'w', attempts = max_attempts", ids.subList(6, 7));
        update("run_at = now() - interval '90 minutes'", ids.subList(7, 8));
        update("run_at = now() - interval '9 hours', locked_at = now()", ids.subList(8, 9));
        db.sql("insert into {schema}._private_workers (id, last_heartbeat_at) values ('live', now()),"
                        + " ('dead', now() - interval '6 minutes')")
                .update();

        JobBacklog backlog = backlog();

        assertThat(backlog.ready()).isEqualTo(4);
        assertThat(backlog.scheduled()).isEqualTo(3);
        assertThat(backlog.retrying()).isEqualTo(2);
        assertThat(backlog.failed()).isEqualTo(1);
        assertThat(backlog.oldestDue()).isBetween(Duration.ofMinutes(90), Duration.ofMinutes(92));
        assertThat(backlog.workers()).isEqualTo(1);
        assertThat(backlog.estimated()).isFalse();
    }

    private void update(String change, List<Long> ids) {
        assertThat(db.sql("update {schema}._private_jobs set " + change + " where id = any(:ids::bigint[])")
                        .param("ids", ids.toString().replace('[', '{').replace(']', '}'))
                        .update())
                .isEqualTo(ids.size());
    }

    @Test
    void ofManyJobsIsEstimated() {
        fill("ready", 30_000, "now() - interval '1 minute'", 0);
        fill("later", 40_000, "now() + interval '1 hour'", 0);
        fill("failed", 50_000, "now() - interval '1 hour'", 25);
        fill("queued", 10, "now() - interval '1 day'", 0);
        db.sql("analyze {schema}._private_jobs").update();

        JobBacklog backlog = backlog();

        assertThat(backlog.estimated()).isTrue();
        assertThat((double) backlog.ready()).isBetween(24_000.0, 36_000.0);
        assertThat((double) backlog.scheduled()).isBetween(32_000.0, 48_000.0);
        assertThat((double) backlog.failed()).isBetween(40_000.0, 60_000.0);
        assertThat(backlog.oldestDue()).isGreaterThanOrEqualTo(Duration.ofDays(1));
    }

    @Test
    void costsTheSameHoweverManyJobsThereAre() {
        fillAllStates(60_000);
        long few = blocksRead();
        fillAllStates(60_000);

        assertThat(blocksRead()).isBetween(1L, few * 21 / 20);
    }

    /** Without a vacuum, so that each index entry that is read costs a look at its row. */
    private void fillAllStates(int count) {
        fill("ready", count, "now() - interval '1 minute'", 0);
        fill("later", count, "now() + interval '1 hour'", 0);
        fill("failed", count, "now() - interval '1 hour'", 25);
        db.sql("analyze {schema}._private_jobs").update();
    }

    private long blocksRead() {
        String plan = String.join(
                "\n",
                db.sql("explain (analyze, buffers, timing off, summary off)"
                                + " select * from {schema}.pgworker_backlog(10000)")
                        .query(String.class)
                        .list());
        return Pattern.compile("(?:hit|read)=(\\d+)")
                .matcher(plan)
                .results()
                .mapToLong(match -> Long.parseLong(match.group(1)))
                .sum();
    }

    private void fill(String task, int count, String runAt, int attempts) {
        db.sql("insert into {schema}._private_jobs (task_id, priority, run_at, attempts)"
                        + " select {schema}.pgworker_task_id('" + task + "'), n % 5, " + runAt + ", " + attempts
                        + " from generate_series(1, " + count + ") n")
                .update();
    }
}
