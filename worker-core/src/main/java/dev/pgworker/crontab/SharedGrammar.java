package dev.pgworker.crontab;

import java.time.Duration;
import java.util.List;
import java.util.Locale;
import java.util.regex.Pattern;

import dev.pgworker.crontab.CrontabLine.Word;
import dev.pgworker.internal.pattern.CronField;
import dev.pgworker.internal.pattern.CronPattern;
import dev.pgworker.internal.pattern.ProblemSink;

/**
 * What the Graphile Workers on Node.js and in Rust refuse, ignore or read differently from each other, so that a crontab
 * which they share must do without it.
 */
final class SharedGrammar {

    private static final Pattern FILL = Pattern.compile("([0-9]+w)?([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?");

    private static final Pattern STEP = Pattern.compile("\\*/[0-9]+");
    private static final Pattern DAYS = Pattern.compile("0*[0-7](-0*[0-7])?");
    private static final Pattern DAYS_WITHOUT_SUNDAY = Pattern.compile("0*[1-6](-0*[1-6])?");

    /** Rust counts in 32 bits. */
    private static final Duration LONGEST_FILL = Duration.ofSeconds(0xffff_ffffL);

    private SharedGrammar() {}

    /** Checks what separates the words of a line, up to its payload. */
    static void checkSpaces(String line, ProblemSink problems) {
        boolean comment = line.startsWith("#", CrontabLine.skipSpace(line, 0));
        for (int i = 0; i < line.length() && line.charAt(i) != '{' && !(comment && line.charAt(i) == '#'); i++) {
            char c = line.charAt(i);
            if (Json5.isSpace(c) && c != ' ' && c != '\t') {
                problems.add(
                        i,
                        String.format(Locale.ROOT, "\\u%04x", (int) c),
                        "must be a space or a tab: workers in Rust know no other white space");
            }
        }
    }

    /** Checks the five fields, and what is between them. */
    static void checkPattern(CrontabLine line, CronPattern pattern, ProblemSink problems) {
        List<Word> fields = line.words().subList(0, CrontabLine.FIELDS);
        for (int i = 0; i < fields.size(); i++) {
            Word field = fields.get(i);
            if (i > 0) {
                checkGap(line.text(), fields.get(i - 1).end(), field.start(), problems);
            }
            checkField(CronField.ALL.get(i), field, problems);
        }
        if (pattern.hasBothDays()) {
            problems.add(
                    fields.get(4).start(),
                    fields.get(4).text(),
                    "day of week must be * if day of month is restricted: on Node.js either of them suffices, in Rust"
                            + " both have to match");
        }
    }

    private static void checkGap(String line, int from, int to, ProblemSink problems) {
        String gap = line.substring(from, to);
        if (!gap.equals(" ")) {
            problems.add(
                    from,
                    gap,
                    "must be a single space between two fields: workers in Rust refuse tabs and more spaces");
        }
    }

    private static void checkField(CronField field, Word word, ProblemSink problems) {
        int at = word.start();
        for (String part : word.text().split(",", -1)) {
            String message = STEP.matcher(part).matches()
                    ? stepProblem(field, CronField.value(part.substring(2)))
                    : field.equals(CronField.DAY_OF_WEEK) && !part.equals("*") ? sundayProblem(part) : "";
            if (!message.isEmpty()) {
                problems.add(at, part, field.name() + " " + message);
            }
            at += part.length() + 1;
        }
    }

    private static String stepProblem(CronField field, int step) {
        if (field.equals(CronField.DAY_OF_WEEK)) {
            return "must not have a step: workers on Node.js count from Sunday, those in Rust from Monday";
        }
        if (step > field.max()) {
            return "must have a step of at most " + field.max() + ": workers in Rust refuse more";
        }
        return step == 1 && field.min() == 1 ? "must be * instead of */1, which workers in Rust never execute" : "";
    }

    private static String sundayProblem(String part) {
        return DAYS.matcher(part).matches()
                        && !DAYS_WITHOUT_SUNDAY.matcher(part).matches()
                ? "must be 1 to 6 or *: workers in Rust refuse 7 and never execute 0, so none of both can mean Sunday"
                : "";
    }

    /**
     * Returns what is wrong with an option; an empty text for nothing.
     *
     * @param option as it is written
     * @param name its name after decoding
     */
    static String optionProblem(String option, String name) {
        return switch (name) {
            case "tz" -> "option tz is not allowed in strict compatibility mode: other Graphile Workers do not know it";
            case "jobKey", "jobKeyMode" ->
                "option " + name + " is not allowed in strict compatibility mode: workers on Node.js know jobKey and"
                        + " jobKeyMode only, workers in Rust job_key and job_key_mode only";
            default ->
                option.indexOf('%') >= 0 || option.indexOf('+') >= 0
                        ? "must be written without % and + in strict compatibility mode: workers in Rust do not"
                                + " decode every option"
                        : "";
        };
    }

    /** Returns what is wrong with a period that is right otherwise; an empty text for nothing. */
    static String fillProblem(String phrase, Duration fill) {
        if (!FILL.matcher(phrase).matches()) {
            return "fill must name each unit once, in the order w d h m s: workers in Rust refuse any other order";
        }
        return fill.compareTo(LONGEST_FILL) > 0 ? "fill must be at most 4294967295s, about 136 years" : "";
    }
}
