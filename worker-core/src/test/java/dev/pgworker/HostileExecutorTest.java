package dev.pgworker;

import java.time.Duration;
import java.util.Objects;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.Executor;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

import dev.pgworker.event.WorkerEvent.JobCompleted;
import dev.pgworker.event.WorkerEvent.JobReturned;
import dev.pgworker.job.Task;
import dev.pgworker.testing.RecordingListener;
import dev.pgworker.testing.TestSchema;

import static org.assertj.core.api.Assertions.assertThat;

/** Whatever the handler executor does, no slot is lost: afterwards as many handlers run at the same time as before. */
@Tag("thorough")
@Tag("any-postgres")
class HostileExecutorTest {

    private static final Task<Integer> WORK = Task.of("work", Integer.class);
    private static final int CONCURRENCY = 3;

    @RegisterExtension
    final TestSchema db = new TestSchema();

    private final RecordingListener events = new RecordingListener();
    private final AtomicInteger handedOver = new AtomicInteger();

    @Test
    void oneThatHasNoThreadToOffer() throws Exception {
        allSlotsWork(task -> {
            if (handedOver.getAndIncrement() < 6) {
                throw new OutOfMemoryError("unable to create native thread");
            }
            new Thread(task).start();
        });
    }

    @Test
    void oneThatRunsATaskTwice() throws Exception {
        allSlotsWork(task -> {
            handedOver.incrementAndGet();
            new Thread(() -> {
                        task.run();
                        task.run();
                    })
                    .start();
            new Thread(task).start();
        });
    }

    @Test
    void oneThatThrowsAfterItHasTakenTheTask() throws Exception {
        allSlotsWork(task -> {
            new Thread(task).start();
            if (handedOver.getAndIncrement() < 4) {
                throw new IllegalStateException("on purpose");
            }
        });
    }

    @Test
    void oneThatThrowsAfterItHasBegunTheTask() throws Exception {
        AtomicInteger running = new AtomicInteger();
        AtomicInteger most = new AtomicInteger();
        CountDownLatch done = new CountDownLatch(20);
        CountDownLatch firstRuns = new CountDownLatch(1);
        db.start(db.worker()
                .handlerExecutor(task -> {
                    new Thread(task).start();
                    if (handedOver.getAndIncrement() == 0) {
                        await(firstRuns);
                        throw new IllegalStateException("on purpose");
                    }
                })
                .settings(WorkerSettings.builder().concurrency(1).build())
                .task(WORK, (n, context) -> {
                    most.accumulateAndGet(running.incrementAndGet(), Math::max);
                    firstRuns.countDown();
                    Thread.sleep(20);
                    running.decrementAndGet();
                    done.countDown();
                }));
        for (int i = 0; i < 20; i++) {
            db.scheduler().addJob(WORK, i);
        }

        assertThat(done.await(120, TimeUnit.SECONDS)).isTrue();
        assertThat(most.get()).isEqualTo(1);
    }

    @Test
    void oneThatLetsTheCallerWaitKeepsNoJobFromBeingGivenBack() throws Exception {
        Semaphore threads = new Semaphore(1);
        CountDownLatch firstRuns = new CountDownLatch(1);
        CountDownLatch mayEnd = new CountDownLatch(1);
        db.start(db.worker()
                .handlerExecutor(task -> {
                    threads.acquireUninterruptibly();
                    new Thread(() -> {
                                task.run();
                                threads.release();
                            })
                            .start();
                })
                .settings(WorkerSettings.builder()
                        .concurrency(CONCURRENCY)
                        .localQueueTtl(Duration.ofMillis(300))
                        .build())
                .listener(events)
                .task(WORK, (n, context) -> {
                    firstRuns.countDown();
                    mayEnd.await();
                }));
        db.scheduler().addJob(WORK, 1);
        firstRuns.await();
        db.scheduler().addJob(WORK, 2);

        events.await(JobReturned.class);

        mayEnd.countDown();
        events.await(JobCompleted.class, 2);
        assertThat(db.jobs()).isZero();
    }

    private static void await(CountDownLatch latch) {
        try {
            latch.await();
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    @Test
    void oneThatRunsTasksOnTheThreadOfTheCaller() throws Exception {
        allSlotsWork(task -> {
            handedOver.incrementAndGet();
            task.run();
        });
    }

    @Test
    void oneThatLosesTasks() throws Exception {
        allSlotsWork(task -> {
            if (handedOver.getAndIncrement() >= CONCURRENCY) {
                new Thread(task).start();
            }
        });
    }

    private void allSlotsWork(Executor executor) throws Exception {
        CyclicBarrier allAtOnce = new CyclicBarrier(CONCURRENCY);
        Worker worker = db.start(db.worker()
                .handlerExecutor(executor)
                .settings(WorkerSettings.builder()
                        .concurrency(CONCURRENCY)
                        .pollInterval(Duration.ofMillis(100))
                        .localQueueTtl(Duration.ofMillis(300))
                        .build())
                .listener(events)
                .task(WORK, (n, context) -> allAtOnce.await(120, TimeUnit.SECONDS)));
        for (int i = 0; i < 2 * CONCURRENCY; i++) {
            db.scheduler().addJob(WORK, i);
        }
        org.awaitility.Awaitility.await()
                .until(() -> events.all(JobCompleted.class).size() == 2 * CONCURRENCY);
        assertThat(handedOver.get()).isPositive();
        assertThat(db.jobs()).isZero();
        org.awaitility.Awaitility.await()
                .until(() -> Objects.requireNonNull(worker.status()).freeSlots() == CONCURRENCY);
    }

    @Test
    void anErrorInTheMiddleOfARunnerCostsAJobAtMost() throws Exception {
        CountDownLatch done = new CountDownLatch(10);
        AtomicInteger errors = new AtomicInteger();
        db.start(db.worker()
                .settings(WorkerSettings.builder()
                        .concurrency(1)
                        .pollInterval(Duration.ofMillis(100))
                        .build())
                .directListener(event -> {
                    if (event instanceof JobCompleted) {
                        done.countDown();
                    }
                })
                .jobInterceptor((context, execution) -> {
                    if (errors.getAndIncrement() % 3 == 0) {
                        throw new StackOverflowError("on purpose");
                    }
                    return execution.proceed();
                })
                .tasks(java.util.List.of(dev.pgworker.task.TaskRegistration.of(WORK, (n, context) -> {})
                        .with(dev.pgworker.task.TaskOptions.DEFAULT.withRetryDelay(
                                dev.pgworker.task.RetryDelay.fixed(Duration.ZERO))))));
        for (int i = 0; i < 10; i++) {
            db.scheduler().addJob(WORK, i);
        }

        assertThat(done.await(120, TimeUnit.SECONDS)).isTrue();
    }
}
