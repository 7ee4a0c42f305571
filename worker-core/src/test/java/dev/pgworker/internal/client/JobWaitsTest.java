package dev.pgworker.internal.client;

import java.time.Instant;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

import dev.pgworker.job.ActiveWorker;
import dev.pgworker.job.CleanupPreview;
import dev.pgworker.job.CleanupTask;
import dev.pgworker.job.JobSpec;
import dev.pgworker.job.JobWait;
import dev.pgworker.job.JobWait.Reason;
import dev.pgworker.job.NamedQueue;
import dev.pgworker.job.TaskSummary;
import dev.pgworker.testing.TestSchema;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

/** What jobs wait for, what tasks and queues there are, and what a clean-up would delete. */
class JobWaitsTest {

    @RegisterExtension
    final TestSchema db = new TestSchema();

    @Test
    void aJobThatRunsOrHasAnEnd() {
        worker("w1", "1 s", "\"mail\"");
        worker("dead", "1 day", "\"mail\"");
        long id = add(JobSpec.DEFAULT);

        lock(id, "w1", "3 minutes");
        assertWaits(id, Reason.RUNS, null, "Worker w1 has been running it for 3 min.");
        lock(id, "node", "30 seconds");
        assertWaits(id, Reason.RUNS, null, "Worker node has been running it for 30 s.");
        lock(id, "dead", "3 minutes");
        assertThat(waitOf(id).reason()).isEqualTo(Reason.WORKER_DEAD);
        assertThat(waitOf(id).text()).contains("dead has held it for 3 min", "no heartbeat", "sweep");
        lock(id, "node", "5 hours");
        assertThat(waitOf(id).reason()).isEqualTo(Reason.WORKER_DEAD);
        assertThat(waitOf(id).text()).contains("node, which is not registered, has held it for 5 h");

        set(id, "locked_at = '-infinity'");
        assertThat(waitOf(id).text()).contains("node, which is not registered, has held it for ever");
        set(id, "locked_at = 'infinity', run_at = '-infinity'");
        assertWaits(id, Reason.RUNS, null, "Worker node has been running it for 0 s.");

        set(id, "locked_at = null, locked_by = null, attempts = 25");
        assertThat(waitOf(id).reason()).isEqualTo(Reason.FAILED);
        assertThat(waitOf(id).text()).startsWith("Has failed permanently after 25 attempts.");
        assertThat(db.queries().waitOf(999_999)).isEmpty();
    }

    @Test
    void aJobWhoseTimeHasNotCome() {
        Instant later = Instant.parse("2099-01-01T00:00:00Z");
        long id = add(JobSpec.builder().runAt(later).build());

        assertThat(waitOf(id)).isEqualTo(new JobWait(Reason.TIME, later, null, "It is not due yet."));
        set(id, "attempts = 3");
        assertThat(waitOf(id))
                .isEqualTo(new JobWait(
                        Reason.RETRY,
                        later,
                        null,
                        "Attempt 3 of 25 has failed; the time of the next one has not come."));
        set(id, "attempts = 0, run_at = 'infinity'");
        assertThat(waitOf(id).until()).isNull();
        assertThat(waitOf(id).text()).contains("never");
    }

    @Test
    void aJobOfAQueue() {
        worker("w1", "1 s", "\"mail\"");
        JobSpec queued = JobSpec.builder().queueName("invoices").build();
        long first = add(queued);
        long second = add(queued);
        long third = add(queued);

        assertWaits(third, Reason.QUEUE_ORDER, 2, "Waits for 2 jobs of queue \"invoices\".");
        assertWaits(first, Reason.TURN, 0, "Is next, as soon as a worker has a free handler.");

        lock(first, "w1", "3 minutes");
        db.sql("update {schema}._private_job_queues set locked_at = now() - interval '3 minutes', locked_by = 'w1'")
                .update();
        String running = "queue \"invoices\", of which job " + first + " has been running for 3 min on worker w1";
        assertWaits(third, Reason.QUEUE_RUNS, 1, "Waits for 1 job of " + running + ".");
        assertWaits(second, Reason.QUEUE_RUNS, 0, "Is next in " + running + ".");

        db.sql("update {schema}._private_workers set last_heartbeat_at = now() - interval '1 day'")
                .update();
        assertWaits(
                second,
                Reason.QUEUE_RUNS,
                0,
                "Is next in " + running
                        + ", which has sent no heartbeat for too long. No live worker serves task"
                        + " \"mail\"; workers for Node.js do not register.");
    }

    @Test
    void aJobOfATaskThatNobodyServes() {
        worker("other", "1 s", "\"report\", 3, null");
        worker("dead", "1 day", "\"mail\"");
        worker("strange", "1 s", "[\"mail\"]");
        db.sql("insert into {schema}._private_workers (id, last_heartbeat_at, metadata) values ('none', now(), null),"
                        + " ('text', now(), '\"mail\"'), ('object', now(), '{\"tasks\": {\"a\": \"x\"}}')")
                .update();
        long id = add(JobSpec.DEFAULT);

        assertWaits(
                id,
                Reason.NO_WORKER,
                null,
                "No live worker serves task \"mail\"; workers for Node.js do not register.");
    }

    @Test
    void aJobBehindOthers() {
        worker("w1", "1 s", "\"mail\"");
        long first = add(JobSpec.builder().priority(-1).build());
        add(JobSpec.builder().queueName("q").build());
        add(JobSpec.builder()
                .priority(-5)
                .runAt(Instant.parse("2099-01-01T00:00:00Z"))
                .build());
        long flagged = add(JobSpec.builder().flags("slow").build());

        assertWaits(first, Reason.TURN, 0, "Is next, as soon as a worker has a free handler.");
        assertWaits(
                flagged,
                Reason.TURN,
                2,
                "Waits for a free handler; 2 jobs may run before it. It has flags: workers that forbid one of them pass it over.");

        many(1_000, "-2", "now()");
        assertWaits(first, Reason.TURN, 1_000, "Waits for a free handler; 1,000 jobs or more may run before it.");
    }

    @Test
    void tasksWithTheirWorkersAndJobs() {
        worker("w1", "1 s", "\"mail\", \"report\"");
        worker("w2", "1 s", "\"mail\"");
        worker("dead", "1 day", "\"mail\"");
        add(JobSpec.DEFAULT);
        add(JobSpec.builder().queueName("q").build());
        add(JobSpec.builder().runAt(Instant.parse("2099-01-01T00:00:00Z")).build());
        set(add(JobSpec.DEFAULT), "attempts = 25");
        db.scheduler().addJob("report", 1);

        assertThat(db.queries().tasks(null, 10))
                .containsExactly(
                        new TaskSummary("mail", List.of("w1", "w2"), 2, 1, true, null),
                        new TaskSummary("report", List.of("w1"), 1, 0, true, null));
        assertThat(db.queries().tasks("mail", 10))
                .extracting(TaskSummary::identifier)
                .containsExactly("report");
        assertThat(db.queries().tasks(null, 1))
                .extracting(TaskSummary::identifier)
                .containsExactly("mail");
        many(1_000, "1", "now()");
        assertThat(db.queries().tasks(null, 1))
                .containsExactly(new TaskSummary("mail", List.of("w1", "w2"), 1_000, 1, false, null));
        many(TaskOverview.MOST_READ, "-1", "now()");
        assertThat(db.queries().tasks("mail", 1))
                .containsExactly(new TaskSummary("report", List.of("w1"), 0, 0, false, null));
        assertThatIllegalArgumentException()
                .isThrownBy(() -> db.queries().tasks(null, 0))
                .withMessageContaining("limit must be between 1 and 1000");
    }

    @Test
    void queuesAreCountedUpToAThousand() {
        add(JobSpec.builder().queueName("q").build());
        many(999, "0", "now()");
        db.sql("update {schema}._private_jobs set job_queue_id = 1").update();
        assertThat(db.queries().queues(null, 10)).containsExactly(new NamedQueue("q", 1_000, false, null, null, null));
        add(JobSpec.builder().queueName("q").build());
        assertThat(db.queries().queues(null, 10)).containsExactly(new NamedQueue("q", 1_000, true, null, null, null));
    }

    @Test
    void workersAreListedWithoutTheirJobs() {
        worker("w1", "1 s", "\"mail\"");
        worker("dead", "1 day", "\"mail\"");
        lock(add(JobSpec.DEFAULT), "w1", "1 s");

        assertThat(db.queries().registeredWorkers())
                .extracting(ActiveWorker::id, ActiveWorker::heldJobs, ActiveWorker::stale)
                .containsExactlyInAnyOrder(
                        org.assertj.core.groups.Tuple.tuple("w1", null, false),
                        org.assertj.core.groups.Tuple.tuple("dead", null, true));
        assertThat(db.queries().activeWorkers())
                .extracting(ActiveWorker::heldJobs)
                .containsExactlyInAnyOrder(1L, 0L);
    }

    @Test
    void aPreviewSaysWhatACleanUpDeletes() {
        worker("w1", "1 s", "\"served\"");
        for (String task : List.of("served", "unused", "failing", "used")) {
            db.scheduler().addJob(task, 1, JobSpec.builder().queueName(task).build());
        }
        db.sql("delete from {schema}._private_jobs j using {schema}._private_tasks t where t.id = j.task_id"
                        + " and t.identifier in ('served', 'unused')")
                .update();
        db.sql("update {schema}._private_jobs set attempts = 25 where task_id ="
                        + " (select id from {schema}._private_tasks where identifier = 'failing')")
                .update();
        Set<CleanupTask> unused = EnumSet.of(CleanupTask.GC_JOB_QUEUES, CleanupTask.GC_TASK_IDENTIFIERS);

        assertThat(db.queries().previewCleanup(unused))
                .isEqualTo(new CleanupPreview(
                        Map.of(CleanupTask.GC_JOB_QUEUES, 2L, CleanupTask.GC_TASK_IDENTIFIERS, 1L), 10_000, Set.of()));
        CleanupPreview all = db.queries().previewCleanup(EnumSet.allOf(CleanupTask.class));
        assertThat(all.counts())
                .isEqualTo(Map.of(
                        CleanupTask.DELETE_PERMAFAILED_JOBS,
                        1L,
                        CleanupTask.DELETE_ENDED_SCHEDULES,
                        0L,
                        CleanupTask.GC_JOB_QUEUES,
                        3L,
                        CleanupTask.GC_TASK_IDENTIFIERS,
                        2L));
        assertThat(db.queries().previewCleanup(Set.of()).counts()).isEmpty();

        assertThat(db.operations().cleanup(EnumSet.allOf(CleanupTask.class)).deleted())
                .isEqualTo(all.counts());
    }

    @Test
    void aPreviewThatHasNotAskedAllJobsSaysSo() {
        add(JobSpec.builder().queueName("q").build());
        db.scheduler()
                .addJob("between", 1, JobSpec.builder().queueName("between").build());
        set(1, "attempts = 25");
        set(2, "attempts = 25");
        // The job of the second task and queue is neither among the oldest nor among the newest.
        db.sql("insert into {schema}._private_jobs (id, task_id, job_queue_id, attempts) overriding system value"
                        + " select g, 1, 1, 25 from generate_series(-20000, 0) g")
                .update();
        db.sql("insert into {schema}._private_jobs (task_id, job_queue_id, attempts)"
                        + " select 1, 1, 25 from generate_series(1, 20001) g")
                .update();

        CleanupPreview preview =
                db.queries().previewCleanup(EnumSet.of(CleanupTask.GC_JOB_QUEUES, CleanupTask.GC_TASK_IDENTIFIERS));

        assertThat(preview.counts())
                .isEqualTo(Map.of(CleanupTask.GC_JOB_QUEUES, 1L, CleanupTask.GC_TASK_IDENTIFIERS, 1L));
        assertThat(preview.atMost())
                .containsExactlyInAnyOrder(CleanupTask.GC_JOB_QUEUES, CleanupTask.GC_TASK_IDENTIFIERS);
        assertThat(db.queries().previewCleanup(EnumSet.allOf(CleanupTask.class)).counts())
                .containsEntry(CleanupTask.DELETE_PERMAFAILED_JOBS, 10_000L);
    }

    private void assertWaits(long id, Reason reason, Integer ahead, String text) {
        assertThat(waitOf(id)).isEqualTo(new JobWait(reason, null, ahead, text));
    }

    private JobWait waitOf(long id) {
        return db.queries().waitOf(id).orElseThrow();
    }

    private long add(JobSpec spec) {
        return db.scheduler().addJob("mail", 1, spec).id();
    }

    private void many(int jobs, String priority, String runAt) {
        db.sql("insert into {schema}._private_jobs (task_id, priority, run_at) select 1, " + priority + ", " + runAt
                        + " from generate_series(1, " + jobs + ")")
                .update();
    }

    private void set(long id, String assignments) {
        db.sql("update {schema}._private_jobs set " + assignments + " where id = ?")
                .param(id)
                .update();
    }

    private void lock(long id, String worker, String ago) {
        set(id, "locked_by = '" + worker + "', locked_at = now() - interval '" + ago + "'");
    }

    private void worker(String id, String ago, String tasks) {
        db.sql("insert into {schema}._private_workers (id, started_at, last_heartbeat_at, metadata)"
                        + " values (?, now(), now() - ?::interval, ('{\"tasks\": [' || ? || ']}')::jsonb)")
                .params(id, ago, tasks)
                .update();
    }
}
