package dev.pgworker.autoconfigure;

import java.time.ZoneId;
import java.util.List;

import org.awaitility.Awaitility;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.springframework.boot.diagnostics.FailureAnalysis;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;

import dev.pgworker.crontab.CronItem;

import static org.assertj.core.api.Assertions.assertThat;

/** Recurring jobs from properties, a file and beans. */
@ExtendWith(OutputCaptureExtension.class)
class CrontabInApplicationTest {

    @RegisterExtension
    final TestDatabase db = new TestDatabase();

    @Test
    void propertyFileAndBeansFormOneCrontab(CapturedOutput output) {
        db.runner()
                .withBean(Greetings.class)
                .withBean(
                        CronItem.class, () -> CronItem.of("bean").dailyAt(3, 0).build())
                .withPropertyValues(
                        "worker.crontab=# text block\n0 4 * * * property ?id=first\n0 5 * * * property ?id=second\n",
                        "worker.crontab-file=classpath:test.crontab",
                        "worker.crontab-zone=Europe/Berlin")
                .run(context -> {
                    Awaitility.await().until(() -> known().size() == 4);
                    assertThat(known()).containsExactly("bean", "first", "from_file", "second");
                    assertThat(context.getBean(WorkerProperties.class).crontabZone())
                            .isEqualTo(ZoneId.of("Europe/Berlin"));
                    assertThat(output)
                            .contains("Cron item first is of task property, which this worker does not serve");
                });
    }

    @Test
    void allMistakesOfAllTextsStopTheStart() {
        db.runner()
                .withBean(Greetings.class)
                .withPropertyValues(
                        "worker.crontab=* * * * * a ?colour=red\n99 * * * * b",
                        "worker.crontab-file=classpath:wrong.crontab")
                .run(context -> {
                    FailureAnalysis analysis = FailureAnalyses.of(context.getStartupFailure());
                    assertThat(analysis.getDescription())
                            .contains("worker.crontab:1:14: \"colour=red\": option colour is unknown")
                            .contains("worker.crontab:2:1: \"99\"")
                            .contains("wrong.crontab]):2:3: \"24\": hour must be 0 to 23");
                });
    }

    private List<String> known() {
        return db.sql("select identifier from {schema}._private_known_crontabs order by 1")
                .query(String.class)
                .list();
    }
}
