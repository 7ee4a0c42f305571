package dev.pgworker.internal.jdbc;

import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalDate;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.time.format.DateTimeFormatterBuilder;
import java.time.format.SignStyle;
import java.time.temporal.ChronoField;
import java.util.Locale;

import org.jspecify.annotations.Nullable;

/** Instants as text that PostgreSQL reads as a timestamp with time zone, for arrays, which the driver does not convert, and as rows have them. */
public final class Timestamps {

    /** What is read for {@code -infinity}. */
    public static final Instant BEGINNING = OffsetDateTime.MIN.toInstant();

    private static final Instant EARLIEST =
            LocalDate.of(-4712, 1, 1).atStartOfDay().toInstant(ZoneOffset.UTC);

    private static final Instant YEAR_1 = Instant.parse("0001-01-01T00:00:00Z");

    private static final Instant YEAR_10000 = Instant.parse("+10000-01-01T00:00:00Z");

    private static final Instant END =
            LocalDate.of(294_277, 1, 1).atStartOfDay().toInstant(ZoneOffset.UTC);

    /** Where it differs from ISO 8601: years beyond 9999 have no sign, and those before 1 are counted from Christ's birth. */
    private static final DateTimeFormatter TIMESTAMP = new DateTimeFormatterBuilder()
            .appendValue(ChronoField.YEAR_OF_ERA, 4, 6, SignStyle.NEVER)
            .appendPattern("-MM-dd HH:mm:ss.SSSSSS'Z'")
            .toFormatter(Locale.ROOT)
            .withZone(ZoneOffset.UTC);

    private Timestamps() {}

    /**
     * Returns the text of a time, to the microsecond; null for null.
     *
     * @param instant one that is {@link #storable}
     */
    public static @Nullable String text(@Nullable Instant instant) {
        if (instant == null) {
            return null;
        }
        Instant stored = stored(instant);
        if (!stored.isBefore(YEAR_1) && stored.isBefore(YEAR_10000)) {
            return stored.toString();
        }
        return TIMESTAMP.format(stored) + (stored.atOffset(ZoneOffset.UTC).getYear() < 1 ? " BC" : "");
    }

    /** Returns whether PostgreSQL can hold the time, rounded to the microsecond: from 4713-01-01 BC to 294276-12-31. */
    public static boolean storable(Instant instant) {
        return !instant.isBefore(EARLIEST) && instant.isBefore(END.minusNanos(500));
    }

    /** Returns the instant to the microsecond, which is all that PostgreSQL keeps; the driver rounds in the same way. */
    public static Instant stored(Instant instant) {
        long micros = (instant.getNano() + 500L) / 1_000;
        return Instant.ofEpochSecond(instant.getEpochSecond(), micros * 1_000);
    }

    /** Reads an instant that is not null. */
    public static Instant instant(ResultSet row, int column) throws SQLException {
        return row.getObject(column, OffsetDateTime.class).toInstant();
    }

    /** Reads an instant that is null if it is the other one. */
    public static Instant instant(ResultSet row, int column, Instant other) throws SQLException {
        OffsetDateTime value = row.getObject(column, OffsetDateTime.class);
        return value == null ? other : value.toInstant();
    }

    /** Returns what the driver writes as that time, infinite ones included. */
    public static @Nullable OffsetDateTime offset(@Nullable Instant instant) {
        if (instant == null) {
            return null;
        }
        if (instant.equals(OffsetDateTime.MIN.toInstant())) {
            return OffsetDateTime.MIN;
        }
        return instant.equals(OffsetDateTime.MAX.toInstant()) ? OffsetDateTime.MAX : instant.atOffset(ZoneOffset.UTC);
    }

    /** Reads an instant. */
    public static @Nullable Instant nullableInstant(ResultSet row, int column) throws SQLException {
        OffsetDateTime value = row.getObject(column, OffsetDateTime.class);
        return value == null ? null : value.toInstant();
    }

    /** Returns a duration in milliseconds, from which statements make intervals of any length. */
    public static double millis(Duration duration) {
        return duration.toSeconds() * 1e3 + duration.toNanosPart() / 1e6;
    }
}
