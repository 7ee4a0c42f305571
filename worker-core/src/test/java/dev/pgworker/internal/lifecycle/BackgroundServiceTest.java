package dev.pgworker.internal.lifecycle;

import java.sql.SQLException;
import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;

import org.awaitility.Awaitility;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

import dev.pgworker.internal.failure.Backoff;
import dev.pgworker.internal.failure.DatabaseContact;
import dev.pgworker.internal.failure.Failures;
import dev.pgworker.internal.failure.Outage;
import dev.pgworker.testing.LogCapture;

import static org.assertj.core.api.Assertions.assertThat;

/** The contract of every background thread. */
@Tag("any-postgres")
class BackgroundServiceTest {

    private static final Duration LIMIT = Duration.ofMinutes(2);

    private final Outage outage = new Outage(Duration.ZERO);

    @FunctionalInterface
    interface Step {
        void run(Service service) throws SQLException, InterruptedException;
    }

    static class Service extends BackgroundService {
        private final Step step;
        final CountDownLatch ended = new CountDownLatch(1);
        volatile boolean interruptedAtEnd;

        Service(Outage outage, Step step) {
            super("test-service", true, outage);
            this.step = step;
        }

        @Override
        protected void step() throws SQLException, InterruptedException {
            step.run(this);
        }

        @Override
        protected void afterLastStep() {
            interruptedAtEnd = Thread.currentThread().isInterrupted();
            ended.countDown();
        }

        void pauseFor(Duration time) throws InterruptedException {
            pause(time.toNanos());
        }

        void wakeUp() {
            wake();
        }
    }

    @Test
    void tellsOfProgressAndGoesOnAfterWhatNobodyMayThrow() throws InterruptedException {
        CountDownLatch again = new CountDownLatch(4);
        Service service = new Service(outage, s -> {
            again.countDown();
            if (again.getCount() == 2) {
                throwUnchecked(new Exception("nothing that a step may throw"));
            }
        });
        assertThat(service.isDead()).isFalse();
        service.start();
        again.await();
        assertThat(service.sinceSuccess()).isLessThan(LIMIT);
        assertThat(service.isDead()).isFalse();
        assertThat(service.stop(LIMIT)).isTrue();
    }

    @Test
    void tellsOfAThreadThatHasEnded() {
        Service service = new Service(outage, s -> {}) {
            @Override
            Thread newThread(Runnable task) {
                return new Thread(() -> {});
            }
        };
        service.start();

        Awaitility.await().until(service::isDead);
        assertThat(service.stop(LIMIT)).isTrue();
        assertThat(service.isDead()).isFalse();
    }

    @SuppressWarnings({"unchecked", "TypeParameterUnusedInFormals"})
    private static <E extends Throwable> void throwUnchecked(Throwable error) throws E {
        throw (E) error;
    }

    @Test
    void stoppingBeforeTheStartIsLegalAndFinal() {
        AtomicInteger steps = new AtomicInteger();
        Service service = new Service(outage, s -> steps.incrementAndGet());

        assertThat(service.stop(LIMIT)).isTrue();
        service.start();

        assertThat(service.stop(LIMIT)).isTrue();
        assertThat(steps).hasValue(0);
    }

    @Test
    void stoppingEndsAWaitAndIsCompleteOnReturnAndIdempotent() throws Exception {
        CountDownLatch waiting = new CountDownLatch(1);
        Service service = new Service(outage, s -> {
            waiting.countDown();
            s.pauseFor(Duration.ofHours(1));
        });
        service.start();
        service.start();
        waiting.await();

        assertThat(service.stop(LIMIT)).isTrue();

        assertThat(service.ended.getCount()).isZero();
        assertThat(service.stop(LIMIT)).isTrue();
    }

    @Test
    void whatFollowsTheLastStepIsNotInterrupted() throws Exception {
        for (int i = 0; i < 200; i++) {
            Service service = new Service(outage, s -> s.pauseFor(Duration.ofHours(1)));
            service.start();
            service.stop(LIMIT);
            assertThat(service.interruptedAtEnd).isFalse();
        }
    }

    @Test
    void aWakeUpBeforeThePauseIsNotLost() throws Exception {
        CountDownLatch passed = new CountDownLatch(1);
        AtomicInteger steps = new AtomicInteger();
        Service service = new Service(outage, s -> {
            if (steps.getAndIncrement() == 0) {
                s.wakeUp();
            } else {
                passed.countDown();
            }
            s.pauseFor(Duration.ofHours(1));
        });
        service.start();

        passed.await();
        assertThat(service.stop(LIMIT)).isTrue();
    }

    @Test
    void failuresOfAnyKindNeitherEndTheThreadNorGoUnnoticed() throws Exception {
        CountDownLatch recovered = new CountDownLatch(1);
        CountDownLatch noticed = new CountDownLatch(1);
        AtomicInteger steps = new AtomicInteger();
        Service service = new Service(outage, s -> {
            switch (steps.incrementAndGet()) {
                case 1 -> throw new SQLException("on purpose", "08006");
                case 2 -> {
                    if (outage.isPresent()) {
                        noticed.countDown();
                    }
                    throw new IllegalStateException("on purpose");
                }
                case 3 -> throw new StackOverflowError("on purpose");
                case 4 -> DatabaseContact.made();
                default -> {
                    recovered.countDown();
                    s.pauseFor(Duration.ofHours(1));
                }
            }
        });
        service.start();

        recovered.await();
        service.stop(LIMIT);
        assertThat(noticed.getCount()).isZero();
        assertThat(outage.isPresent()).isFalse();
    }

    @Test
    void aStepThatOnlyWaitsAfterAFailureProvesNothing() throws Exception {
        CountDownLatch waiting = new CountDownLatch(1);
        CountDownLatch again = new CountDownLatch(1);
        CountDownLatch used = new CountDownLatch(1);
        AtomicInteger steps = new AtomicInteger();
        Service service = new Service(outage, s -> {
            switch (steps.incrementAndGet()) {
                case 1 -> throw new SQLException("on purpose", "57P01");
                case 2 -> {
                    s.pauseFor(Duration.ofMillis(1));
                    waiting.countDown();
                    again.await();
                }
                default -> {
                    DatabaseContact.made();
                    s.pauseFor(Duration.ofMillis(1));
                    used.countDown();
                    s.pauseFor(Duration.ofHours(1));
                }
            }
        });
        service.start();
        waiting.await();
        assertThat(outage.isPresent()).isTrue();

        again.countDown();
        used.await();

        assertThat(outage.isPresent()).isFalse();
        service.stop(LIMIT);
    }

    @Test
    void theEndOfAServiceIsNoSuccess() throws Exception {
        CountDownLatch failed = new CountDownLatch(2);
        Service service = new Service(outage, s -> {
            failed.countDown();
            throw new SQLException("on purpose", "08001");
        });
        service.start();
        failed.await();

        assertThat(service.stop(LIMIT)).isTrue();

        assertThat(outage.isPresent()).isTrue();
        outage.succeeded("another");
        assertThat(outage.isPresent()).isFalse();
    }

    @Test
    void aConflictIsRepeatedAtOnceAndIsNoOutage() throws Exception {
        CountDownLatch done = new CountDownLatch(1);
        AtomicInteger steps = new AtomicInteger();
        long begin = System.nanoTime();
        Service service = new Service(outage, s -> {
            int step = steps.incrementAndGet();
            assertThat(outage.isPresent()).isFalse();
            if (step <= 10) {
                throw new SQLException("on purpose", step % 2 == 0 ? "40001" : "40P01");
            }
            done.countDown();
            s.pauseFor(Duration.ofHours(1));
        });
        try (LogCapture log = new LogCapture(Failures.class)) {
            service.start();
            done.await();
            service.stop(LIMIT);

            assertThat(log.messages()).isEmpty();
        }
        // Ten growing pauses would take more than ten seconds.
        assertThat(Duration.ofNanos(System.nanoTime() - begin)).isLessThan(Duration.ofSeconds(10));
    }

    @Test
    void whatIsNoOutageIsLoggedAsWhatItIsAndOnce() throws Exception {
        CountDownLatch done = new CountDownLatch(1);
        AtomicInteger steps = new AtomicInteger();
        Service service = new Service(outage, s -> {
            switch (steps.incrementAndGet()) {
                case 1, 2 -> throw new SQLException("too slow", "57014");
                case 3 -> throw new SQLException("bad value", "22023");
                case 4 -> throw new IllegalStateException("a bug");
                case 5 -> {}
                case 6 -> throw new SQLException("bad value", "22023");
                default -> {
                    done.countDown();
                    s.pauseFor(Duration.ofHours(1));
                }
            }
        });
        try (LogCapture log = new LogCapture(Failures.class)) {
            service.start();
            done.await();
            service.stop(LIMIT);

            assertThat(log.messages()).hasSize(4);
            assertThat(log.messages().get(0)).contains("cancelled").contains("too slow");
            assertThat(log.messages().get(1)).contains("rejected").contains("bad value");
            assertThat(log.messages().get(2)).contains("Internal error");
            assertThat(log.messages().get(3)).contains("bad value");
        }
        assertThat(outage.isPresent()).isFalse();
    }

    @Test
    void backOffGrowsToItsLimitAndStartsOver() {
        Backoff backoff = new Backoff();
        assertThat(backoff.next()).isBetween(Duration.ofMillis(50), Duration.ofMillis(100));
        for (int i = 0; i < 10; i++) {
            backoff.next();
        }
        assertThat(backoff.next()).isBetween(Duration.ofMillis(2500), Duration.ofMillis(5000));
        backoff.reset();
        assertThat(backoff.next()).isLessThanOrEqualTo(Duration.ofMillis(100));
    }
}
