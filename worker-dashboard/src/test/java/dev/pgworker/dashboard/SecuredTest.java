package dev.pgworker.dashboard;

import java.net.http.HttpResponse;
import java.util.Base64;
import java.util.List;

import org.junit.jupiter.api.Test;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.security.config.Customizer;
import org.springframework.security.config.annotation.web.builders.HttpSecurity;
import org.springframework.security.core.userdetails.User;
import org.springframework.security.core.userdetails.UserDetailsService;
import org.springframework.security.provisioning.InMemoryUserDetailsManager;
import org.springframework.security.web.SecurityFilterChain;

import dev.pgworker.guide.DocumentedDashboard;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

/** With Spring Security: who may read, who may change, and how those who have not signed in are asked to. */
class SecuredTest {

    private static final String ADD = "{\"task\":\"t\"}";

    @Configuration(proxyBeanMethods = false)
    static class Users {

        @Bean
        UserDetailsService users() {
            return new InMemoryUserDetailsManager(
                    User.withUsername("ann").password("{noop}ann").roles("USER").build(),
                    User.withUsername("rita")
                            .password("{noop}rita")
                            .roles("PGWORKER_READER")
                            .build(),
                    User.withUsername("olga")
                            .password("{noop}olga")
                            .roles("PGWORKER_OPERATOR")
                            .build());
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class EverythingPermitted {

        @Bean
        SecurityFilterChain open(HttpSecurity http) {
            return http.authorizeHttpRequests(requests -> requests.anyRequest().permitAll())
                    .httpBasic(Customizer.withDefaults())
                    .build();
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class Login {

        @Bean
        SecurityFilterChain login(HttpSecurity http) {
            return http.authorizeHttpRequests(requests -> requests.anyRequest().permitAll())
                    .formLogin(Customizer.withDefaults())
                    .build();
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class Elsewhere {

        @Bean
        SecurityFilterChain elsewhere(HttpSecurity http) {
            return http.securityMatcher("/other/**").build();
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class OwnAccess {

        @Bean
        DashboardAccess access() {
            return new DashboardAccess() {
                @Override
                public boolean mayRead(jakarta.servlet.http.HttpServletRequest request) {
                    return "let me in".equals(request.getHeader("X-Word"));
                }

                @Override
                public boolean may(DashboardAction action, jakarta.servlet.http.HttpServletRequest request) {
                    if (action == DashboardAction.SWEEP) {
                        throw new IllegalStateException("broken");
                    }
                    return action == DashboardAction.ADD;
                }
            };
        }
    }

    private static Http as(Http http, String user) {
        return http.with(
                "Authorization", "Basic " + Base64.getEncoder().encodeToString((user + ":" + user).getBytes(UTF_8)));
    }

    @Test
    void aChainThatPermitsEverythingOpensNothing() {
        try (Application application = Application.secured(
                List.of(Users.class, EverythingPermitted.class), "pgworker.dashboard.allow-actions=true")) {
            HttpResponse<String> anonymous = application.http().get("/pgworker/");
            assertThat(anonymous.statusCode()).isEqualTo(401);
            assertThat(anonymous.headers().firstValue("WWW-Authenticate")).isPresent();
            assertThat(application.api().get("/me").statusCode()).isEqualTo(401);
            assertThat(Http.error(application.api().get("/me"))).contains("You have not signed in");

            HttpResponse<String> user = as(application.api(), "ann").get("/me");
            assertThat(user.statusCode()).isEqualTo(403);
            assertThat(Http.error(user)).contains("PGWORKER_READER or PGWORKER_OPERATOR");
            assertThat(as(application.http(), "ann").get("/pgworker/").statusCode())
                    .isEqualTo(403);

            Http reader = as(application.api(), "rita");
            assertThat(reader.json("/me").path("user").asString()).isEqualTo("rita");
            assertThat(reader.json("/me").path("readOnly").asBoolean()).isTrue();
            assertThat(reader.json("/me").path("actions")).isEmpty();
            assertThat(reader.withCsrf().post("/default/jobs", ADD).statusCode())
                    .isEqualTo(403);

            Http operator = as(application.api(), "olga");
            assertThat(operator.json("/me").path("actions")).hasSize(15);
            assertThat(operator.json("/me").path("readOnlyReason").isNull()).isTrue();
        }
    }

    /** The tokens of Spring Security and of the dashboard are sent together; each of them is needed. */
    @Test
    void operatorsChangeWithBothTokens() {
        try (Application application = Application.secured(
                List.of(Users.class, EverythingPermitted.class), "pgworker.dashboard.allow-actions=true")) {
            Http operator = as(application.api(), "olga").withCsrf();

            assertThat(operator.post("/default/jobs", ADD).statusCode()).isEqualTo(200);
            assertThat(operator.without("X-CSRF-TOKEN")
                            .post("/default/jobs", ADD)
                            .statusCode())
                    .isEqualTo(403);
            assertThat(operator.withCsrf()
                            .without("X-PgWorker-Csrf")
                            .post("/default/jobs", ADD)
                            .statusCode())
                    .isEqualTo(403);
            assertThat(application.queries().backlog().ready()).isEqualTo(1);
        }
    }

    /** A proxy may ask under another name than the visitor's, which the application then takes from a header. */
    @Test
    void changesPassAProxyThatAsksUnderAnotherName() {
        try (Application application = Application.secured(
                List.of(Users.class, EverythingPermitted.class),
                "pgworker.dashboard.allow-actions=true",
                "server.forward-headers-strategy=framework")) {
            Http operator = as(application.api(), "olga")
                    .with("Host", "backend:8080")
                    .with("X-Forwarded-Host", "admin.example")
                    .with("X-Forwarded-Proto", "http")
                    .with("Origin", "http://admin.example")
                    .withCsrf();

            assertThat(operator.post("/default/jobs", ADD).statusCode()).isEqualTo(200);
            for (String other : List.of("http://evil.example", "http://admin.example:8080", "http://example")) {
                assertThat(operator.with("Origin", other)
                                .post("/default/jobs", ADD)
                                .statusCode())
                        .as(other)
                        .isEqualTo(403);
            }
        }
    }

    @Test
    void visitorsAreSentToTheLoginOfTheApplication() {
        try (Application application = Application.secured(List.of(Users.class, Login.class))) {
            HttpResponse<String> page =
                    application.http().with("Accept", "text/html").get("/pgworker/jobs?state=failed");
            assertThat(page.statusCode()).isEqualTo(302);
            assertThat(page.headers().firstValue("Location").orElseThrow()).endsWith("/login");
            assertThat(application.api().get("/default/overview").statusCode()).isEqualTo(401);
        }
    }

    @Test
    void withoutAChainForItNobodyHasAccess() {
        try (Application application = Application.secured(List.of(Users.class, Elsewhere.class))) {
            assertThat(application.http().get("/pgworker/").statusCode()).isEqualTo(401);
            assertThat(as(application.api(), "olga").get("/me").statusCode()).isEqualTo(401);
        }
    }

    @Test
    void anAccessBeanDecidesInstead() {
        try (Application application = Application.unsecured(
                List.of(OwnAccess.class), "pgworker.dashboard.allow-actions=true", "server.address=0.0.0.0")) {
            assertThat(application.api().get("/me").statusCode()).isEqualTo(403);
            Http visitor = application.api().with("X-Word", "let me in").with("X-Forwarded-For", "1.2.3.4");
            assertThat(visitor.json("/me").path("actions").toString()).isEqualTo("[\"add\"]");
            visitor.withCsrf();
            assertThat(visitor.post("/default/jobs", ADD).statusCode()).isEqualTo(200);
            assertThat(visitor.post("/default/jobs", "{\"task\":\"t\",\"key\":\"k\"}")
                            .statusCode())
                    .isEqualTo(200);
            HttpResponse<String> again = visitor.post("/default/jobs", "{\"task\":\"other\",\"key\":\"k\"}");
            assertThat(again.statusCode()).isEqualTo(403);
            assertThat(Http.error(again)).contains("would be replaced", "reschedule");
            assertThat(application
                            .api()
                            .with("X-Word", "let me in")
                            .get("/default/jobs?task=other")
                            .body())
                    .contains("\"jobs\":[]");
            assertThat(visitor.post("/default/cleanup", "{}").statusCode()).isEqualTo(403);
            assertThat(visitor.post("/default/sweep", "{}").statusCode()).isEqualTo(403);
        }
    }

    @Test
    void operatorsChangeNothingUnlessActionsAreAllowed() {
        try (Application application = Application.secured(List.of(Users.class, EverythingPermitted.class))) {
            Http operator = as(application.api(), "olga").withCsrf();

            assertThat(operator.json("/me").path("readOnlyReason").asString())
                    .contains("pgworker.dashboard.allow-actions");
            HttpResponse<String> answer = operator.post("/default/jobs", ADD);
            assertThat(answer.statusCode()).isEqualTo(403);
            assertThat(Http.error(answer)).contains("pgworker.dashboard.allow-actions");
        }
    }

    @Test
    void theChainAndTheAccessOfTheGuideDoWhatItSays() {
        try (Application application = Application.secured(
                List.of(Users.class, Login.class, DocumentedDashboard.Chain.class),
                "pgworker.dashboard.allow-actions=true")) {
            assertThat(application.http().get("/pgworker/").statusCode()).isEqualTo(401);
            assertThat(as(application.api(), "ann").get("/me").statusCode()).isEqualTo(403);
            assertThat(as(application.api(), "rita").json("/me").path("actions"))
                    .isEmpty();
            assertThat(as(application.api(), "olga")
                            .withCsrf()
                            .post("/default/jobs", ADD)
                            .statusCode())
                    .isEqualTo(200);
        }
        try (Application application = Application.secured(
                List.of(Staff.class, EverythingPermitted.class, DocumentedDashboard.Access.class),
                "pgworker.dashboard.allow-actions=true")) {
            assertThat(as(application.api(), "ann").get("/me").statusCode()).isEqualTo(403);
            assertThat(as(application.api(), "sam").json("/me").path("actions").toString())
                    .isEqualTo("[\"run-now\"]");
            HttpResponse<String> refused = as(application.api(), "sam")
                    .withCsrf()
                    .post("/default/jobs/retry", "{\"id\":1,\"payload\":\"{}\"}");
            assertThat(refused.statusCode()).isEqualTo(403);
            assertThat(Http.error(refused)).contains("another payload", "add");
            assertThat(as(application.api(), "olga").json("/me").path("actions"))
                    .hasSize(15);
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class Staff {

        @Bean
        UserDetailsService users() {
            return new InMemoryUserDetailsManager(
                    User.withUsername("ann").password("{noop}ann").roles("USER").build(),
                    User.withUsername("sam")
                            .password("{noop}sam")
                            .roles("SUPPORT")
                            .build(),
                    User.withUsername("olga")
                            .password("{noop}olga")
                            .roles("OPERATOR")
                            .build());
        }
    }
}
