package dev.pgworker.cli;

import java.time.DateTimeException;
import java.time.Duration;
import java.time.Instant;
import java.time.OffsetDateTime;
import java.time.format.DateTimeParseException;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

import picocli.CommandLine.ITypeConverter;
import picocli.CommandLine.TypeConversionException;

/** Points in time and durations as they are given on the command line. */
final class Times {

    private static final Pattern DURATION = Pattern.compile("(?:[0-9]+(?:ms|[smhdw]))++");
    private static final Pattern PART = Pattern.compile("([0-9]+)(ms|[smhdw])");
    private static final Map<String, Duration> UNITS = Map.of(
            "ms", Duration.ofMillis(1),
            "s", Duration.ofSeconds(1),
            "m", Duration.ofMinutes(1),
            "h", Duration.ofHours(1),
            "d", Duration.ofDays(1),
            "w", Duration.ofDays(7));

    private Times() {}

    /** Reads a time with its offset, or "now", by the clock of this machine. */
    static final class TimeConverter implements ITypeConverter<Instant> {
        @Override
        public Instant convert(String text) {
            if (text.equalsIgnoreCase("now")) {
                return Instant.now();
            }
            try {
                return OffsetDateTime.parse(text.replaceFirst(" ", "T")).toInstant();
            } catch (DateTimeParseException e) {
                throw new TypeConversionException(
                        "'" + text
                                + "' must be a time with its offset, such as 2026-01-31T08:30:00Z or 2026-01-31T08:30+01:00, or now");
            }
        }
    }

    /** Reads a duration with units. */
    static final class DurationConverter implements ITypeConverter<Duration> {
        @Override
        public Duration convert(String text) {
            try {
                if (DURATION.matcher(text).matches()) {
                    Duration sum = Duration.ZERO;
                    for (Matcher part = PART.matcher(text); part.find(); ) {
                        Duration unit = UNITS.getOrDefault(part.group(2), Duration.ZERO);
                        sum = sum.plus(unit.multipliedBy(Long.parseLong(part.group(1))));
                    }
                    return sum;
                }
                if (text.startsWith("P")) {
                    return Duration.parse(text);
                }
            } catch (ArithmeticException | NumberFormatException | DateTimeException e) {
                throw wrong(text);
            }
            throw wrong(text);
        }

        private static TypeConversionException wrong(String text) {
            return new TypeConversionException(
                    "'" + text + "' must be a duration with units, such as 500ms, 30s, 5m, 2h, 1d or 1h30m");
        }
    }
}
