package dev.pgworker.internal.engine.complete;

import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;

import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

import dev.pgworker.event.WorkerEvent.JobReturned;
import dev.pgworker.flow.PredecessorResults;
import dev.pgworker.internal.engine.HeldBack;
import dev.pgworker.internal.engine.WorkerContext;
import dev.pgworker.internal.engine.claim.ClaimTracker;
import dev.pgworker.internal.engine.queue.FreedQueues;
import dev.pgworker.internal.engine.queue.LocalQueue;
import dev.pgworker.internal.engine.run.HandlerCalls;
import dev.pgworker.internal.engine.run.HandlerServices;
import dev.pgworker.internal.engine.run.HandlerThreads;
import dev.pgworker.internal.engine.run.JobExecutor;
import dev.pgworker.internal.engine.run.OutcomeInbox;
import dev.pgworker.internal.engine.run.Ownership;
import dev.pgworker.internal.engine.run.Payloads;
import dev.pgworker.internal.engine.run.RunResults;
import dev.pgworker.internal.engine.run.RunningAttempts;
import dev.pgworker.internal.engine.run.StepRuns;
import dev.pgworker.internal.event.WorkerEvents;
import dev.pgworker.internal.failure.Outage;
import dev.pgworker.internal.lifecycle.Lease;
import dev.pgworker.internal.lifecycle.Started;
import dev.pgworker.internal.lifecycle.WorkSignal;
import dev.pgworker.internal.store.ClaimRequest;
import dev.pgworker.internal.store.Claimed;
import dev.pgworker.internal.store.Floor;
import dev.pgworker.internal.store.JobStore;
import dev.pgworker.internal.store.KeptHistory;
import dev.pgworker.internal.store.RenewedLocks;
import dev.pgworker.internal.store.TaskIds;
import dev.pgworker.job.Job;
import dev.pgworker.job.Task;
import dev.pgworker.task.CancelSettings;
import dev.pgworker.task.TaskRegistration;
import dev.pgworker.task.TaskRegistry;
import dev.pgworker.testing.RecordingListener;
import dev.pgworker.testing.TestSchema;

import static org.assertj.core.api.Assertions.assertThat;

/** What a worker does with what it has claimed once others may have declared it dead, before anybody interrupts it. */
class OwnershipTest {

    private static final Task<Integer> WORK = Task.of("work", Integer.class);
    private static final Duration LIMIT = Duration.ofMinutes(2);

    @RegisterExtension
    final TestSchema db = new TestSchema();

    private final RecordingListener events = new RecordingListener();
    private final List<Integer> ran = new CopyOnWriteArrayList<>();
    private final Lease lease = new Lease(Duration.ofMinutes(5), Duration.ofMinutes(5));
    private final FreedQueues freed = new FreedQueues(() -> {});
    private final LocalQueue localQueue = new LocalQueue(
            new LocalQueue.Limits(1, 10, Duration.ofMinutes(1), 10), new HeldBack(), freed, () -> {}, () -> {});
    private JobStore store;
    private Ownership ownership;
    private TaskIds tasks;

    @BeforeEach
    void claimTasks() throws Exception {
        store = new JobStore(db.dataSource(), db.schema(), "me");
        ownership = new Ownership(lease, store.holdings(), localQueue.inFlight().renewals(), () -> true);
        tasks = store.claims().tasks(List.of("work"));
    }

    @Test
    void claimedJobsDoNotStartButAreGivenBack() throws Exception {
        WorkSignal signal = new WorkSignal();
        WorkerContext context = new WorkerContext(
                "me",
                new WorkerEvents("w", List.of(events), List.of()),
                new Outage(),
                signal,
                new Started(() -> false));
        OutcomeInbox inbox = new OutcomeInbox(Duration.ZERO);
        TaskRegistry registry = TaskRegistry.of(List.of(TaskRegistration.of(WORK, (n, any) -> ran.add(n))));
        JobExecutor executor = new JobExecutor(
                context,
                localQueue,
                new HandlerCalls(
                        registry,
                        List.of(),
                        null,
                        new HandlerServices(
                                db.scheduler(),
                                new RunResults(new KeptHistory(), db.codec(), 0, 1),
                                new StepRuns(
                                        store.steps(),
                                        RenewedLocks.UNCHANGED,
                                        db.codec(),
                                        1_000,
                                        db.dataSource(),
                                        null),
                                job -> PredecessorResults.NONE),
                        CancelSettings.DEFAULT,
                        new Payloads(store.claims(), localQueue)),
                new HandlerThreads(localQueue, task -> new Thread(task).start()),
                new RunningAttempts(),
                ownership,
                inbox);
        JobCompleter completer = new JobCompleter(
                context, store.outcomes(), localQueue, new ClaimTracker(signal), freed, inbox, Duration.ofMinutes(1));
        db.scheduler().addJob(WORK, 1);
        db.scheduler().addJob(WORK, 2);
        Claimed jobs = claim(2);
        lease.renew(System.nanoTime());

        lease.revoke();
        executor.submit(jobs);
        completer.start();

        assertThat(completer.awaitWritten(LIMIT)).isTrue();
        completer.stop(LIMIT);
        assertThat(ran).isEmpty();
        assertThat(events.all(JobReturned.class)).hasSize(2);
        assertThat(db.sql("select attempts from {schema}.jobs")
                        .query(Integer.class)
                        .list())
                .containsExactly(0, 0);
    }

    @Test
    void theDatabaseSaysWhoseAJobIs() throws Exception {
        db.scheduler().addJob(WORK, 1);
        Job job = claim(1).readable().get(0);
        assertThat(ownership.mayClaim()).as("before the first heartbeat").isFalse();
        assertThat(ownership.holds(job)).isTrue();

        lease.renew(System.nanoTime());
        assertThat(ownership.mayClaim()).isTrue();
        assertThat(ownership.holds(job)).isTrue();

        db.sql("update {schema}._private_jobs set locked_by = 'other'").update();
        assertThat(ownership.holds(job)).isFalse();

        db.sql("update {schema}._private_jobs set locked_by = 'me'").update();
        lease.revoke();
        assertThat(ownership.holds(job)).isFalse();
        assertThat(ownership.mayClaim()).isFalse();
    }

    private Claimed claim(int wanted) throws Exception {
        return store.claims()
                .claim(
                        ClaimRequest.of(tasks, List.of()),
                        wanted,
                        List.of(new Floor(new Floor.Kind(false, 0), Instant.MIN, 0)));
    }
}
