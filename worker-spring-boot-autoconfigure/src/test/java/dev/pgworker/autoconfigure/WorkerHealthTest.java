package dev.pgworker.autoconfigure;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.health.contributor.CompositeHealthContributor;
import org.springframework.boot.health.contributor.Health;
import org.springframework.boot.health.contributor.HealthIndicator;
import org.springframework.boot.health.contributor.Status;
import org.springframework.boot.test.context.FilteredClassLoader;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.context.ApplicationContext;

import dev.pgworker.Worker;
import dev.pgworker.event.WorkerEvent.ListenerConnected;

import static org.assertj.core.api.Assertions.assertThat;

/** When the application is healthy and when not. */
class WorkerHealthTest {

    @RegisterExtension
    final TestDatabase db = new TestDatabase();

    private final RecordedEvents events = new RecordedEvents();

    private ApplicationContextRunner adding() {
        return db.runner().withConfiguration(AutoConfigurations.of(WorkerHealthAutoConfiguration.class));
    }

    private ApplicationContextRunner working() {
        return adding().withBean(Greetings.class).withBean(RecordedEvents.class, () -> events);
    }

    private static Health health(ApplicationContext context, String part) {
        HealthIndicator indicator = (HealthIndicator)
                context.getBean(CompositeHealthContributor.class).getContributor(part);
        assertThat(indicator).isNotNull();
        return indicator.health();
    }

    @Test
    void aWorkerThatWorks() {
        working().run(context -> {
            events.await(ListenerConnected.class);

            assertThat(health(context, "schema").getStatus()).isEqualTo(Status.UP);
            assertThat(health(context, "schema").getDetails())
                    .containsEntry("schema", db.schema())
                    .containsEntry("version", "1");
            Health engine = health(context, "engine");
            assertThat(engine.getStatus()).isEqualTo(Status.UP);
            assertThat(engine.getDetails())
                    .containsEntry("worker", context.getBean(Worker.class).id())
                    .containsEntry("listening", true)
                    .containsEntry("databaseUsable", true);
        });
    }

    @Test
    void aWorkerThatHasBeenStopped() {
        working().run(context -> {
            context.getBean(Worker.class).stop();

            assertThat(health(context, "engine").getStatus()).isEqualTo(Status.DOWN);
            assertThat(health(context, "schema").getStatus()).isEqualTo(Status.UP);
        });
    }

    @Test
    void aWorkerWithoutItsSchema() {
        working().run(context -> {
            events.await(ListenerConnected.class);
            db.sql("alter schema {schema} rename to {schema}_app").update();

            assertThat(health(context, "schema").getStatus()).isEqualTo(Status.DOWN);
            // A database that refuses statements can be used: the schema's health says what is wrong.
            assertThat(health(context, "engine").getDetails()).containsEntry("databaseUsable", true);
            db.sql("alter schema {schema}_app rename to {schema}").update();
        });
    }

    @Test
    void anApplicationThatOnlyAddsJobs() {
        adding().withPropertyValues("worker.enabled=false").run(context -> {
            assertThat(health(context, "schema").getStatus()).isEqualTo(Status.UP);
            assertThat(health(context, "engine").getStatus()).isEqualTo(Status.UP);
            assertThat(health(context, "engine").getDetails()).containsEntry("runsJobs", false);
        });
        adding().run(context ->
                assertThat(health(context, "engine").getDetails()).containsEntry("runsJobs", false));
    }

    @Test
    void nothingIsToldUnlessWanted() {
        working()
                .withPropertyValues("management.health.worker.enabled=false")
                .run(context -> assertThat(context).doesNotHaveBean(CompositeHealthContributor.class));
        working()
                .withClassLoader(new FilteredClassLoader("org.springframework.boot.health"))
                .run(context -> assertThat(context).hasNotFailed().hasSingleBean(Worker.class));
    }
}
