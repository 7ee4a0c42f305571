package dev.pgworker.dashboard;

import java.time.Clock;

import jakarta.servlet.Servlet;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.springframework.aot.hint.RuntimeHints;
import org.springframework.aot.hint.RuntimeHintsRegistrar;
import org.springframework.beans.factory.BeanFactory;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBooleanProperty;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnWebApplication;
import org.springframework.boot.context.properties.EnableConfigurationProperties;
import org.springframework.boot.web.servlet.ServletRegistrationBean;
import org.springframework.context.ApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.ImportRuntimeHints;

import dev.pgworker.autoconfigure.WorkerInstances;
import dev.pgworker.internal.failure.WorkerLog;

/**
 * Auto-configuration of the dashboard, if {@code pgworker.dashboard.enabled} is true: in applications with a servlet container.
 *
 * @since 0.1.0
 */
@AutoConfiguration(
        afterName = {
            "dev.pgworker.autoconfigure.WorkerAutoConfiguration",
            "org.springframework.boot.security.autoconfigure.web.servlet.ServletWebSecurityAutoConfiguration",
            "org.springframework.boot.security.autoconfigure.web.servlet.SecurityFilterAutoConfiguration"
        })
@ConditionalOnBooleanProperty("pgworker.dashboard.enabled")
@ConditionalOnBean(WorkerInstances.class)
@EnableConfigurationProperties(DashboardProperties.class)
@ImportRuntimeHints(DashboardAutoConfiguration.Files.class)
public final class DashboardAutoConfiguration {

    private static final Logger log = WorkerLog.of(DashboardAutoConfiguration.class);

    private static final String SECURITY = "springSecurityFilterChain";

    /** Has native images contain the files of the pages. */
    static final class Files implements RuntimeHintsRegistrar {

        @Override
        public void registerHints(RuntimeHints hints, @Nullable ClassLoader classLoader) {
            hints.resources().registerPattern("dev/pgworker/dashboard/ui/**");
        }
    }

    /** The dashboard of a servlet application. */
    @Configuration(proxyBeanMethods = false)
    @ConditionalOnWebApplication(type = ConditionalOnWebApplication.Type.SERVLET)
    @ConditionalOnClass(Servlet.class)
    static class OfServlets {

        @Bean
        @ConditionalOnMissingBean
        DashboardAccess workerDashboardAccess(DashboardProperties properties, ApplicationContext context) {
            if (context.containsBean(SECURITY)) {
                return new RoleAccess(properties);
            }
            ServerAddress address = new ServerAddress(context);
            address.requireLoopback(properties.allowAnyAddress());
            return new LoopbackAccess(address.appliesForwards());
        }

        @Bean
        Dashboard workerDashboard(
                DashboardProperties properties,
                WorkerInstances instances,
                BeanFactory beans,
                DashboardAccess access,
                ObjectProvider<DashboardPayloads> payloads) {
            return Dashboard.create(
                    properties,
                    new Sources(instances, beans, properties.dataSource()),
                    access,
                    payloads.getIfAvailable(),
                    beans.containsBean(SECURITY),
                    Clock.systemUTC());
        }

        @Bean
        ServletRegistrationBean<DashboardServlet> workerDashboardServlet(
                Dashboard dashboard, DashboardProperties properties) {
            ServletRegistrationBean<DashboardServlet> registration =
                    new ServletRegistrationBean<>(dashboard.servlet(), properties.path() + "/*");
            registration.setName("workerDashboard");
            registration.setAsyncSupported(true);
            return registration;
        }
    }

    /** Says why there is no dashboard. */
    @Configuration(proxyBeanMethods = false)
    @ConditionalOnWebApplication(type = ConditionalOnWebApplication.Type.REACTIVE)
    static class OfReactive {

        OfReactive() {
            log.warn("There is no dashboard, because it needs Spring MVC, and this application uses Spring WebFlux."
                    + " Set pgworker.dashboard.enabled=false, or serve it from an application with Spring MVC on the same"
                    + " database.");
        }
    }
}
