package dev.pgworker.guide;

import jakarta.servlet.http.HttpServletRequest;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.core.annotation.Order;
import org.springframework.security.config.Customizer;
import org.springframework.security.config.annotation.web.builders.HttpSecurity;
import org.springframework.security.web.SecurityFilterChain;

import dev.pgworker.dashboard.DashboardAccess;
import dev.pgworker.dashboard.DashboardAction;
import dev.pgworker.dashboard.DashboardPayloads;

/** What docs/dashboard.md shows. */
public final class DocumentedDashboard {

    private DocumentedDashboard() {}

    @Configuration(proxyBeanMethods = false)
    public static class Chain {

        @Bean
        @Order(1)
        SecurityFilterChain dashboard(HttpSecurity http) {
            return http.securityMatcher("/pgworker/**")
                    .authorizeHttpRequests(
                            requests -> requests.anyRequest().hasAnyRole("PGWORKER_READER", "PGWORKER_OPERATOR"))
                    .httpBasic(Customizer.withDefaults())
                    .build();
        }
    }

    @Configuration(proxyBeanMethods = false)
    public static class Access {

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
    public static class Payloads {

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
