package dev.pgworker.crontab;

import java.time.Duration;
import java.time.ZoneId;
import java.util.List;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

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
        assertThat(e).hasMessageContaining("pgworker.crontab:1:1: \"60\": minute must be 0 to 59");
    }

    /** Each case is a line, the place of its mistake, and what its message has to say. */
    @ParameterizedTest
    @CsvSource(delimiter = '|', quoteCharacter = '^', textBlock = """
            * * * * MON a               | 9  MON           | day of week must be 0 to 7: MON is 1; ^seconds, names
            0 8 1 January * a           | 7  January       | month must be 1 to 12: January is 1
            0 8 1 jan-mar * a           | 7  jan-mar       | month must be 1 to 12: jan is 1
            0 8 L * * a                 | 5  L             | day of month must be 1 to 31, not letters
            0 8 15W * * a               | 5  15W           | day of month must be 1 to 31, not letters
            0 8 ? * 1 a                 | 5  ?             | day of month must be * for any value, not ?
            0 8 * * 6#3 a               | 9  6#3           | day of week must not contain #
            0 8 * * 1,x a               | 11 x             | day of week must be 0 to 7, not letters
            0/5 * * * * a               | 1  0/5           | minute must have a step after * only
            1-9/2 * * * * a             | 1  1-9/2         | minute must have a step after * only
            1--2 * * * * a              | 1  1--2          | minute must be 0 to 59, a range a-b, * or */n
            * 5-5 * * * a               | 3  5-5           | hour range must end above its start
            */0 * * * * a               | 1  */0           | minute step must be 1 or greater
            @daily a                    | 1  @daily a      | not a macro
            @daily                      | 1  @daily        | @CronJob(cron = ...)
            0 0 8 * * MON-FRI report    | 1  0 0 8 * * MON-FRI report | five fields, no seconds and no years, not 6
            0 0 8 ? * MON 2026 report   | 1  0 0 8 ? * MON 2026 report | no seconds and no years, not 7
            0 0 8 * * * report          | 1  0 0 8 * * * report | five fields, no seconds
            * * * * report ?max=3       | 1  * * * * report ?max=3 | but has 4 fields; then the task
            5 report                    | 1  5 report      | but has 1 field; then the task
            hello                       | 1  hello         | but has 0 fields; then the task
            * * * * *                   | 1  * * * * *     | must have a task after the five fields
            * * * * * 9lives            | 11 9lives        | task must be letters, digits and _ : / -, with a letter or _ at first
            * * * * * a b               | 13 b             | must be ?options, joined by &, or a payload { }
            * * * * * a # note          | 13 # note        | comments have lines of their own
            * * * * * a ?max=3 ?fill=1h | 20 ?fill=1h      | must not be a second group of options
            * * * * * a ?               | 13 ?             | must be followed by options
            * * * * * a [1]             | 13 [1]           | payload must be a JSON5 object
            * * * * * a {b: 1           | 18 {b: 1         | payload must not end here: it must be }
            * * * * * a {b: 1} c        | 20 c             | payload must end after the value
            * * * * * a {b: 1} // c     | 23 c             | payload must end in }
            * * * * * a {b: "\ud800"}  | 13 {b: "\ud800"} | payload must not contain a lone surrogate
            * * * * * a ?tz=Mars        | 14 tz=Mars       | tz must be a time zone such as Europe/Berlin or +02:00
            * * * * * a ?colour=red     | 14 colour=red    | option colour is unknown; allowed are id, fill, max
            * * * * * a ?max=1&max=1    | 20 max=1         | option max must occur only once
            0 0 30 2 * a                | 5  30            | day of month must occur in month 2, which has none
            0 0 31 4,6,9,11 * a         | 5  31            | would never be due
            """)
    void tellsWhereTheMistakeIsAndWhatIsAllowed(String line, String place, String message) {
        String[] columnAndText = place.split(" +", 2);

        CrontabException e = catchThrowableOfType(CrontabException.class, () -> parse("# one\n" + line));

        assertThat(e.problems()).singleElement().satisfies(problem -> {
            assertThat(problem.source()).isEqualTo("pgworker.crontab");
            assertThat(problem.line()).isEqualTo(2);
            assertThat(problem.column()).isEqualTo(Integer.parseInt(columnAndText[0]));
            assertThat(problem.text()).isEqualTo(columnAndText[1]);
            assertThat(problem.message()).contains(message.replace("^", ""));
        });
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "0 0 29 2 * a",
                "0 0 31 2,3 * a",
                "0 0 30 2 1 a",
                "* * * * * mon",
                "* * * * * L ?max=3",
                "* * * * * w {a: 1}",
                "\u00a0*\u3000*  *\t* * a/b:c-d\u2028",
                "* * * * * a {b: 1 /* } */, c: '\u0085'}",
                "* * * * * a ?&max=3&&fill=1h2d1h&",
            })
    void takesWhatNodeTakes(String line) {
        assertThat(parse(line)).hasSize(1);
    }

    @Test
    void aPlusOfAZoneStaysOne() {
        assertThat(parse("0 3 * * * a ?tz=+02:00").get(0).zone()).isEqualTo(ZoneId.of("+02:00"));
        assertThat(parse("0 3 * * * a ?tz=%2B02:00").get(0).zone()).isEqualTo(ZoneId.of("+02:00"));
    }

    @Test
    void whatIsTooLongIsToldWithTheOtherMistakesOfItsLine() {
        String line = "60 * * * * a ?queue=" + "q".repeat(129) + "&jobKey=" + "k".repeat(513) + "&id=" + "i".repeat(129)
                + "&max=0 {";
        CrontabException e = catchThrowableOfType(CrontabException.class, () -> parse(line));

        assertThat(e.problems())
                .extracting(problem -> problem.line() + ":" + problem.column() + " "
                        + problem.message().replaceAll(" must.*", ""))
                .containsExactly(
                        "1:1 minute",
                        "1:15 queueName",
                        "1:151 jobKey",
                        "1:672 identifier",
                        "1:805 max",
                        "1:812 payload");
        assertThat(e.getMessage()).contains("128", "512").hasSizeLessThan(2_000);
    }

    @Test
    void aLineOfAnyLengthIsReadInTime() {
        String spaces = " ".repeat(2_000_000);
        assertThatThrownBy(() -> parse("* * * * * a" + spaces + "b")).hasMessageContaining("must be ?options");
        assertThatThrownBy(() -> parse("*,".repeat(1_000_000) + "* * * * a")).hasMessageContaining("but has 4 fields");
        assertThat(parse("* * * * * a {b: '" + "c".repeat(2_000_000) + "'}")).hasSize(1);
    }

    @Test
    void strictModeRefusesTimeZonesByName() {
        String line = "0 3 * * * a ?tz=Europe/Berlin";
        assertThat(parse(line).get(0).zone()).isEqualTo(ZoneId.of("Europe/Berlin"));
        assertThatThrownBy(() -> strictly(line))
                .hasMessage("file:1:14: \"tz=Europe/Berlin\": option tz is not allowed in strict compatibility mode:"
                        + " other Graphile Workers do not know it");
    }

    /** Each of them is refused, ignored or read differently by a worker on Node.js or in Rust. */
    @ParameterizedTest
    @CsvSource(delimiter = '|', quoteCharacter = '^', textBlock = """
            0 8 * * 0 a              | 9  0       | day of week must be 1 to 6 or *
            0 8 * * 7 a              | 9  7       | none of both can mean Sunday
            0 8 * * 1,5-7 a          | 11 5-7     | none of both can mean Sunday
            0 8 * * 0-6 a            | 9  0-6     | none of both can mean Sunday
            0 8 * * */2 a            | 9  */2     | must not have a step
            0 8 1 * 1 a              | 9  1       | on Node.js either of them suffices, in Rust both
            0 8 */1 * * a            | 5  */1     | must be * instead of */1
            0 8 * */1 * a            | 7  */1     | must be * instead of */1
            */60 * * * * a           | 1  */60    | must have a step of at most 59
            * */24 * * * a           | 3  */24    | must have a step of at most 23
            *\\t* * * * a            | 2  ^\\t^   | must be a single space
            *  * * * * a             | 2  ^  ^    | must be a single space
            * * * * * a\\u00a0       | 12 \\u00a0 | must be a space or a tab
            \\u00a0                  | 1  \\u00a0 | must be a space or a tab
            \\ufeff# comment         | 1  \\ufeff | must be a space or a tab
            * * * * * a ?jobKey=k    | 14 jobKey=k  | workers on Node.js know jobKey and jobKeyMode only
            * * * * * a ?job_key=k   | 14 job_key=k | workers in Rust job_key and job_key_mode only
            * * * * * a ?job_key_mode=replace | 14 job_key_mode=replace | option jobKeyMode is not allowed
            * * * * * a ?&           | 13 ?&       | must be followed by options
            * * * * * a ?max=%33     | 14 max=%33   | without % and +
            * * * * * a ?fill=1h2d   | 14 fill=1h2d | in the order w d h m s
            * * * * * a ?fill=1h1h   | 14 fill=1h1h | name each unit once
            * * * * * a ?fill=7102w  | 14 fill=7102w | at most 4294967295s
            */x * * * * a            | 1  */x     | minute must be 0 to 59, not letters
            * * * * * a {b: 9007199254740993} | 17 9007199254740993} | whole numbers beyond 9007199254740991
            """)
    void strictModeRefusesWhatOthersReadDifferently(String line, String place, String message) {
        String[] columnAndText = place.split(" +", 2);
        String text = line.replace("\\t", "\t").replace("\\u00a0", "\u00a0").replace("\\ufeff", "\ufeff");
        if (!text.isBlank() && !text.contains("#") && text.codePoints().noneMatch(c -> c == 0xa0 || c == 'x')) {
            assertThat(parse(text)).hasSize(1);
        }

        CrontabException e = catchThrowableOfType(CrontabException.class, () -> strictly(text));

        assertThat(e.problems()).singleElement().satisfies(problem -> {
            assertThat(problem.column()).isEqualTo(Integer.parseInt(columnAndText[0]));
            assertThat(problem.text())
                    .isEqualTo(columnAndText[1].replace("^", "").replace("\\t", "\t"));
            assertThat(problem.message()).contains(message);
        });
    }

    @Test
    void strictModeTakesWhatAllReadAlike() {
        assertThat(strictly("""
                # a comment with\u00a0any space
                \t
                */5 0,12-14 */2 */3 * a ?id=b&fill=1w2d3h4m5s&max=3&queue=q:1&priority=-3 {c:\u00a01, d: 9007199254740991, e: 1e21}
                  0 8 * * 1-5,6\ta \t ?max=3 \t {}
                0 8 1-31 1-12 *,3 c\r
                """)).hasSize(3);
    }

    private static List<CronItem> strictly(String text) {
        return Crontab.builder().strict(true).text("file", text).build().items();
    }

    private static List<CronItem> parse(String text) {
        return Crontab.parse("pgworker.crontab", text).items();
    }
}
