package dev.pgworker.samples.secured;

import org.springframework.boot.security.autoconfigure.actuate.web.servlet.EndpointRequest;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.core.annotation.Order;
import org.springframework.http.HttpMethod;
import org.springframework.http.HttpStatus;
import org.springframework.security.config.annotation.web.builders.HttpSecurity;
import org.springframework.security.config.http.SessionCreationPolicy;
import org.springframework.security.web.SecurityFilterChain;
import org.springframework.security.web.authentication.HttpStatusEntryPoint;

@Configuration(proxyBeanMethods = false)
class WorkerEndpointSecurity {

    @Bean
    @Order(1)
    SecurityFilterChain supportLooksAndOperatorsChange(HttpSecurity http) {
        return http.securityMatcher(EndpointRequest.to("pgworker"))
                .authorizeHttpRequests(requests -> requests.requestMatchers(HttpMethod.GET)
                        .hasAnyRole("SUPPORT", "OPERATOR")
                        .anyRequest()
                        .hasRole("OPERATOR"))
                // A browser does not offer to log in, and so never sends credentials along with a form of another site.
                .httpBasic(basic -> basic.authenticationEntryPoint(new HttpStatusEntryPoint(HttpStatus.UNAUTHORIZED)))
                .sessionManagement(sessions -> sessions.sessionCreationPolicy(SessionCreationPolicy.STATELESS))
                .csrf(csrf -> csrf.disable())
                .build();
    }
}
