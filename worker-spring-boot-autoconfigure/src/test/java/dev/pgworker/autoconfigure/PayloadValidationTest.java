package dev.pgworker.autoconfigure;

import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;

import jakarta.validation.Valid;
import jakarta.validation.constraints.NotBlank;
import jakarta.validation.constraints.Positive;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.test.context.FilteredClassLoader;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.boot.validation.autoconfigure.ValidationAutoConfiguration;

import dev.pgworker.autoconfigure.testing.RecordedEvents;
import dev.pgworker.autoconfigure.testing.TestDatabase;
import dev.pgworker.event.WorkerEvent.JobCompleted;
import dev.pgworker.event.WorkerEvent.JobFailed;
import dev.pgworker.job.JobScheduler;
import dev.pgworker.task.JobHandler;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

class PayloadValidationTest {

    @RegisterExtension
    final TestDatabase db = new TestDatabase().installed();

    private final RecordedEvents events = new RecordedEvents();

    record Item(@Positive int pieces) {}

    record Order(@NotBlank String customer, List<@Valid Item> items) {}

    static class Orders {

        static final AtomicInteger run = new AtomicInteger();

        @JobHandler("order")
        void order(Order order) {
            run.incrementAndGet();
        }
    }

    private ApplicationContextRunner runner() {
        Orders.run.set(0);
        return db.runner()
                .withConfiguration(AutoConfigurations.of(ValidationAutoConfiguration.class))
                .withBean(RecordedEvents.class, () -> events)
                .withBean(Orders.class);
    }

    private static final Order INVALID = new Order(" ", List.of(new Item(1), new Item(0)));

    @Test
    void anInvalidPayloadIsNotAdded() {
        runner().run(context -> {
            JobScheduler jobs = context.getBean(JobScheduler.class);
            assertThatIllegalArgumentException()
                    .isThrownBy(() -> jobs.addJob("order", INVALID))
                    .withMessageContainingAll(
                            "payload of " + Order.class.getName() + " is invalid",
                            "customer must not be blank",
                            "items[1].pieces must be greater than 0");
            assertThatIllegalArgumentException()
                    .isThrownBy(() -> jobs.addJob("order", List.of(new Item(1), new Item(-1))))
                    .withMessageContaining("[1].pieces must be greater than 0");
            assertThat(db.jobs()).isZero();
        });
    }

    record Notes(Map<String, @NotBlank String> byAddress) {}

    @Test
    void keysOfMapsAreNotNamed() {
        runner().run(context -> assertThatIllegalArgumentException()
                .isThrownBy(() ->
                        context.getBean(JobScheduler.class).addJob("order", new Notes(Map.of("ann@example.org", ""))))
                .withMessageContaining("byAddress[].<map value> must not be blank")
                .withMessageNotContaining("ann@example.org"));
    }

    @Test
    void aValidOneRuns() {
        runner().run(context -> {
            context.getBean(JobScheduler.class).addJob("order", new Order("ann", List.of(new Item(1))));
            events.await(JobCompleted.class);
            assertThat(Orders.run).hasValue(1);
        });
    }

    @Test
    void whatOthersAddedFailsForGoodBeforeItsHandler() {
        runner().run(context -> {
            db.sql("select {schema}.add_job('order', '{\"customer\": \"\", \"items\": []}')")
                    .query()
                    .listOfRows();
            JobFailed failed = events.await(JobFailed.class);
            assertThat(failed.permanently()).isTrue();
            assertThat(failed.error())
                    .hasMessageContainingAll("task \"order\"", "is invalid: customer must not be blank");
            assertThat(Orders.run).hasValue(0);
        });
    }

    @Test
    void propertySwitchesItOff() {
        runner().withPropertyValues("pgworker.validate-payloads=false").run(context -> {
            context.getBean(JobScheduler.class).addJob("order", INVALID);
            events.await(JobCompleted.class);
        });
    }

    @Test
    void withoutAValidatorNothingIsChecked() {
        db.runner()
                .withClassLoader(new FilteredClassLoader("jakarta.validation"))
                .withPropertyValues("pgworker.enabled=false")
                .run(context -> {
                    context.getBean(JobScheduler.class).addJob("order", INVALID);
                    assertThat(db.jobs()).isEqualTo(1);
                });
    }
}
