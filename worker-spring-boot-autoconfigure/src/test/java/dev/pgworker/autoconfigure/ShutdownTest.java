package dev.pgworker.autoconfigure;

import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.springframework.boot.availability.AvailabilityChangeEvent;
import org.springframework.boot.availability.ReadinessState;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.context.ApplicationListener;

import dev.pgworker.Worker;
import dev.pgworker.autoconfigure.testing.Greetings;
import dev.pgworker.autoconfigure.testing.TestDatabase;
import dev.pgworker.event.WorkerEvent;
import dev.pgworker.event.WorkerEventListener;
import dev.pgworker.job.JobScheduler;
import dev.pgworker.job.Task;
import dev.pgworker.task.TaskRegistration;

import static org.assertj.core.api.Assertions.assertThat;

/** What an application that is told to end does, and what it says before if it has too little time for it. */
@ExtendWith(OutputCaptureExtension.class)
class ShutdownTest {

    @RegisterExtension
    final TestDatabase db = new TestDatabase().installed();

    @Test
    void readinessGoesFirstAndASecondStopIsHarmless() {
        List<String> order = new CopyOnWriteArrayList<>();
        CountDownLatch started = new CountDownLatch(1);
        db.runner()
                .withPropertyValues("pgworker.shutdown.grace-period=100ms")
                .withBean(
                        "blocks",
                        TaskRegistration.class,
                        () -> TaskRegistration.of(Task.of("block", Object.class), (payload, context) -> {
                            started.countDown();
                            try {
                                new CountDownLatch(1).await();
                            } catch (InterruptedException e) {
                                order.add("interrupted");
                                throw e;
                            }
                        }))
                .withBean(WorkerEventListener.class, () -> event -> {
                    if (event instanceof WorkerEvent.WorkerStopped) {
                        order.add("stopped");
                    }
                })
                .withBean(Readiness.class, () -> new Readiness(order))
                .run(context -> {
                    context.getBean(JobScheduler.class).addJob("block");
                    started.await();
                    Worker worker = context.getBean(Worker.class);

                    context.getSourceApplicationContext().close();
                    context.getSourceApplicationContext().close();
                    worker.stop();

                    assertThat(order).containsExactly("not ready", "interrupted", "stopped");
                });
        assertThat(db.sql("select count(*) from {schema}.jobs where locked_by is null and attempts = 0")
                        .query(Integer.class)
                        .single())
                .isEqualTo(1);
        assertThat(db.sql("select count(*) from {schema}._private_workers")
                        .query(Integer.class)
                        .single())
                .isZero();
    }

    private record Readiness(List<String> order) implements ApplicationListener<AvailabilityChangeEvent<?>> {

        @Override
        public void onApplicationEvent(AvailabilityChangeEvent<?> event) {
            if (event.getState() == ReadinessState.REFUSING_TRAFFIC) {
                order.add("not ready");
            }
        }
    }

    @ParameterizedTest
    @CsvSource({"5s, , false", "15s, , false", "16s, , true", "60s, 75s, false", "60s, 74s, true"})
    void aShutdownPhaseThatIsTooShortIsSaidAtTheStart(
            String grace, String phase, boolean warned, CapturedOutput output) {
        db.runner()
                .withBean(Greetings.class)
                .withPropertyValues("pgworker.shutdown.grace-period=" + grace)
                .withPropertyValues(
                        phase == null
                                ? new String[0]
                                : new String[] {"spring.lifecycle.timeout-per-shutdown-phase=" + phase})
                .run(context -> assertThat(context).hasNotFailed());

        assertThat(output.getOut().contains("set spring.lifecycle.timeout-per-shutdown-phase to at least"))
                .isEqualTo(warned);
    }
}
