package dev.pgworker.samples.secured;

import org.springframework.boot.security.autoconfigure.actuate.web.servlet.EndpointRequest;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.core.annotation.Order;
import org.springframework.security.config.Customizer;
import org.springframework.security.config.annotation.web.builders.HttpSecurity;
import org.springframework.security.config.http.SessionCreationPolicy;
import org.springframework.security.web.SecurityFilterChain;

@Configuration(proxyBeanMethods = false)
class WorkerEndpointSecurity {

    @Bean
    @Order(1)
    SecurityFilterChain operatorsOnly(HttpSecurity http) throws Exception {
        return http.securityMatcher(EndpointRequest.to("worker"))
                .authorizeHttpRequests(requests -> requests.anyRequest().hasRole("OPERATOR"))
                .httpBasic(Customizer.withDefaults())
                .sessionManagement(sessions -> sessions.sessionCreationPolicy(SessionCreationPolicy.STATELESS))
                .csrf(csrf -> csrf.disable())
                .build();
    }
}
