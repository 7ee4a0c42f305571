package dev.pgworker.crontab;

import java.time.Duration;
import java.time.ZoneId;
import java.util.List;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

import dev.pgworker.job.JobKeyMode;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

@Tag("any-postgres")
class CrontabParserTest {

    @Test
    void readsEveryPart() {
        List<CronItem> items = parse("""
                # weekly
                30 4 * * 1 send_weekly_email ?id=w&fill=4w3d2h1m&max=10&queue=q&jobKey=a%20b&jobKeyMode=preserve_run_at&priority=-3 {a:0x10}
                0 */4 * * * rollup
                """);

        assertThat(items).extracting(CronItem::identifier).containsExactly("w", "rollup");
        CronItem item = items.get(0);
        assertThat(item.task()).isEqualTo("send_weekly_email");
        assertThat(item.fill()).isEqualTo(Duration.ofMinutes(44761));
        assertThat(item.spec().maxAttempts()).isEqualTo(10);
        assertThat(item.spec().queueName()).isEqualTo("q");
        assertThat(item.spec().jobKey()).isEqualTo("a b");
        assertThat(item.spec().jobKeyMode()).isEqualTo(JobKeyMode.PRESERVE_RUN_AT);
        assertThat(item.spec().priority()).isEqualTo(-3);
        assertThat(item.job().payload()).hasToString("{\"a\":16}");
        assertThat(items.get(1).job().payload()).isNull();
    }

    @Test
    void tellsAllProblemsAtOnceWithTheirPlace() {
        CrontabException e = catchThrowableOfType(CrontabException.class, () -> parse("""
                60 * * * * a
                  * * * * * b ?colour=red&max=0
                * * * * * c {a:01}
                hello
                * * * * * d
                * * * * * d
                """));

        assertThat(e.problems())
                .extracting(p -> p.line() + ":" + p.column() + " " + p.text())
                .containsExactly("1:1 60", "2:16 colour=red", "2:27 max=0", "3:17 1}", "4:1 hello", "6:1 d");
        assertThat(e).hasMessageContaining("worker.crontab:1:1: \"60\": minute must be 0 to 59");
    }

    @Test
    void strictModeRefusesTimeZonesByName() {
        String line = "0 3 * * * a ?tz=Europe/Berlin";
        assertThat(parse(line).get(0).zone()).isEqualTo(ZoneId.of("Europe/Berlin"));
        assertThatThrownBy(
                        () -> Crontab.builder().strict(true).text("file", line).build())
                .hasMessage("file:1:14: \"tz=Europe/Berlin\": option tz is not allowed in strict compatibility mode:"
                        + " other Graphile Workers do not know it");
    }

    private static List<CronItem> parse(String text) {
        return Crontab.parse("worker.crontab", text).items();
    }
}
