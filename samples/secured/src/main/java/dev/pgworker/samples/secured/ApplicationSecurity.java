package dev.pgworker.samples.secured;

import org.springframework.boot.security.autoconfigure.actuate.web.servlet.EndpointRequest;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.security.config.Customizer;
import org.springframework.security.config.annotation.web.builders.HttpSecurity;
import org.springframework.security.core.userdetails.User;
import org.springframework.security.core.userdetails.UserDetailsService;
import org.springframework.security.provisioning.InMemoryUserDetailsManager;
import org.springframework.security.web.SecurityFilterChain;

/** The rules for whatever is not the worker's endpoint: people log in with a browser, and forms need a CSRF token. */
@Configuration(proxyBeanMethods = false)
class ApplicationSecurity {

    @Bean
    SecurityFilterChain everythingElse(HttpSecurity http) {
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
