package dev.pgworker.crontab;

import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.time.DateTimeException;
import java.time.Duration;
import java.time.ZoneId;
import java.util.HashMap;
import java.util.Map;
import java.util.function.Consumer;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;

import org.jspecify.annotations.Nullable;

import dev.pgworker.internal.argument.Arguments;
import dev.pgworker.internal.pattern.ProblemSink;
import dev.pgworker.job.JobKeyMode;
import dev.pgworker.job.JobSpec;

/** The options of one crontab line: a query string whose keys may each stand once. */
final class CrontabOptions {

    private static final Pattern IDENTIFIER = Pattern.compile("[_a-zA-Z][-_a-zA-Z0-9]*");
    private static final Pattern QUEUE = Pattern.compile("[-a-zA-Z0-9_:]+");
    private static final Pattern FILL = Pattern.compile("(?:[0-9]{1,9}[smhdw])++");
    private static final Pattern FILL_PART = Pattern.compile("([0-9]+)([smhdw])");
    private static final Pattern INTEGER = Pattern.compile("-?[0-9]{1,9}");
    private static final Map<Character, Duration> UNITS = Map.of(
            's', Duration.ofSeconds(1),
            'm', Duration.ofMinutes(1),
            'h', Duration.ofHours(1),
            'd', Duration.ofDays(1),
            'w', Duration.ofDays(7));

    private final boolean strict;
    private final ProblemSink problems;
    private final Map<String, Integer> seen = new HashMap<>();
    private final JobSpec.Builder spec = JobSpec.builder();

    private @Nullable String identifier;
    private @Nullable ZoneId zone;
    private Duration fill = Duration.ZERO;
    private @Nullable String jobKey;
    private @Nullable JobKeyMode jobKeyMode;

    CrontabOptions(boolean strict, ProblemSink problems) {
        this.strict = strict;
        this.problems = problems;
    }

    /** Reads the text after the question mark, which starts at the given column. */
    void read(String text, int column) {
        int at = column;
        for (String option : text.split("&", -1)) {
            if (!option.isEmpty()) {
                try {
                    readOption(option);
                } catch (IllegalArgumentException e) {
                    problems.add(at, option, String.valueOf(e.getMessage()));
                }
            }
            at += option.length() + 1;
        }
    }

    private void readOption(String option) {
        int equals = option.indexOf('=');
        String key = decode(equals < 0 ? option : option.substring(0, equals));
        String value = equals < 0 ? "" : decode(option.substring(equals + 1));
        String name = key.equals("job_key") ? "jobKey" : key.equals("job_key_mode") ? "jobKeyMode" : key;
        if (seen.merge(name, 1, Integer::sum) > 1) {
            throw new IllegalArgumentException("option " + name + " must occur only once");
        }
        if (strict) {
            requireNoProblem(SharedGrammar.optionProblem(option, name));
        }
        set(name, value);
    }

    private static void requireNoProblem(String problem) {
        if (!problem.isEmpty()) {
            throw new IllegalArgumentException(problem);
        }
    }

    private void set(String name, String value) {
        switch (name) {
            case "id" ->
                identifier = Arguments.requireIdentifier(
                        require(IDENTIFIER, name, value, "letters, digits, _ and -, a letter or _ first"));
            case "fill" -> {
                fill = fill(value);
                if (strict) {
                    requireNoProblem(SharedGrammar.fillProblem(value, fill));
                }
            }
            case "max" -> specify(job -> job.maxAttempts(integer(name, value, 1, Short.MAX_VALUE)));
            case "queue" -> {
                String queue = require(QUEUE, name, value, "letters, digits, _, - and :");
                specify(job -> job.queueName(queue));
            }
            case "jobKey" -> jobKey = JobSpec.builder().jobKey(value).build().jobKey();
            case "jobKeyMode" ->
                jobKeyMode = Stream.of(JobKeyMode.REPLACE, JobKeyMode.PRESERVE_RUN_AT)
                        .filter(mode -> mode.sqlName().equals(value))
                        .findFirst()
                        .orElseThrow(
                                () -> new IllegalArgumentException("jobKeyMode must be replace or preserve_run_at"));
            case "priority" -> specify(job -> job.priority(integer(name, value, Short.MIN_VALUE, Short.MAX_VALUE)));
            // A plus stands for a space in options, and no zone has a space in its name.
            case "tz" -> zone = zone(name, value.replace(' ', '+'));
            default ->
                throw new IllegalArgumentException("option " + name + " is unknown; allowed are id, fill, max,"
                        + " queue, priority" + (strict ? "" : ", jobKey, jobKeyMode, tz"));
        }
    }

    /** Sets an attribute of the job after trying it alone, so that a wrong one is reported with its place. */
    private void specify(Consumer<JobSpec.Builder> attribute) {
        JobSpec.Builder alone = JobSpec.builder();
        attribute.accept(alone);
        JobSpec unused = alone.build();
        attribute.accept(spec);
    }

    @Nullable String identifier() {
        return identifier;
    }

    @Nullable ZoneId zone() {
        return zone;
    }

    Duration fill() {
        return fill;
    }

    /** Returns the job's attributes. A mode without a key means nothing and is left out. */
    JobSpec spec() {
        return spec.jobKey(jobKey)
                .jobKeyMode(jobKey == null ? null : jobKeyMode)
                .build();
    }

    static ZoneId zone(String name, String value) {
        try {
            return ZoneId.of(value);
        } catch (DateTimeException e) {
            throw new IllegalArgumentException(name + " must be a time zone such as Europe/Berlin or +02:00", e);
        }
    }

    static Duration fill(String phrase) {
        require(FILL, "fill", phrase, "a time phrase such as 4w3d2h1m");
        Duration sum = Duration.ZERO;
        Matcher part = FILL_PART.matcher(phrase);
        while (part.find()) {
            Duration unit = UNITS.getOrDefault(part.group(2).charAt(0), Duration.ZERO);
            sum = sum.plus(unit.multipliedBy(Long.parseLong(part.group(1))));
        }
        return sum;
    }

    private static int integer(String name, String value, int min, int max) {
        int number = INTEGER.matcher(value).matches() ? Integer.parseInt(value) : Integer.MAX_VALUE;
        if (number < min || number > max) {
            throw new IllegalArgumentException(name + " must be a number from " + min + " to " + max);
        }
        return number;
    }

    private static String require(Pattern pattern, String name, String value, String allowed) {
        if (!pattern.matcher(value).matches()) {
            throw new IllegalArgumentException(name + " must be " + allowed);
        }
        return value;
    }

    /** Decodes as in a query string; a broken escape stands for itself. */
    private static String decode(String text) {
        String escaped = text.replaceAll("%(?![0-9a-fA-F]{2})", "%25");
        return URLDecoder.decode(escaped, StandardCharsets.UTF_8);
    }
}
