package dev.pgworker.internal.lifecycle;

import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;

import io.micrometer.observation.ObservationRegistry;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

import dev.pgworker.internal.failure.Outage;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

/** What may go wrong between two executions of a task. */
@Tag("any-postgres")
class TimedTaskTest {

    private final Clock clock = new SteadyClock();

    /** Whether nothing can be scheduled, as where there is no memory or no thread. */
    private final AtomicBoolean exhausted = new AtomicBoolean();

    private final ScheduledThreadPoolExecutor executor = new ScheduledThreadPoolExecutor(2) {
        @Override
        public ScheduledFuture<?> schedule(Runnable command, long delay, TimeUnit unit) {
            if (exhausted.get()) {
                throw new OutOfMemoryError("on purpose");
            }
            return super.schedule(command, delay, unit);
        }
    };

    @AfterEach
    void end() {
        executor.shutdownNow();
    }

    @Test
    void aTaskThatCouldNotBeScheduledGoesOnWhenItIsReconsidered() throws Exception {
        Semaphore done = new Semaphore(0);
        TimedTask task = new TimedTask(
                done::release, context -> context.getClock().instant().plusMillis(1), clock, executor, change -> {});
        task.reconsider();
        done.acquire(3);

        exhausted.set(true);
        Awaitility.await().until(() -> executor.getQueue().isEmpty() && executor.getActiveCount() == 0);
        done.drainPermits();
        assertThatThrownBy(task::reconsider).isInstanceOf(OutOfMemoryError.class);
        exhausted.set(false);
        assertThat(done.availablePermits()).isZero();

        task.reconsider();
        done.acquire(3);
        task.cancel(false);
        assertThat(task.isDone()).isTrue();
    }

    /** What fails to be scheduled leaves what has been scheduled before. */
    @Test
    void aTaskThatCannotBeRescheduledKeepsItsTime() throws Exception {
        CountDownLatch done = new CountDownLatch(1);
        TimedTask task = new TimedTask(
                done::countDown,
                context -> context.getClock().instant().plusMillis(200),
                clock,
                executor,
                change -> {});
        task.reconsider();
        exhausted.set(true);
        assertThatThrownBy(task::reconsider).isInstanceOf(OutOfMemoryError.class);

        done.await();
    }

    @Test
    void aTriggerMayEndTheTask() {
        AtomicInteger executions = new AtomicInteger();
        TimedTask task = new TimedTask(
                executions::incrementAndGet,
                context -> context.lastCompletion() == null ? context.getClock().instant() : null,
                clock,
                executor,
                change -> {});
        task.reconsider();

        Awaitility.await().until(() -> executor.getCompletedTaskCount() == 1);
        assertThat(executions).hasValue(1);
        assertThat(executor.getQueue()).isEmpty();
    }

    /** An executor that has lost all its threads, as the worker's health sees it. */
    @Test
    void aServiceWhoseTaskIsNeverExecutedIsDeadUntilItIs() throws Exception {
        Semaphore done = new Semaphore(0);
        PeriodicService service = new PeriodicService("a", "try", new Outage()) {
            @Override
            protected Duration work() {
                done.release();
                return Duration.ofSeconds(-40);
            }
        };
        exhausted.set(true);
        TimedTask task = new TimedTask(() -> run(service), service::next, clock, executor, change -> {});
        service.startedAs(task);
        assertThat(service.isDead()).isFalse();
        exhausted.set(false);
        task.reconsider();
        exhausted.set(true);
        done.acquire();
        // It is due since long, and could not be scheduled.
        Awaitility.await().until(service::isDead);
        assertThat(service.isStuck(Duration.ZERO)).isFalse();

        exhausted.set(false);
        service.revive(Duration.ofSeconds(5));
        done.acquire();
        service.stop(Duration.ofSeconds(10));
        assertThat(service.isDead()).isFalse();
    }

    private static void run(PeriodicService service) {
        try {
            service.run(ObservationRegistry.NOOP);
        } catch (Throwable e) {
            throw new AssertionError(e);
        }
    }

    /** The clock of a machine may be set by hours between two looks. */
    @Test
    void timesFollowNoClockThatCanBeSet() {
        long before = System.nanoTime();
        Instant first = clock.instant();
        Awaitility.await().until(() -> System.nanoTime() - before > 20_000_000);
        Instant second = clock.instant();
        assertThat(Duration.between(first, second))
                .isBetween(Duration.ofMillis(19), Duration.ofNanos(System.nanoTime() - before));
        assertThat(first).isBefore(Instant.EPOCH.plus(Duration.ofDays(1)));
        assertThat(new SteadyScheduler().getClock()).isInstanceOf(SteadyClock.class);
    }
}
