package dev.pgworker.autoconfigure;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.SpringBootVersion;
import org.springframework.context.ApplicationContextInitializer;
import org.springframework.core.io.support.SpringFactoriesLoader;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

class BootVersionCheckTest {

    @ParameterizedTest
    @ValueSource(strings = {"1.5.22.RELEASE", "2.7.18", "3.5.16"})
    void olderVersionsFailStartupWithASentence(String version) {
        assertThatThrownBy(() -> BootVersionCheck.check(version))
                .isInstanceOf(WorkerConfigurationException.class)
                .hasMessageContainingAll("needs Spring Boot 4.0 or later", version);
    }

    @ParameterizedTest
    @ValueSource(strings = {"4.0.0", "4.2.0-M2", "10.1.0", "unknown"})
    void othersDoNot(String version) {
        BootVersionCheck.check(version);
        BootVersionCheck.check(SpringBootVersion.getVersion());
        BootVersionCheck.check(null);
    }

    @Test
    void everyApplicationIsChecked() {
        assertThat(SpringFactoriesLoader.forDefaultResourceLocation(getClass().getClassLoader())
                        .load(ApplicationContextInitializer.class))
                .anyMatch(BootVersionCheck.class::isInstance);
    }
}
