package dev.pgworker.dashboard;

import org.junit.jupiter.api.Test;

import static org.assertj.core.api.Assertions.assertThat;

/** The name under which changes are told is always one, and never more than a name. */
class VisitorTest {

    @Test
    void namesFitOnALineOfTheLog() {
        assertThat(new Visitor(null).actingName()).isEqualTo("dashboard");
        assertThat(new Visitor(() -> "kim").actingName()).isEqualTo("kim");
        assertThat(new Visitor(() -> "").actingName()).isEqualTo("dashboard");
        assertThat(new Visitor(() -> "\n\ud800").actingName()).isEqualTo("dashboard");
        assertThat(new Visitor(() -> "kim\nINFO forged\u2028line").actingName()).isEqualTo("kim INFO forged line");
        assertThat(new Visitor(() -> "x".repeat(10_000)).actingName()).hasSize(255);
    }
}
