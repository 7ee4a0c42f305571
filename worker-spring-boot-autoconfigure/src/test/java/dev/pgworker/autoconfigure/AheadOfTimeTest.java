package dev.pgworker.autoconfigure;

import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.springframework.aot.hint.MemberCategory;
import org.springframework.aot.hint.RuntimeHints;
import org.springframework.aot.hint.predicate.RuntimeHintsPredicates;
import org.springframework.aot.test.generate.TestGenerationContext;
import org.springframework.beans.factory.annotation.Qualifier;
import org.springframework.boot.autoconfigure.ImportAutoConfiguration;
import org.springframework.boot.jackson.autoconfigure.JacksonAutoConfiguration;
import org.springframework.boot.jdbc.autoconfigure.DataSourceAutoConfiguration;
import org.springframework.boot.jdbc.autoconfigure.DataSourceTransactionManagerAutoConfiguration;
import org.springframework.context.ApplicationContextInitializer;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import org.springframework.context.aot.ApplicationContextAotGenerator;
import org.springframework.context.support.GenericApplicationContext;
import org.springframework.core.env.MapPropertySource;
import org.springframework.core.test.tools.CompileWithForkedClassLoader;
import org.springframework.core.test.tools.TestCompiler;
import org.springframework.javapoet.ClassName;

import dev.pgworker.Worker;
import dev.pgworker.autoconfigure.testing.TestDatabase;
import dev.pgworker.crontab.CronJob;
import dev.pgworker.job.Job;
import dev.pgworker.job.JobScheduler;
import dev.pgworker.schedule.Overlap;
import dev.pgworker.schedule.Schedule;
import dev.pgworker.task.JobHandler;
import dev.pgworker.task.RetryDelay;
import dev.pgworker.testsupport.TestPostgres;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.tuple;

/** An application that has been processed ahead of time runs jobs, and knows what a native image has to contain. */
@Tag("thorough")
class AheadOfTimeTest {

    private static final BlockingQueue<String> runs = new LinkedBlockingQueue<>();

    @RegisterExtension
    final TestDatabase db = new TestDatabase();

    public record Order(long id, Customer customer) {}

    public record Customer(String name) {}

    static class Patient implements RetryDelay {

        @Override
        public Duration delay(Job job, Throwable error) {
            return Duration.ofHours(1);
        }
    }

    static class Handlers {

        @JobHandler(value = "ship", retryDelay = Patient.class)
        void ship(Order order) {
            runs.add("shipped to " + order.customer().name());
        }

        @JobHandler(value = "report", worker = "reports")
        @CronJob(cron = "${report.cron:0 0 3 * * *}", overlap = Overlap.SKIP)
        void report() {
            runs.add("reported");
        }
    }

    /** Adds a job with each scheduler when it is made. */
    static class Adding {

        Adding(JobScheduler jobs, @Qualifier("reports") JobScheduler reports) {
            jobs.addJob("ship", new Order(1, new Customer("Ada")));
            reports.addJob("report");
        }
    }

    @Configuration(proxyBeanMethods = false)
    @Import({Handlers.class, Adding.class})
    @ImportAutoConfiguration({
        DataSourceAutoConfiguration.class,
        DataSourceTransactionManagerAutoConfiguration.class,
        JacksonAutoConfiguration.class,
        JobSchedulerAutoConfiguration.class,
        WorkerAutoConfiguration.class
    })
    static class Application {}

    private <C extends GenericApplicationContext> C configured(C context) {
        context.getEnvironment()
                .getPropertySources()
                .addFirst(new MapPropertySource(
                        "test",
                        Map.of(
                                "spring.datasource.url", TestPostgres.jdbcUrl(),
                                "pgworker.schema.name", db.schema(),
                                "pgworker.instances.reports.schema.name", db.schema() + "_app")));
        return context;
    }

    /** Generated code uses what is package-private, so it has to be loaded by the class loader of that. */
    @Test
    @CompileWithForkedClassLoader
    void runsJobsAndRegistersHints() {
        AnnotationConfigApplicationContext context = configured(new AnnotationConfigApplicationContext());
        context.register(Application.class);
        TestGenerationContext generation = new TestGenerationContext();
        ClassName initializer = new ApplicationContextAotGenerator().processAheadOfTime(context, generation);
        generation.writeGeneratedContent();

        TestCompiler.forSystem().with(generation).compile(compiled -> {
            try (GenericApplicationContext fresh = configured(new GenericApplicationContext())) {
                @SuppressWarnings("unchecked")
                ApplicationContextInitializer<GenericApplicationContext> generated =
                        compiled.getInstance(ApplicationContextInitializer.class, initializer.toString());
                generated.initialize(fresh);
                fresh.refresh();

                assertThat(new String[] {next(), next()}).containsExactlyInAnyOrder("shipped to Ada", "reported");
                assertThat(fresh.getBean("reportsWorker", Worker.class).declaredSchedules())
                        .extracting(
                                Schedule::name,
                                schedule -> schedule.recurrence().expression())
                        .containsExactly(tuple("report", "0 0 3 * * *"));
            }
        });

        RuntimeHints hints = generation.getRuntimeHints();
        assertThat(RuntimeHintsPredicates.reflection().onMethodInvocation(Handlers.class, "ship"))
                .accepts(hints);
        assertThat(RuntimeHintsPredicates.reflection()
                        .onType(Customer.class)
                        .withMemberCategory(MemberCategory.INVOKE_DECLARED_CONSTRUCTORS))
                .accepts(hints);
        assertThat(RuntimeHintsPredicates.reflection()
                        .onType(Patient.class)
                        .withMemberCategory(MemberCategory.INVOKE_DECLARED_CONSTRUCTORS))
                .accepts(hints);
        for (String migration : List.of("V1__baseline.sql", "R__20_claim.sql")) {
            assertThat(RuntimeHintsPredicates.resource().forResource("dev/pgworker/schema/migration/" + migration))
                    .accepts(hints);
        }
    }

    private static String next() {
        try {
            return runs.poll(120, TimeUnit.SECONDS);
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }
}
