package dev.pgworker.dashboard;

import java.time.ZoneId;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import dev.pgworker.crontab.CronItem;

import static org.assertj.core.api.Assertions.assertThat;

class CronWordsTest {

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "* * * * *|Every minute",
                "*/5 * * * *|Every 5 minutes",
                "*/7 * * * *|Every hour at minutes 0, 7, 14, 21, 28, 35, 42, 49 and 56",
                "0 * * * *|Every hour at minute 0",
                "15,45 * * * *|Every hour at minutes 15 and 45",
                "0 4 * * *|At 04:00 every day",
                "30 8,20 * * *|At 08:30 and 20:30 every day",
                "0 */6 * * *|At 00:00, 06:00, 12:00 and 18:00 every day",
                "5 */2 * * *|Every 2 hours at minute 5 every day",
                "*/15 9-17 * * 1-5|Every 15 minutes of the hours 09 to 17 Monday to Friday",
                "* 4 * * *|Every minute of the hour 04",
                "0 9 * * 1|At 09:00 on Monday",
                "0 9 * * 0|At 09:00 on Sunday",
                "0 9 * * 7|At 09:00 on Sunday",
                "0 9 * * 6,7|At 09:00 on Sunday and Saturday",
                "0 0 1 * *|At 00:00 on day 1 of the month",
                "0 0 1,15 * *|At 00:00 on days 1 and 15 of the month",
                "0 0 13 * 5|At 00:00 on day 13 of the month and on Friday",
                "0 0 29 2 *|At 00:00 on day 29 of the month in February",
                "0 12 * 6-8 *|At 12:00 every day in June, July and August",
                "00 004 * * *|At 04:00 every day",
                "*/99999999999 5 * * *|At 05:00 every day",
                "* * * * 1-5|Every minute Monday to Friday",
            })
    void describes(String pattern, String words) {
        assertThat(CronItem.of("t").pattern(pattern).build().schedule()).isEqualTo(pattern);
        assertThat(CronWords.describe(pattern, null)).isEqualTo(words);
    }

    @ParameterizedTest
    @CsvSource({"Europe/Berlin", "UTC", "+02:00"})
    void namesTheZone(String zone) {
        assertThat(CronWords.describe("0 4 * * *", ZoneId.of(zone))).isEqualTo("At 04:00 every day (" + zone + ")");
    }
}
