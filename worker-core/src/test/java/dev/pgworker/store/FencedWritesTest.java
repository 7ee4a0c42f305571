package dev.pgworker.store;

import java.util.List;
import java.util.Map;

import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

import dev.pgworker.job.Job;
import dev.pgworker.job.JobSpec;
import dev.pgworker.store.JobStore.Completion;
import dev.pgworker.store.JobStore.Lanes;
import dev.pgworker.store.JobStore.Release;
import dev.pgworker.store.JobStore.ReleaseAction;
import dev.pgworker.store.JobStore.Tasks;
import dev.pgworker.store.JobStore.Unwritten;
import dev.pgworker.testing.TestSchema;

import static org.assertj.core.api.Assertions.assertThat;

/** Whatever a worker writes about jobs and queues that another one holds by now has no effect. */
class FencedWritesTest {

    @RegisterExtension
    final TestSchema db = new TestSchema();

    private JobStore old;
    private Tasks tasks;
    private List<Job> jobs;
    private List<Map<String, Object>> before;

    /** The first worker claims two jobs with queues; then they are another one's, and a third job waits behind each. */
    @BeforeEach
    void takeTheJobsOfTheOldWorker() throws Exception {
        old = new JobStore(db.dataSource(), db.schema(), "old", List::of);
        for (String queue : List.of("a", "b", "a", "b")) {
            db.scheduler().addJob("work", 1, JobSpec.builder().queueName(queue).build());
        }
        tasks = old.tasks(List.of("work"));
        jobs = old.claim(tasks, 2, task -> 1, false, null);
        assertThat(jobs).hasSize(2);
        db.sql("update {schema}._private_jobs set locked_by = 'other' where locked_by = 'old'")
                .update();
        db.sql("update {schema}._private_job_queues set locked_by = 'other' where locked_by = 'old'")
                .update();
        before = rows();
        assertThat(before).hasSize(6);
    }

    @Test
    void aCompletionOfOneJob() throws Exception {
        Completion completion = old.complete(jobs.subList(0, 1), tasks, new Lanes(List.of(1), List.of()));

        assertThat(completion.claimed()).isEmpty();
        assertThat(completion.unwritten().lost()).containsExactly(jobs.get(0).id());
        assertThat(rows()).isEqualTo(before);
    }

    @Test
    void aCompletionOfSeveralJobs() throws Exception {
        Completion completion = old.complete(jobs, tasks, new Lanes(List.of(1, 1), List.of()));

        assertThat(completion.claimed()).isEmpty();
        assertThat(completion.unwritten().lost())
                .containsExactlyElementsOf(jobs.stream().map(Job::id).toList());
        assertThat(rows()).isEqualTo(before);
    }

    @Test
    void aReleaseHoweverTheJobEnded() throws Exception {
        for (ReleaseAction action : ReleaseAction.values()) {
            Unwritten unwritten = old.release(
                    jobs.stream()
                            .map(job -> Release.of(job, action, null, "error", null))
                            .toList(),
                    List.of());

            assertThat(unwritten.lost())
                    .containsExactlyElementsOf(jobs.stream().map(Job::id).toList());
            assertThat(rows()).isEqualTo(before);
        }
    }

    @Test
    void theReleaseOfAQueue() throws Exception {
        old.free(List.of("a", "b"));

        assertThat(rows()).isEqualTo(before);
    }

    @Test
    void theRenewalOfLocks() throws Exception {
        db.sql("update {schema}._private_jobs set locked_at = now() - interval '5 hours' where locked_by = 'other'")
                .update();
        before = rows();

        new WorkerStore(db.dataSource(), db.schema())
                .keepLocks("old", jobs.stream().map(Job::id).toList());

        assertThat(rows()).isEqualTo(before);
    }

    private List<Map<String, Object>> rows() {
        return db.sql("""
                        select 'job ' || id as name, locked_by, locked_at, attempts, run_at, last_error, updated_at
                        from {schema}._private_jobs
                        union all
                        select 'queue ' || queue_name, locked_by, locked_at, null, null, null, null
                        from {schema}._private_job_queues order by 1""").query().listOfRows();
    }
}
