package dev.pgworker.store;

import java.time.Instant;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.time.format.DateTimeFormatterBuilder;
import java.time.format.SignStyle;
import java.time.temporal.ChronoField;
import java.util.Locale;

import org.jspecify.annotations.Nullable;

/** The text of an instant as PostgreSQL reads it, whatever the year. */
final class Timestamps {

    /** Years beyond 9999 have no sign in PostgreSQL, and those before 1 are counted from Christ's birth. */
    private static final DateTimeFormatter FORMAT = new DateTimeFormatterBuilder()
            .appendValue(ChronoField.YEAR_OF_ERA, 4, 6, SignStyle.NEVER)
            .appendPattern("-MM-dd HH:mm:ss.SSSSSS'Z'")
            .toFormatter(Locale.ROOT)
            .withZone(ZoneOffset.UTC);

    private Timestamps() {}

    /** Returns the text of an instant that PostgreSQL can store, to the microsecond; null for null. */
    static @Nullable String text(@Nullable Instant instant) {
        if (instant == null) {
            return null;
        }
        Instant stored = JobRows.stored(instant);
        return FORMAT.format(stored) + (stored.atOffset(ZoneOffset.UTC).getYear() < 1 ? " BC" : "");
    }
}
