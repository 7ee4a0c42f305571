package dev.pgworker.internal.lifecycle;

import java.sql.SQLException;
import java.time.Duration;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Collectors;

import io.micrometer.observation.Observation;
import io.micrometer.observation.ObservationHandler;
import io.micrometer.observation.ObservationRegistry;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.springframework.scheduling.config.ScheduledTask;
import org.springframework.scheduling.config.TaskExecutionOutcome;
import org.springframework.scheduling.support.ScheduledTaskObservationContext;

import dev.pgworker.internal.failure.DatabaseContact;
import dev.pgworker.internal.failure.Failures;
import dev.pgworker.internal.failure.Outage;
import dev.pgworker.testing.LogCapture;

import static org.assertj.core.api.Assertions.assertThat;

/** The contract of a worker's periodic tasks. */
@Tag("any-postgres")
class PeriodicServiceTest {

    private static final Duration LIMIT = Duration.ofMinutes(2);
    private static final Duration LONG = Duration.ofHours(1);

    private final Outage outage = new Outage(Duration.ZERO);
    private final ObservationRegistry observations = ObservationRegistry.create();
    private final PeriodicTasks tasks = new PeriodicTasks("worker test", observations);

    @FunctionalInterface
    interface Work {
        Duration run(Service service) throws SQLException, InterruptedException;
    }

    static class Service extends PeriodicService {
        private final Work work;
        final AtomicInteger executions = new AtomicInteger();

        Service(String name, Outage outage, Work work) {
            super(name, "try " + name, outage);
            this.work = work;
        }

        @Override
        protected Duration work() throws SQLException, InterruptedException {
            executions.incrementAndGet();
            return work.run(this);
        }

        void wakeUp() {
            wake();
        }
    }

    private Service service(String name, Work work) {
        return new Service(name, outage, work);
    }

    @AfterEach
    void endThreads() {
        assertThat(tasks.stop(LIMIT)).isTrue();
        assertThat(ownThreads()).isEmpty();
    }

    private Set<Thread> ownThreads() {
        return Thread.getAllStackTraces().keySet().stream()
                .filter(thread -> thread.getName().startsWith("worker-schedule-"))
                .collect(Collectors.toSet());
    }

    @Test
    void workIsRepeatedAfterTheTimeItHasAskedFor() throws Exception {
        CountDownLatch often = new CountDownLatch(5);
        Service service = service("a", s -> {
            often.countDown();
            return Duration.ofMillis(1);
        });
        Service patient = service("b", s -> LONG);
        tasks.start(service);
        tasks.start(patient);
        tasks.start(patient);

        often.await();

        assertThat(patient.executions.get()).isLessThanOrEqualTo(1);
        assertThat(service.isDead()).isFalse();
        assertThat(service.sinceSuccess()).isLessThan(LIMIT);
        assertThat(tasks.services()).containsExactly(service, patient);
    }

    @Test
    void aThreadHasTheNameOfItsTaskWhileItDoesTheWorkAndIsADaemon() throws Exception {
        List<Thread> seen = new CopyOnWriteArrayList<>();
        List<String> names = new CopyOnWriteArrayList<>();
        CountDownLatch done = new CountDownLatch(1);
        ClassLoader own = Thread.currentThread().getContextClassLoader();
        Service service = service("worker-test", s -> {
            names.add(Thread.currentThread().getName());
            seen.add(Thread.currentThread());
            done.countDown();
            return LONG;
        });
        tasks.start(service);
        done.await();

        assertThat(names).containsExactly("worker-test");
        Awaitility.await().until(() -> seen.get(0).getName().startsWith("worker-schedule-"));
        assertThat(seen.get(0).isDaemon()).isTrue();
        assertThat(seen.get(0).getContextClassLoader()).isSameAs(own);
    }

    /** Whoever wakes a task may be a handler with another class loader, and has a thread made. */
    @Test
    void threadsThatAreMadeLaterHaveTheClassLoaderOfTheWorker() throws Exception {
        List<ClassLoader> seen = new CopyOnWriteArrayList<>();
        Semaphore go = new Semaphore(0);
        CountDownLatch busy = new CountDownLatch(8);
        ClassLoader own = Thread.currentThread().getContextClassLoader();
        Work work = s -> {
            seen.add(Thread.currentThread().getContextClassLoader());
            busy.countDown();
            go.acquire();
            return LONG;
        };
        for (int i = 0; i < 8; i++) {
            tasks.start(service("s" + i, work));
            Thread.currentThread().setContextClassLoader(new ClassLoader(own) {});
        }
        try {
            busy.await();
        } finally {
            Thread.currentThread().setContextClassLoader(own);
            go.release(8);
        }
        assertThat(seen).hasSize(8).containsOnly(own);
    }

    @Test
    @Tag("thorough")
    void tasksThatHangKeepNoOtherFromRunningAndAreToldApart() throws Exception {
        Semaphore end = new Semaphore(0);
        CountDownLatch hanging = new CountDownLatch(10);
        for (int i = 0; i < 10; i++) {
            tasks.start(service("hangs-" + i, s -> {
                hanging.countDown();
                end.acquire();
                return LONG;
            }));
        }
        hanging.await();
        CountDownLatch often = new CountDownLatch(20);
        Service other = service("other", s -> {
            often.countDown();
            return Duration.ofMillis(1);
        });
        tasks.start(other);
        often.await();

        Duration longer = Duration.ofSeconds(2);
        Awaitility.await()
                .untilAsserted(() -> assertThat(tasks.services().stream()
                                .filter(service -> service.isStuck(longer))
                                .map(PeriodicService::name))
                        .hasSize(10)
                        .doesNotContain("other"));
        assertThat(tasks.services()).noneMatch(PeriodicService::isDead);
        end.release(10);
        // What was needed for a moment is not kept.
        Awaitility.await().until(() -> ownThreads().size() <= 2);
    }

    @Test
    void aTaskIsWokenAtOnceAndTheTimeThatIsShownIsTheOneThatComes() throws Exception {
        Semaphore done = new Semaphore(0);
        Service service = service("a", s -> {
            done.release();
            return LONG;
        });
        tasks.start(service);
        done.acquire();
        ScheduledTask task = tasks.scheduled().iterator().next();
        Awaitility.await().until(() -> task.nextExecution() != null);
        assertThat(task.toString()).isEqualTo("worker test: try a");
        assertThat(task.getTask().getRunnable()).hasToString("worker test: try a");

        for (int i = 0; i < 100; i++) {
            service.wakeUp();
            done.acquire();
        }
        Awaitility.await().untilAsserted(() -> {
            assertThat(task.getTask().getLastExecutionOutcome().status())
                    .isEqualTo(TaskExecutionOutcome.Status.SUCCESS);
            assertThat(task.nextExecution()).isNotNull();
            assertThat(Duration.between(
                            Objects.requireNonNull(
                                    task.getTask().getLastExecutionOutcome().executionTime()),
                            task.nextExecution()))
                    .isBetween(LONG.minus(LIMIT), LONG.plus(LIMIT));
        });
    }

    @Test
    void aWakeUpDuringTheWorkIsNotLostAndNothingRunsTwiceAtTheSameTime() throws Exception {
        AtomicInteger atOnce = new AtomicInteger();
        AtomicInteger most = new AtomicInteger();
        AtomicInteger asked = new AtomicInteger();
        AtomicInteger seen = new AtomicInteger();
        Service service = service("a", s -> {
            most.accumulateAndGet(atOnce.incrementAndGet(), Math::max);
            seen.set(asked.get());
            Thread.onSpinWait();
            atOnce.decrementAndGet();
            return LONG;
        });
        tasks.start(service);
        for (int i = 0; i < 20_000; i++) {
            asked.incrementAndGet();
            service.wakeUp();
        }
        Awaitility.await().untilAsserted(() -> assertThat(seen).hasValue(asked.get()));
        assertThat(most).hasValue(1);
    }

    @Test
    void workThatHasFailedIsNotWoken() throws Exception {
        CountDownLatch failed = new CountDownLatch(6);
        Service service = service("a", s -> {
            failed.countDown();
            throw new SQLException("on purpose", "08001");
        });
        long begin = System.nanoTime();
        tasks.start(service);
        while (failed.getCount() > 0) {
            service.wakeUp();
            Thread.onSpinWait();
        }
        // Five growing pauses: at least half of 100, 200, 400, 800 and 1600 ms.
        assertThat(Duration.ofNanos(System.nanoTime() - begin)).isGreaterThan(Duration.ofMillis(1_500));
        assertThat(outage.isPresent()).isTrue();
    }

    @Test
    void failuresOfAnyKindNeitherEndTheTaskNorGoUnnoticed() throws Exception {
        CountDownLatch noticed = new CountDownLatch(1);
        CountDownLatch recovered = new CountDownLatch(1);
        Service service = service("a", s -> {
            switch (s.executions.get()) {
                case 1 -> throw new SQLException("on purpose", "08006");
                case 2 -> {
                    if (outage.isPresent()) {
                        noticed.countDown();
                    }
                    throw new IllegalStateException("on purpose");
                }
                case 3 -> throw new StackOverflowError("on purpose");
                case 4 -> throw new OutOfMemoryError("on purpose");
                case 5 -> throw new InterruptedException("on purpose");
                case 6 -> DatabaseContact.made();
                default -> {
                    recovered.countDown();
                    return LONG;
                }
            }
            return Duration.ZERO;
        });
        tasks.start(service);

        recovered.await();
        assertThat(noticed.getCount()).isZero();
        assertThat(outage.isPresent()).isFalse();
    }

    @Test
    void aFailureIsShownAndLoggedAsWhatItIsAndOnce() throws Exception {
        CountDownLatch done = new CountDownLatch(3);
        Service service = service("a", s -> {
            done.countDown();
            throw new SQLException("bad value", "22023");
        });
        try (LogCapture log = new LogCapture(Failures.class)) {
            tasks.start(service);
            done.await();

            assertThat(log.messages()).hasSize(1);
            assertThat(log.messages().get(0)).contains("rejected").contains("bad value");
        }
        TaskExecutionOutcome last =
                tasks.scheduled().iterator().next().getTask().getLastExecutionOutcome();
        assertThat(last.status()).isIn(TaskExecutionOutcome.Status.ERROR, TaskExecutionOutcome.Status.STARTED);
        assertThat(outage.isPresent()).isFalse();
    }

    @Test
    void aConflictIsRepeatedAtOnceAndIsNoOutage() throws Exception {
        CountDownLatch done = new CountDownLatch(1);
        long begin = System.nanoTime();
        Service service = service("a", s -> {
            if (s.executions.get() <= 10) {
                throw new SQLException("on purpose", s.executions.get() % 2 == 0 ? "40001" : "40P01");
            }
            done.countDown();
            return LONG;
        });
        try (LogCapture log = new LogCapture(Failures.class)) {
            tasks.start(service);
            done.await();
            assertThat(log.messages()).isEmpty();
        }
        assertThat(Duration.ofNanos(System.nanoTime() - begin)).isLessThan(Duration.ofSeconds(10));
        assertThat(outage.isPresent()).isFalse();
    }

    @Test
    void stoppingInterruptsTheWorkIsCompleteOnReturnAndIdempotent() throws Exception {
        CountDownLatch working = new CountDownLatch(1);
        CountDownLatch ended = new CountDownLatch(1);
        Service service = service("a", s -> {
            working.countDown();
            try {
                Thread.sleep(LONG.toMillis());
            } finally {
                ended.countDown();
            }
            return LONG;
        });
        tasks.start(service);
        working.await();

        assertThat(service.stop(LIMIT)).isTrue();

        assertThat(ended.getCount()).isZero();
        assertThat(service.stop(LIMIT)).isTrue();
        tasks.start(service);
        service.wakeUp();
        assertThat(service.executions).hasValue(1);
        assertThat(service.isDead()).isFalse();
    }

    @Test
    void stoppingBeforeTheStartIsLegalAndFinal() {
        Service service = service("a", s -> LONG);

        assertThat(service.stop(LIMIT)).isTrue();
        tasks.start(service);

        assertThat(tasks.services()).isEmpty();
        assertThat(service.executions).hasValue(0);
    }

    @Test
    void workThatDoesNotEndIsToldAfterTheLimit() throws Exception {
        CountDownLatch working = new CountDownLatch(1);
        CountDownLatch end = new CountDownLatch(1);
        Service service = service("stubborn", s -> {
            working.countDown();
            while (end.getCount() > 0) {
                Thread.onSpinWait();
            }
            return LONG;
        });
        tasks.start(service);
        working.await();
        try (LogCapture log = new LogCapture(PeriodicService.class)) {
            assertThat(service.stop(Duration.ofMillis(50))).isFalse();
            assertThat(tasks.stop(Duration.ofMillis(50))).isFalse();
            assertThat(log.messages()).hasSize(1);
            assertThat(log.messages().get(0)).contains("stubborn").contains("did not end");
        } finally {
            end.countDown();
        }
    }

    @Test
    void theInterruptionOfATaskDoesNotReachTheNextOneOnItsThread() throws Exception {
        for (int i = 0; i < 200; i++) {
            CountDownLatch working = new CountDownLatch(1);
            Service stopped = service("stopped", s -> {
                working.countDown();
                return Duration.ZERO;
            });
            tasks.start(stopped);
            working.await();
            Semaphore done = new Semaphore(0);
            AtomicInteger interrupted = new AtomicInteger();
            Service other = service("other", s -> {
                if (Thread.currentThread().isInterrupted()) {
                    interrupted.incrementAndGet();
                }
                done.release();
                return Duration.ZERO;
            });
            tasks.start(other);
            stopped.stop(LIMIT);
            done.acquire(5);
            assertThat(interrupted).hasValue(0);
            other.stop(LIMIT);
        }
    }

    @Test
    void aTaskMayStopAll() throws Exception {
        CountDownLatch stopped = new CountDownLatch(1);
        AtomicInteger interrupted = new AtomicInteger();
        tasks.start(service("a", s -> {
            assertThat(s.stop(LIMIT)).isTrue();
            assertThat(tasks.stop(LIMIT)).isTrue();
            interrupted.set(Thread.currentThread().isInterrupted() ? 1 : 0);
            stopped.countDown();
            return LONG;
        }));

        stopped.await();
        assertThat(interrupted).hasValue(0);
    }

    @Test
    void theEndOfATaskIsNoSuccess() throws Exception {
        CountDownLatch failed = new CountDownLatch(2);
        Service service = service("a", s -> {
            failed.countDown();
            throw new SQLException("on purpose", "08001");
        });
        tasks.start(service);
        failed.await();

        assertThat(service.stop(LIMIT)).isTrue();

        assertThat(outage.isPresent()).isTrue();
        outage.succeeded("another");
        assertThat(outage.isPresent()).isFalse();
    }

    @Test
    void executionsAreObservedAsThoseOfScheduledMethods() throws Exception {
        List<ScheduledTaskObservationContext> ended = new CopyOnWriteArrayList<>();
        observations.observationConfig().observationHandler(new ObservationHandler<Observation.Context>() {
            @Override
            public void onStop(Observation.Context context) {
                ended.add((ScheduledTaskObservationContext) context);
            }

            @Override
            public boolean supportsContext(Observation.Context context) {
                return true;
            }
        });
        CountDownLatch done = new CountDownLatch(3);
        tasks.start(service("a", s -> {
            done.countDown();
            if (s.executions.get() == 1) {
                throw new SQLException("bad value", "22023");
            }
            return Duration.ofMillis(1);
        }));
        done.await();

        assertThat(ended.get(0).getName()).isEqualTo("tasks.scheduled.execution");
        assertThat(ended.get(0).getLowCardinalityKeyValues().stream()
                        .map(value -> value.getKey() + "=" + value.getValue()))
                .containsExactly(
                        "code.function=work",
                        "code.namespace=" + Service.class.getCanonicalName(),
                        "exception=SQLException",
                        "outcome=ERROR");
        assertThat(ended.get(1).getError()).isNull();
        assertThat(ended.get(1).getLowCardinalityKeyValue("outcome"))
                .extracting("value")
                .isEqualTo("SUCCESS");
    }

    @Test
    void anObserverThatFailsKeepsNothingFromBeingDone() throws Exception {
        observations.observationConfig().observationHandler(new ObservationHandler<Observation.Context>() {
            @Override
            public void onStart(Observation.Context context) {
                throw new IllegalStateException("on purpose");
            }

            @Override
            public boolean supportsContext(Observation.Context context) {
                return true;
            }
        });
        CountDownLatch done = new CountDownLatch(3);
        try (LogCapture log = new LogCapture(Failures.class)) {
            tasks.start(service("a", s -> {
                done.countDown();
                return Duration.ofMillis(1);
            }));
            done.await();
            assertThat(log.messages()).isEmpty();
        }
    }
}
