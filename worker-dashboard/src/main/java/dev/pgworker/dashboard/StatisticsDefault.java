package dev.pgworker.dashboard;

import java.util.Map;

import org.springframework.boot.EnvironmentPostProcessor;
import org.springframework.boot.SpringApplication;
import org.springframework.core.Ordered;
import org.springframework.core.env.ConfigurableEnvironment;
import org.springframework.core.env.MapPropertySource;

/** Has the workers record the figures that the dashboard shows, unless the application says otherwise. */
final class StatisticsDefault implements EnvironmentPostProcessor, Ordered {

    static final String PROPERTY = "pgworker.statistics.enabled";

    @Override
    public void postProcessEnvironment(ConfigurableEnvironment environment, SpringApplication application) {
        if (environment.getProperty("pgworker.dashboard.enabled", Boolean.class, false)) {
            environment
                    .getPropertySources()
                    .addLast(new MapPropertySource("workerDashboard", Map.of(PROPERTY, "true")));
        }
    }

    /** After the files that set properties have been read. */
    @Override
    public int getOrder() {
        return Ordered.LOWEST_PRECEDENCE;
    }
}
