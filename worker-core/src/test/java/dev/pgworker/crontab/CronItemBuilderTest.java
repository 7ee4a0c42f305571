package dev.pgworker.crontab;

import java.time.DayOfWeek;
import java.time.Duration;
import java.time.Month;
import java.time.ZoneId;
import java.util.List;
import java.util.function.UnaryOperator;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

import dev.pgworker.job.JobKeyMode;
import dev.pgworker.job.JobSpec;
import dev.pgworker.job.Task;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

@Tag("any-postgres")
class CronItemBuilderTest {

    @Test
    void eachScheduleIsThePatternOfACrontab() {
        assertPattern("* * * * *", CronItem.Builder::everyMinute);
        assertPattern("*/7 * * * *", item -> item.everyMinutes(7));
        assertPattern("5 * * * *", item -> item.hourlyAt(5));
        assertPattern("5 4 * * *", item -> item.dailyAt(4, 5));
        assertPattern("5 4 * * 0", item -> item.weeklyOn(DayOfWeek.SUNDAY, 4, 5));
        assertPattern("5 4 * * 6", item -> item.weeklyOn(DayOfWeek.SATURDAY, 4, 5));
        assertPattern("5 4 31 * *", item -> item.monthlyOn(31, 4, 5));
        assertPattern("5 4 29 2 *", item -> item.yearlyOn(Month.FEBRUARY, 29, 4, 5));
        assertPattern("1-3,9 */2 * 1 1", item -> item.pattern(" 1-3,9  */2 * 1 1 "));
    }

    private static void assertPattern(String expected, UnaryOperator<CronItem.Builder<Object>> when) {
        assertThat(when.apply(CronItem.of("a")).build().pattern())
                .isEqualTo(Crontab.parse("t", expected + " a").items().get(0).pattern());
    }

    @Test
    void everyAttributeIsKept() {
        CronItem item = CronItem.of(Task.of("mail", String.class))
                .dailyAt(8, 0)
                .id("i")
                .fill(Duration.ofDays(2))
                .zone(ZoneId.of("Asia/Tehran"))
                .payload("p")
                .queueName("q")
                .maxAttempts(3)
                .priority(-1)
                .jobKey("k", JobKeyMode.UNSAFE_DEDUPE)
                .flags("f")
                .build();

        assertThat(item.identifier()).isEqualTo("i");
        assertThat(item.task()).isEqualTo("mail");
        assertThat(item.fill()).isEqualTo(Duration.ofDays(2));
        assertThat(item.zone()).isEqualTo(ZoneId.of("Asia/Tehran"));
        assertThat(item.job().payload()).isEqualTo("p");
        assertThat(item.job().payloadType()).isEqualTo(String.class);
        assertThat(item.spec()).isEqualTo(new JobSpec("q", null, 3, "k", JobKeyMode.UNSAFE_DEDUPE, -1, List.of("f")));
    }

    @Test
    void mistakesAreNamed() {
        CronItem.Builder<Object> item = CronItem.of("a");

        assertThatThrownBy(item::build).hasMessageContaining("must have a schedule");
        assertThatThrownBy(() -> item.everyMinutes(60)).hasMessageContaining("minutes must be between 1 and 59");
        assertThatThrownBy(() -> item.dailyAt(24, 0)).hasMessageContaining("hour must be between 0 and 23");
        assertThatThrownBy(() -> item.hourlyAt(-1)).hasMessageContaining("minute must be between 0 and 59");
        assertThatThrownBy(() -> item.yearlyOn(Month.FEBRUARY, 30, 0, 0))
                .hasMessageContaining("dayOfMonth must be between 1 and 29");
        assertThatThrownBy(() -> item.pattern("* * * *")).hasMessageContaining("must be minute, hour");
        assertThatThrownBy(() -> item.pattern("* * 0 * 9"))
                .hasMessageContaining("1:5: \"0\": day of month must be 1 to 31")
                .hasMessageContaining("1:9: \"9\": day of week must be 0 to 7");
        assertThatThrownBy(() -> item.fill(Duration.ofSeconds(-1))).hasMessageContaining("fill must be between 0");
    }

    @Test
    void identifiersThatRepeatAreRefusedAllAtOnce() {
        List<CronItem> items = Crontab.parse("t", "* * * * * a\n* * * * * b\n* * * * * c ?id=d")
                .items();

        assertThatThrownBy(() -> Crontab.of(List.of(
                        items.get(0),
                        items.get(1),
                        items.get(2),
                        CronItem.of("x").everyMinute().id("b").build(),
                        CronItem.of("d").everyMinute().build())))
                .hasMessage("""
                        a CronItem of task x: "b": identifier is taken by line 2 of t; set another id
                        a CronItem of task d: "d": identifier is taken by line 3 of t; set another id""");
    }
}
