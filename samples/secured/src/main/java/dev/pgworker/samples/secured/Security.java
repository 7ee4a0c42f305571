package dev.pgworker.samples.secured;

import org.springframework.boot.security.autoconfigure.actuate.web.servlet.EndpointRequest;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.core.annotation.Order;
import org.springframework.http.HttpMethod;
import org.springframework.http.HttpStatus;
import org.springframework.security.config.Customizer;
import org.springframework.security.config.annotation.web.builders.HttpSecurity;
import org.springframework.security.config.annotation.web.configurers.AbstractHttpConfigurer;
import org.springframework.security.config.http.SessionCreationPolicy;
import org.springframework.security.core.userdetails.User;
import org.springframework.security.core.userdetails.UserDetailsService;
import org.springframework.security.provisioning.InMemoryUserDetailsManager;
import org.springframework.security.web.SecurityFilterChain;
import org.springframework.security.web.authentication.HttpStatusEntryPoint;

@Configuration(proxyBeanMethods = false)
class Security {

    /**
     * The endpoint is for programs: each request brings its credentials and no session counts, so that a form of
     * another site finds nothing to misuse and CSRF tokens are not needed. The answer 401 names no scheme, because a
     * browser would offer to log in, and would send the credentials along with such a form.
     */
    @Bean
    @Order(1)
    SecurityFilterChain workerEndpointSecurity(HttpSecurity http) {
        return http.securityMatcher(EndpointRequest.to("worker"))
                .authorizeHttpRequests(requests -> requests.requestMatchers(HttpMethod.GET)
                        .hasAnyRole("SUPPORT", "OPERATOR")
                        .anyRequest()
                        .hasRole("OPERATOR"))
                .httpBasic(basic -> basic.authenticationEntryPoint(new HttpStatusEntryPoint(HttpStatus.UNAUTHORIZED)))
                .sessionManagement(sessions -> sessions.sessionCreationPolicy(SessionCreationPolicy.STATELESS))
                .csrf(AbstractHttpConfigurer::disable)
                .build();
    }

    /** Everything else is for people with a browser, with sessions and CSRF tokens. */
    @Bean
    @Order(2)
    SecurityFilterChain applicationSecurity(HttpSecurity http) {
        return http.authorizeHttpRequests(requests -> requests.requestMatchers(EndpointRequest.to("health"))
                        .permitAll()
                        .anyRequest()
                        .authenticated())
                .formLogin(Customizer.withDefaults())
                .build();
    }

    /** Users of a sample; yours come from a database or a directory. */
    @Bean
    UserDetailsService users() {
        return new InMemoryUserDetailsManager(
                User.withUsername("ada").password("{noop}ada").roles("USER").build(),
                User.withUsername("sam").password("{noop}sam").roles("SUPPORT").build(),
                User.withUsername("olga")
                        .password("{noop}olga")
                        .roles("USER", "OPERATOR")
                        .build());
    }
}
