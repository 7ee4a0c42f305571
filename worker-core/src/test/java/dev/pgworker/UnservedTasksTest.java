package dev.pgworker;

import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.stream.IntStream;

import org.awaitility.Awaitility;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

import dev.pgworker.WorkerStatus.UnservedTask;
import dev.pgworker.event.WorkerEvent.WorkerStarted;
import dev.pgworker.internal.watch.UnservedTasks;
import dev.pgworker.job.JobRequest;
import dev.pgworker.job.JobSpec;
import dev.pgworker.job.Task;
import dev.pgworker.testing.LogCapture;
import dev.pgworker.testing.RecordingListener;
import dev.pgworker.testing.TestSchema;

import static org.assertj.core.api.Assertions.assertThat;

/** Jobs of tasks that nobody serves. */
@Tag("any-postgres")
class UnservedTasksTest {

    private static final Task<Integer> HELLO = Task.of("hello", Integer.class);

    @RegisterExtension
    final TestSchema db = new TestSchema();

    private final LogCapture log = new LogCapture(UnservedTasks.class);
    private final RecordingListener events = new RecordingListener();

    @AfterEach
    void close() {
        log.close();
    }

    private Worker start(String... tasks) {
        Worker.Builder builder = db.worker()
                .listener(events)
                .patience(Duration.ofMillis(100), Duration.ofMinutes(2))
                .task(HELLO, (n, context) -> {});
        for (String task : tasks) {
            builder.task(Task.of(task, Integer.class), (n, context) -> {});
        }
        Worker worker = db.start(builder);
        events.await(WorkerStarted.class);
        return worker;
    }

    private void add(String task, int jobs) {
        List<JobRequest> requests =
                IntStream.range(0, jobs).mapToObj(i -> JobRequest.of(task, i)).toList();
        db.scheduler().addJobs(requests);
    }

    private void awaitLooks(Worker worker, int looks) {
        // Each look that finds a task of its own tells it.
        for (int i = 0; i < looks; i++) {
            String task = "look-" + worker.id() + "-" + i;
            add(task, 1);
            awaitTold("\"" + task + "\"");
        }
    }

    private void awaitTold(String text) {
        Awaitility.await().until(() -> log.messages().stream().anyMatch(line -> line.contains(text)));
    }

    private long told(String text) {
        return log.messages().stream().filter(line -> line.contains(text)).count();
    }

    @Test
    void aMisspeltTaskIsToldOnceWithTheOneThatWasMeant() {
        Worker worker = start();
        add("helo", 12);
        db.scheduler().addJob("hello", 1);

        awaitTold("12 jobs wait for task \"helo\", which no registered worker serves; did you mean \"hello\"?");
        assertThat(worker.status().unservedTasks()).containsExactly(new UnservedTask("helo", 12, "hello"));
        awaitLooks(worker, 2);
        assertThat(told("\"helo\"")).isEqualTo(1);
        assertThat(told("\"hello\", ")).isZero();

        db.sql("delete from {schema}._private_jobs").update();
        Awaitility.await().until(() -> worker.status().unservedTasks().isEmpty());
        db.scheduler().addJob("helo", 1, JobSpec.builder().queueName("q").build());
        awaitTold("1 job waits for task \"helo\"");
    }

    @Test
    @Tag("thorough")
    void whatIsNotDueOrServedElsewhereIsNotTold() {
        db.start(db.worker().task(Task.of("other", Integer.class), (n, context) -> Thread.sleep(60_000)));
        Awaitility.await()
                .until(() -> db.sql("select count(*) from {schema}._private_workers")
                                .query(Integer.class)
                                .single()
                        == 1);
        Worker worker = start();
        add("other", 100);
        db.scheduler()
                .addJob(
                        "later",
                        1,
                        JobSpec.builder().runAt(Instant.now().plusSeconds(3600)).build());

        awaitLooks(worker, 2);

        assertThat(told("\"other\"")).isZero();
        assertThat(told("\"later\"")).isZero();
    }

    /** Those of Rust tell nothing of what they serve. */
    @Test
    void whereAWorkerDoesNotTellItsTasksJobsHaveToWaitLonger() {
        db.sql("select {schema}.worker_heartbeat('rust', '{\"pid\": 1}')")
                .query()
                .singleRow();
        db.sql("select {schema}.worker_heartbeat('odd', '{\"tasks\": 7}')")
                .query()
                .singleRow();
        start();
        db.scheduler().addJob("helo", 1);

        awaitTold("\"helo\", which no registered worker that publishes its tasks serves");
        assertThat(db.sql("select now() - run_at >= interval '1 s' from {schema}.jobs")
                        .query(Boolean.class)
                        .single())
                .isTrue();
    }

    @Test
    @Tag("thorough")
    void ofTenThousandTasksSomeAreNamed() {
        Worker worker = start();
        db.scheduler()
                .addJobs(IntStream.range(0, 10_000)
                        .mapToObj(i -> JobRequest.of("task" + i, i))
                        .toList());

        awaitTold("So do jobs of 990 other tasks");
        assertThat(log.messages()).hasSize(11);
        assertThat(worker.status().unservedTasks()).hasSize(10);
    }

    @Test
    void jobsThatHaveBeenDueForEverAreFound() {
        start();
        db.sql("select {schema}.add_job('ever', run_at => '-infinity')").query().singleRow();

        awaitTold(
                "1 job waits for task \"ever\", which no registered worker serves; workers for Node.js do not register");
    }

    /** It reads past what finished jobs left behind, which may take longer than a hint is worth. */
    @Test
    void aLookThatIsCancelledIsToldOnceAndRepeated() {
        db.sql("create function {schema}.refuse(text[], interval, int) returns boolean language plpgsql as"
                        + " $$ begin raise query_canceled; end $$")
                .update();
        db.sql("alter function {schema}.pgworker_waiting_tasks(text[], interval, int) rename to whole_look")
                .update();
        db.sql("""
                create function {schema}.pgworker_waiting_tasks(served text[], longer_than interval, depth int)
                returns table (identifier text, jobs bigint, since timestamptz, more boolean) language sql as
                $$ select w.* from {schema}.whole_look($1, $2, $3) w where {schema}.refuse($1, $2, $3) $$
                """).update();
        add("helo", 1);
        start();
        awaitTold("A look for tasks that no worker serves was cancelled");

        db.sql(
                        "create or replace function {schema}.refuse(text[], interval, int) returns boolean language sql as $$ select true $$")
                .update();

        awaitTold("\"helo\"");
        assertThat(told("cancelled")).isEqualTo(1);
    }
}
