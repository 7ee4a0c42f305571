package dev.pgworker.autoconfigure;

import org.jspecify.annotations.Nullable;
import org.springframework.boot.SpringBootVersion;
import org.springframework.context.ApplicationContextInitializer;
import org.springframework.context.ConfigurableApplicationContext;

/** Fails startup with a sentence where an older Spring Boot would fail with whatever it meets first. */
final class BootVersionCheck implements ApplicationContextInitializer<ConfigurableApplicationContext> {

    @Override
    public void initialize(ConfigurableApplicationContext context) {
        check(SpringBootVersion.getVersion());
    }

    /** Accepts what it cannot read. */
    static void check(@Nullable String version) {
        if (version != null && version.matches("[1-3]\\..*")) {
            throw new WorkerConfigurationException(
                    "PgWorker needs Spring Boot 4.0 or later, but the application has Spring Boot " + version + ".",
                    "Upgrade Spring Boot.");
        }
    }
}
