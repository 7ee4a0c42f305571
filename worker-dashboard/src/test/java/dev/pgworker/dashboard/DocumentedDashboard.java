package dev.pgworker.dashboard;

import jakarta.servlet.http.HttpServletRequest;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.core.annotation.Order;
import org.springframework.security.config.Customizer;
import org.springframework.security.config.annotation.web.builders.HttpSecurity;
import org.springframework.security.web.SecurityFilterChain;

/** What docs/dashboard.md shows. */
final class DocumentedDashboard {

    private DocumentedDashboard() {}

    @Configuration(proxyBeanMethods = false)
    static class Chain {

        @Bean
        @Order(1)
        SecurityFilterChain dashboard(HttpSecurity http) {
            return http.securityMatcher("/worker/**")
                    .authorizeHttpRequests(
                            requests -> requests.anyRequest().hasAnyRole("WORKER_READER", "WORKER_OPERATOR"))
                    .httpBasic(Customizer.withDefaults())
                    .build();
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class Access {

        @Bean
        DashboardAccess dashboardAccess() {
            return new DashboardAccess() {
                @Override
                public boolean mayRead(HttpServletRequest request) {
                    return request.isUserInRole("SUPPORT") || request.isUserInRole("OPERATOR");
                }

                @Override
                public boolean may(DashboardAction action, HttpServletRequest request) {
                    return request.isUserInRole("OPERATOR") || action == DashboardAction.RUN_NOW;
                }
            };
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class Payloads {

        @Bean
        DashboardPayloads dashboardPayloads() {
            return (task, json, user) -> switch (task) {
                case "send-greeting" -> json;
                case "charge-card" -> json.replaceAll("[0-9]{12,19}", "****");
                default -> null;
            };
        }
    }
}
