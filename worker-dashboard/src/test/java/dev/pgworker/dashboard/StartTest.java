package dev.pgworker.dashboard;

import java.util.List;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.aot.hint.RuntimeHints;
import org.springframework.aot.hint.predicate.RuntimeHintsPredicates;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.context.properties.source.InvalidConfigurationPropertyValueException;
import org.springframework.boot.diagnostics.FailureAnalysis;
import org.springframework.boot.jdbc.autoconfigure.DataSourceAutoConfiguration;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.boot.test.context.runner.ReactiveWebApplicationContextRunner;
import org.springframework.boot.test.context.runner.WebApplicationContextRunner;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;

import dev.pgworker.autoconfigure.JobSchedulerAutoConfiguration;
import dev.pgworker.testsupport.TestPostgres;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

/** Where there is a dashboard, where not, and where the application does not start. */
@ExtendWith(OutputCaptureExtension.class)
class StartTest {

    private static final AutoConfigurations configurations = AutoConfigurations.of(
            DataSourceAutoConfiguration.class, JobSchedulerAutoConfiguration.class, DashboardAutoConfiguration.class);

    private static final String[] PROPERTIES = {
        "spring.datasource.url=" + TestPostgres.jdbcUrl(),
        "spring.datasource.hikari.minimum-idle=0",
        "pgworker.schema.mode=none"
    };

    @Test
    void thereIsNoneUnlessItIsEnabled() {
        new WebApplicationContextRunner()
                .withConfiguration(configurations)
                .withPropertyValues(PROPERTIES)
                .run(context -> assertThat(context).doesNotHaveBean(Dashboard.class));
        new WebApplicationContextRunner()
                .withConfiguration(configurations)
                .withPropertyValues(PROPERTIES)
                .withPropertyValues("pgworker.dashboard.enabled=true")
                .run(context -> assertThat(context).hasSingleBean(Dashboard.class));
    }

    @Test
    void thereIsNoneWithoutAWebServer() {
        new ApplicationContextRunner()
                .withConfiguration(configurations)
                .withPropertyValues(PROPERTIES)
                .withPropertyValues("pgworker.dashboard.enabled=true")
                .run(context -> assertThat(context).hasNotFailed().doesNotHaveBean(Dashboard.class));
    }

    @Test
    void anApplicationWithWebFluxIsToldWhatItNeeds(CapturedOutput output) {
        new ReactiveWebApplicationContextRunner()
                .withConfiguration(configurations)
                .withPropertyValues(PROPERTIES)
                .withPropertyValues("pgworker.dashboard.enabled=true")
                .run(context -> assertThat(context).hasNotFailed().doesNotHaveBean(Dashboard.class));

        assertThat(output).contains("There is no dashboard, because it needs Spring MVC");
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "",
                "/",
                "pgworker",
                "/pgworker/",
                "/**",
                "/a/*",
                "/{x}",
                "/a//b",
                "/a/../b",
                "/.",
                "/a b",
                "/a?b",
                "/ä"
            })
    void thePathIsChecked(String path) {
        new WebApplicationContextRunner()
                .withConfiguration(configurations)
                .withPropertyValues(PROPERTIES)
                .withPropertyValues("pgworker.dashboard.enabled=true", "pgworker.dashboard.path=" + path)
                .run(context -> assertThat(context.getStartupFailure())
                        .rootCause()
                        .isInstanceOf(InvalidConfigurationPropertyValueException.class)
                        .hasMessageContaining("pgworker.dashboard.path"));
    }

    @ParameterizedTest
    @ValueSource(strings = {"server.address=0.0.0.0", "server.address=::", "pgworker.enabled=true"})
    void aServerThatOthersCanReachDoesNotStart(String property) {
        assertThatThrownBy(() -> Application.start(
                        Application.newSchema(),
                        List.of(),
                        Application.withoutSecurity("pgworker.schema.mode=none", property)))
                .satisfies(failure -> {
                    Throwable cause = failure;
                    while (!(cause instanceof OpenAddressException)) {
                        assertThat(cause).isNotNull();
                        cause = cause.getCause();
                    }
                    FailureAnalysis analysis = new OpenAddressFailureAnalyzer().analyze(failure);
                    assertThat(analysis.getDescription()).contains("without Spring Security");
                    assertThat(analysis.getAction())
                            .contains("pgworker.dashboard.allow-any-address=true", "server.address=127.0.0.1");
                });
    }

    /** Even then requests of others are refused. */
    @Test
    void itStartsIfThatIsAllowed() {
        try (Application application = Application.start(
                Application.newSchema(),
                List.of(),
                Application.withoutSecurity("pgworker.dashboard.allow-any-address=true"))) {
            assertThat(application.api().get("/me").statusCode()).isEqualTo(200);
            assertThat(application
                            .api()
                            .with("X-Forwarded-For", "10.0.0.1")
                            .get("/me")
                            .statusCode())
                    .isEqualTo(403);
        }
    }

    @Test
    void headersThatChangeTheSenderCloseIt() {
        try (Application application = Application.unsecured("server.forward-headers-strategy=native")) {
            assertThat(application.api().get("/me").statusCode()).isEqualTo(403);
        }
        try (Application application = Application.unsecured("server.forward-headers-strategy=framework")) {
            assertThat(application
                            .api()
                            .with("X-Forwarded-For", "127.0.0.1")
                            .get("/me")
                            .statusCode())
                    .isEqualTo(403);
        }
    }

    @Test
    void itStandsBelowTheContextPathWhateverTheApplicationServes() {
        try (Application application = Application.unsecured(
                "server.servlet.context-path=/shop",
                "spring.mvc.servlet.path=/mvc",
                "pgworker.dashboard.path=/ops/jobs")) {
            assertThat(application.http().get("/shop/ops/jobs").headers().firstValue("Location"))
                    .hasValue("/shop/ops/jobs/");
            assertThat(application.http().get("/shop/ops/jobs/tasks").body())
                    .contains("<base href=\"/shop/ops/jobs/\">");
            assertThat(application.http().get("/shop/ops/jobs/api/me").statusCode())
                    .isEqualTo(200);
        }
    }

    @Test
    void aReplicaHasToBeADataSource() {
        new WebApplicationContextRunner()
                .withConfiguration(configurations)
                .withPropertyValues(PROPERTIES)
                .withPropertyValues("pgworker.dashboard.enabled=true", "pgworker.dashboard.data-source=replica")
                .run(context -> assertThat(context.getStartupFailure())
                        .rootCause()
                        .hasMessageContaining("pgworker.dashboard.data-source"));
    }

    @Test
    void nativeImagesContainTheFilesOfThePages() {
        RuntimeHints hints = new RuntimeHints();
        new DashboardAutoConfiguration.Files().registerHints(hints, null);

        assertThat(RuntimeHintsPredicates.resource().forResource("dev/pgworker/dashboard/ui/index.html"))
                .accepts(hints);
        assertThat(RuntimeHintsPredicates.resource().forResource("dev/pgworker/dashboard/ui/assets/app.js"))
                .accepts(hints);
    }
}
