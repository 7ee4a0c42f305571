package dev.pgworker;

import java.util.concurrent.atomic.AtomicInteger;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

import dev.pgworker.event.WorkerEvent.JobCompleted;
import dev.pgworker.event.WorkerEvent.JobFailed;
import dev.pgworker.event.WorkerEvent.JobStarted;
import dev.pgworker.job.Task;
import dev.pgworker.testing.RecordingListener;
import dev.pgworker.testing.TestSchema;

import static org.assertj.core.api.Assertions.assertThat;

/** Errors of the virtual machine in handlers fail their job; the worker goes on, with all its slots. */
@Tag("any-postgres")
class ErrorsTest {

    private static final Task<Integer> WORK = Task.of("work", Integer.class);

    @RegisterExtension
    final TestSchema db = new TestSchema();

    private final RecordingListener events = new RecordingListener();

    enum Mishap {
        OUT_OF_MEMORY("java.lang.OutOfMemoryError") {
            @Override
            void happen() {
                long[] more = new long[Integer.MAX_VALUE];
                throw new AssertionError("There is memory for " + more.length);
            }
        },
        STACK_OVERFLOW("java.lang.StackOverflowError") {
            @Override
            @SuppressWarnings("InfiniteRecursion")
            void happen() {
                happen();
            }
        },
        MISSING_CLASS("java.lang.NoClassDefFoundError: on purpose") {
            @Override
            void happen() {
                throw new NoClassDefFoundError("on purpose");
            }
        };

        private final String text;

        Mishap(String text) {
            this.text = text;
        }

        abstract void happen();
    }

    @ParameterizedTest
    @EnumSource(Mishap.class)
    void anErrorFailsTheJobAndTheNextOneRuns(Mishap mishap) {
        db.start(oneSlot().task(WORK, (n, context) -> {
            if (n == 1) {
                mishap.happen();
            }
        }));

        db.scheduler().addJob(WORK, 1);
        assertThat(events.await(JobFailed.class).permanently()).isFalse();
        db.scheduler().addJob(WORK, 2);

        assertThat(events.await(JobCompleted.class).job().payload()).isEqualTo("2");
        assertThat(db.sql("select last_error from {schema}.jobs")
                        .query(String.class)
                        .single())
                .startsWith(mishap.text);
    }

    @Test
    void anErrorAroundTheHandlerCostsNoSlot() {
        AtomicInteger thrown = new AtomicInteger();
        db.start(oneSlot()
                .listener(event -> {
                    if (event instanceof JobStarted && thrown.getAndIncrement() == 0) {
                        throw new OutOfMemoryError("on purpose");
                    }
                })
                .task(WORK, (n, context) -> {}));

        db.scheduler().addJob(WORK, 1);
        db.scheduler().addJob(WORK, 2);

        events.await(JobCompleted.class, e -> e.job().payload().equals("2"));
    }

    private Worker.Builder oneSlot() {
        return db.worker()
                .settings(WorkerSettings.builder().concurrency(1).build())
                .listener(events);
    }
}
