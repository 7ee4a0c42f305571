package dev.pgworker.internal.failure;

import java.sql.SQLException;
import java.sql.SQLTransientConnectionException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import dev.pgworker.testing.LogCapture;

import static org.assertj.core.api.Assertions.assertThat;

@Tag("any-postgres")
class OutageLogTest {

    private static SQLException state(String state) {
        return new SQLException("on purpose", state);
    }

    @Test
    void lastsUntilTheLastServiceHasRecovered() {
        Outage outage = new Outage(Duration.ZERO);
        outage.failed("a", state("08006"));
        outage.failed("b", state("08006"));
        outage.failed("a", state("08006"));

        outage.succeeded("a");
        assertThat(outage.isPresent()).isTrue();
        outage.succeeded("b");
        assertThat(outage.isPresent()).isFalse();
    }

    @Test
    void aServiceThatLeavesNeitherHoldsUpTheEndNorBringsIt() {
        Outage outage = new Outage(Duration.ZERO);
        outage.failed("a", state("08006"));
        outage.failed("b", state("08006"));

        outage.left("a");
        outage.left("b");
        assertThat(outage.isPresent()).isTrue();
        outage.succeeded("c");
        assertThat(outage.isPresent()).isFalse();
    }

    @Test
    void aFailureSoonAfterARecoveryBelongsToTheSameOutage() {
        try (LogCapture log = new LogCapture(Outage.class)) {
            Outage patient = new Outage(Duration.ofHours(1));
            patient.failed("a", state("08006"));
            patient.succeeded("a");
            assertThat(patient.isPresent()).isTrue();
            patient.failed("a", state("08001"));
            assertThat(log.messages()).hasSize(1);
        }
    }

    @Test
    void isMeasuredFromTheFirstFailureToTheRecovery() throws InterruptedException {
        try (LogCapture log = new LogCapture(Outage.class)) {
            Outage outage = new Outage(Duration.ZERO);
            long begin = System.nanoTime();
            outage.failed("a", state("08006"));
            Thread.sleep(300); // the time that is measured
            outage.succeeded("a");
            double most = (System.nanoTime() - begin) / 1e9;

            String message = log.messages().get(1);
            double told = Double.parseDouble(message.replaceAll(".*failed for ([0-9.]+) s.*", "$1"));
            assertThat(told).isBetween(0.29, most);
        }
    }

    @Test
    void anotherCauseIsToldOnceAndWithItsRemedy() {
        List<Throwable> told = new ArrayList<>();
        try (LogCapture log = new LogCapture(Outage.class)) {
            Outage outage = new Outage(Duration.ZERO, told::add);
            outage.failed("a", state("57P01"));
            outage.failed("b", state("08006"));
            outage.failed("a", state("25006"));
            outage.failed("b", state("08001"));
            outage.failed("b", state("25006"));

            assertThat(log.messages()).hasSize(2);
            assertThat(log.messages().get(1)).contains("still").contains("targetServerType=primary");
            assertThat(told).hasSize(2);

            outage.succeeded("a");
            outage.succeeded("b");
            outage.failed("a", state("25006"));
            assertThat(log.messages()).hasSize(4);
        }
    }

    @Test
    void anEmptyPoolIsToldWithTheNumberToRaise() {
        try (LogCapture log = new LogCapture(Outage.class)) {
            new Outage().failed("a", new SQLTransientConnectionException("no connection within 5000 ms"));
            assertThat(log.messages().get(0)).contains("maximum-pool-size");

            new Outage()
                    .failed(
                            "a",
                            new SQLTransientConnectionException(
                                    "request timed out after 30020ms (total=0, active=0, idle=0, waiting=1)"));
            assertThat(log.messages().get(1)).contains("socketTimeout").doesNotContain("maximum-pool-size");
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"40001", "40P01", "57014", "55P03", "22023", "42883"})
    void otherFailuresAreNoOutage(String state) {
        Outage outage = new Outage();
        outage.failed("a", state(state));
        outage.failed("a", new IllegalStateException("on purpose"));
        assertThat(outage.isPresent()).isFalse();
    }
}
