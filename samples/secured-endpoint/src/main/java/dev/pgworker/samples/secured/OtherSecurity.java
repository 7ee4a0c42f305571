package dev.pgworker.samples.secured;

import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.security.config.Customizer;
import org.springframework.security.config.annotation.web.builders.HttpSecurity;
import org.springframework.security.core.userdetails.User;
import org.springframework.security.core.userdetails.UserDetailsService;
import org.springframework.security.provisioning.InMemoryUserDetailsManager;
import org.springframework.security.web.SecurityFilterChain;

/** The application's own users and rules, for whatever is not the worker's endpoint. */
@Configuration(proxyBeanMethods = false)
class OtherSecurity {

    @Bean
    UserDetailsService users() {
        return new InMemoryUserDetailsManager(
                User.withUsername("operator")
                        .password("{noop}secret")
                        .roles("OPERATOR")
                        .build(),
                User.withUsername("user").password("{noop}secret").roles("USER").build());
    }

    @Bean
    SecurityFilterChain everythingElse(HttpSecurity http) throws Exception {
        return http.authorizeHttpRequests(requests -> requests.anyRequest().authenticated())
                .httpBasic(Customizer.withDefaults())
                .build();
    }
}
