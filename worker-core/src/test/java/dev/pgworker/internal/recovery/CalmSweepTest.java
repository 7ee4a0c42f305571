package dev.pgworker.internal.recovery;

import java.time.Duration;
import java.util.List;

import io.micrometer.observation.ObservationRegistry;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.springframework.scheduling.config.TaskExecutionOutcome.Status;

import dev.pgworker.internal.event.WorkerEvents;
import dev.pgworker.internal.failure.Outage;
import dev.pgworker.internal.lifecycle.Lease;
import dev.pgworker.internal.lifecycle.PeriodicTasks;
import dev.pgworker.internal.store.SweepStore;
import dev.pgworker.internal.store.WorkerStore;
import dev.pgworker.recovery.RecoverySettings;
import dev.pgworker.testing.TestSchema;

import static org.assertj.core.api.Assertions.assertThat;

/**
 * After an outage all heartbeats are old: who swept at once would take the jobs of workers that are about to send theirs. So a
 * worker sweeps only when its own heartbeats have been on time for a while.
 */
@Tag("any-postgres")
class CalmSweepTest {

    private static final Duration THRESHOLD = Duration.ofMinutes(5);

    @RegisterExtension
    final TestSchema db = new TestSchema();

    @Test
    void onlyAWorkerWithSteadyHeartbeatsSweeps() {
        db.sql(
                        "insert into {schema}._private_workers (id, last_heartbeat_at) values ('dead', now() - interval '1 hour')")
                .update();
        long now = System.nanoTime();
        Lease fresh = new Lease(THRESHOLD, THRESHOLD);
        fresh.renew(now);
        Lease steady = new Lease(THRESHOLD, THRESHOLD);
        steady.renew(now - Duration.ofSeconds(20).toNanos());
        steady.renew(now);

        Sweep early = sweep(fresh);
        PeriodicTasks tasks = new PeriodicTasks("test", ObservationRegistry.NOOP);
        tasks.start(early);
        Awaitility.await().until(() -> hasLooked(tasks));
        assertThat(workers()).as("registered after the sweep has looked").containsExactly("dead");
        tasks.stop(Duration.ofSeconds(5));

        Sweep calm = sweep(steady);
        PeriodicTasks others = new PeriodicTasks("test", ObservationRegistry.NOOP);
        others.start(calm);
        Awaitility.await().until(() -> workers().isEmpty());
        others.stop(Duration.ofSeconds(5));
    }

    private static boolean hasLooked(PeriodicTasks tasks) {
        return tasks.scheduled().stream()
                .allMatch(task -> task.getTask().getLastExecutionOutcome().status() == Status.SUCCESS);
    }

    private List<String> workers() {
        return db.sql("select id from {schema}._private_workers")
                .query(String.class)
                .list();
    }

    private Sweep sweep(Lease lease) {
        return new Sweep(
                "me",
                RecoverySettings.builder().enabled(true).build(),
                new SweepStore(db.dataSource(), db.schema(), List.of()),
                new OldLocks(new WorkerStore(db.dataSource(), db.schema()), Duration.ofHours(1)),
                lease,
                new WorkerEvents("me", List.of(), List.of()),
                new Outage());
    }
}
