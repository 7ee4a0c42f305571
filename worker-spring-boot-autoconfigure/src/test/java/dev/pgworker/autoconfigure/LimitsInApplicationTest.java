package dev.pgworker.autoconfigure;

import java.time.Duration;
import java.util.Map;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.autoconfigure.context.PropertyPlaceholderAutoConfiguration;
import org.springframework.boot.context.properties.source.InvalidConfigurationPropertyValueException;
import org.springframework.boot.test.context.assertj.AssertableApplicationContext;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.boot.test.context.runner.ContextConsumer;

import dev.pgworker.Worker;
import dev.pgworker.autoconfigure.testing.FailureAnalyses;
import dev.pgworker.autoconfigure.testing.TestDatabase;
import dev.pgworker.limit.FairShare;
import dev.pgworker.limit.JobLimits;
import dev.pgworker.limit.Limit;
import dev.pgworker.limit.MaxRunning;
import dev.pgworker.limit.RateLimit;
import dev.pgworker.task.JobHandler;

import static org.assertj.core.api.Assertions.assertThat;

/** Limits of annotations, properties and beans, and what is said of wrong ones. */
class LimitsInApplicationTest {

    @RegisterExtension
    final TestDatabase db = new TestDatabase().installed();

    static class Jobs {

        @JobHandler("import")
        @MaxRunning(valueString = "${imports:4}", per = "customer.id")
        @RateLimit(value = 100, period = "${import-period:10s}", name = "partner")
        void imports() {}

        @JobHandler("export")
        @RateLimit(value = 100, period = "10s", name = "partner")
        @FairShare(per = "tenant", weights = "acme=${acme-weight:3}")
        void exports() {}
    }

    static class Wrong {

        @JobHandler("a")
        @MaxRunning(0)
        @RateLimit(value = 5, period = "soon", name = "r")
        void a() {}

        @JobHandler("b")
        @MaxRunning(value = 1, name = "shared")
        void b() {}

        @JobHandler("c")
        @MaxRunning(value = 2, name = "shared")
        @RateLimit(value = 100, period = "1s", burst = 5)
        void c() {}

        @MaxRunning(valueString = "many")
        void none() {}

        @JobHandler("e")
        @FairShare(per = "", weights = "acme=3")
        void e() {}

        @JobHandler("f")
        @FairShare(
                per = "tenant",
                weights = {"acme=3", "globex"})
        void f() {}

        @JobHandler("d")
        @MaxRunning(valueString = "many", per = "a..b")
        void d() {}
    }

    private ApplicationContextRunner runner() {
        return db.runner()
                .withConfiguration(AutoConfigurations.of(PropertyPlaceholderAutoConfiguration.class))
                .withPropertyValues("pgworker.auto-startup=false");
    }

    private static ContextConsumer<AssertableApplicationContext> declares(Limit... limits) {
        return context ->
                assertThat(context.getBean(Worker.class).declaredLimits()).containsExactlyInAnyOrder(limits);
    }

    private static Limit exportShare(double acme) {
        return Limit.fairShare("export.share.tenant", "export").per("tenant").withWeights(Map.of("acme", acme));
    }

    @Test
    void annotationsDeclareLimitsOfTheirTasks() {
        runner().withBean(Jobs.class)
                .run(declares(
                        Limit.concurrency("import.running.customer.id", 4, "import")
                                .per("customer.id"),
                        Limit.rate("partner", 100, Duration.ofSeconds(10), "import", "export"),
                        exportShare(3)));
    }

    @Test
    void propertiesTakeThePlaceOfAttributesAndDeclareFurtherLimits() {
        runner().withBean(Jobs.class)
                .withBean("own", Limit.class, () -> Limit.concurrency("own", 7, "import"))
                .withPropertyValues(
                        "imports=5",
                        "pgworker.limits.partner.max-starts=50",
                        "pgworker.limits.partner.tasks=report",
                        "pgworker.limits.mail.tasks=mail,fax",
                        "pgworker.limits.mail.max-running=3",
                        "pgworker.limits.mail.per=tenant",
                        "acme-weight=2",
                        "pgworker.limits.turns.tasks=mail,fax",
                        "pgworker.limits.turns.per=customer.id",
                        "pgworker.limits.turns.weights.acme=3",
                        "pgworker.limits.turns.weights[big.com]=0.5",
                        "pgworker.limits.slow.tasks=slow",
                        "pgworker.limits.slow.max-starts=10",
                        "pgworker.limits.slow.period=1m",
                        "pgworker.limits.slow.burst=4")
                .run(declares(
                        Limit.concurrency("import.running.customer.id", 5, "import")
                                .per("customer.id"),
                        Limit.rate("partner", 50, Duration.ofSeconds(10), "import", "export", "report"),
                        Limit.concurrency("own", 7, "import"),
                        exportShare(2),
                        Limit.fairShare("turns", "mail", "fax")
                                .per("customer.id")
                                .withWeights(Map.of("acme", 3.0, "big.com", 0.5)),
                        Limit.concurrency("mail", 3, "fax", "mail").per("tenant"),
                        Limit.rate("slow", 10, Duration.ofMinutes(1), "slow").withBurst(4)));
    }

    @Test
    void aStartPutsThemAndLimitsCanBeMadeAtRunTime() {
        runner().withBean(Jobs.class).run(context -> {
            assertThat(context.getBean(Worker.class).runOnce()).isZero();
            JobLimits limits = context.getBean(JobLimits.class);
            assertThat(limits.list()).hasSize(3).allMatch(status -> status.declared());
            Limit changed = Limit.rate("partner", 7, Duration.ofSeconds(1), "import");
            assertThat(limits.put(changed).limit()).isEqualTo(changed);
            assertThat(context.getBean(Worker.class).runOnce()).isZero();
        });
    }

    @Test
    void everyMistakeInAnnotationsIsToldWithItsPlace() {
        runner().withBean(Wrong.class)
                .run(context -> assertThat(
                                FailureAnalyses.of(context.getStartupFailure()).getDescription())
                        .contains(
                                "@MaxRunning of " + Wrong.class.getName()
                                        + ".a(): value must be between 1 and 1000000, but is 0",
                                ".a(): period must be a duration such as \"1m\", but is \"soon\"",
                                ".c(): limit \"shared\" must be the same wherever it is declared, but is 2 running here, and 1 running in",
                                ".c(): burst must be between 10 and 1000000 for 100 starts in PT1S, but is 5",
                                ".none() must be used together with @JobHandler",
                                "@FairShare of " + Wrong.class.getName()
                                        + ".e(): per must be set together with weights",
                                ".f(): weights must be such as \"acme=3\", but one is \"globex\"",
                                ".d(): value must be an integer, but is \"many\"; per must not be empty"));
    }

    @Test
    void aWrongPropertyIsNamedWithWhatIsAllowed() {
        assertRefused(
                "pgworker.limits.x.max-running", "maxRunning must be set, or else maxStarts and period", "x.tasks=a");
        assertRefused(
                "pgworker.limits.x.per", "per must be set together with weights", "x.tasks=a", "x.weights.acme=1");
        assertRefused(
                "pgworker.limits.x.weights",
                "weights must be between 0.01 and 100, but that of \"acme\" is 101.0",
                "x.tasks=a",
                "x.per=t",
                "x.weights.acme=101");
        assertRefused("pgworker.limits.x.tasks", "tasks must name 1 to 100, but names 0", "x.max-running=1");
        assertRefused(
                "pgworker.limits.x.max-running",
                "maxRunning must be between 1 and 1000000, but is 0",
                "x.tasks=a",
                "x.max-running=0");
        assertRefused(
                "pgworker.limits.x.period",
                "period must be set together with maxStarts",
                "x.tasks=a",
                "x.max-starts=5");
        assertRefused(
                "pgworker.limits.x.period",
                "period must be between 1 s and 365 days, but is PT0.5S",
                "x.tasks=a",
                "x.max-starts=5",
                "x.period=500ms");
        assertRefused(
                "pgworker.limits.x.burst",
                "burst must be between 100 and 1000000",
                "x.tasks=a",
                "x.max-starts=1000",
                "x.period=1s",
                "x.burst=99");
        assertRefused("pgworker.limits.x.per", "per must not be empty", "x.tasks=a", "x.max-running=1", "x.per=a..b");
        assertRefused(
                "pgworker.limits.partner.max-starts",
                "maxStarts must not be combined with maxRunning",
                "partner.max-running=3");
    }

    private void assertRefused(String property, String reason, String... properties) {
        ApplicationContextRunner runner = runner().withBean(Jobs.class);
        for (String given : properties) {
            runner = runner.withPropertyValues("pgworker.limits." + given);
        }
        runner.run(context -> {
            Throwable cause = context.getStartupFailure();
            while (cause != null && !(cause instanceof InvalidConfigurationPropertyValueException)) {
                cause = cause.getCause();
            }
            assertThat(cause).isInstanceOfSatisfying(InvalidConfigurationPropertyValueException.class, refused -> {
                assertThat(refused.getName()).isEqualTo(property);
                assertThat(refused.getReason()).contains(reason);
            });
        });
    }
}
