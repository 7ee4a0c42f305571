package dev.pgworker.internal.client;

import java.time.DateTimeException;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

import org.jspecify.annotations.Nullable;

import dev.pgworker.history.HistoryEntry;
import dev.pgworker.history.HistoryOutcome;
import dev.pgworker.history.HistoryQuery;
import dev.pgworker.internal.argument.AsciiJson;
import dev.pgworker.internal.jdbc.Timestamps;

/** The conditions of a query of the history, which is row {@code h}: those that an index serves, and the others. */
final class HistoryFilters {

    /** Microseconds since 1970, and the id of the job. */
    private static final Pattern CURSOR = Pattern.compile("(-?\\d{1,19})\\.(-?\\d{1,19})");

    /** No value is read that takes more bytes in the table. */
    static final int LARGE = 100_000;

    private final List<String> range = new ArrayList<>();
    private final List<Object> rangeValues = new ArrayList<>();
    private final List<String> others = new ArrayList<>();
    private final List<Object> otherValues = new ArrayList<>();

    HistoryFilters(HistoryQuery query) {
        if (query.from() != null) {
            range("h.ended_at operator(pg_catalog.>=) ?", query.from());
        }
        if (query.to() != null) {
            range("h.ended_at operator(pg_catalog.<) ?", query.to());
        }
        if (query.after() != null) {
            goOnAfter(query.after());
        }
        if (query.outcome() != null) {
            addOutcome(query.outcome());
        }
        if (query.taskIdentifier() != null) {
            other("h.task_identifier operator(pg_catalog.=) ?", query.taskIdentifier());
        }
        if (query.queueName() != null) {
            other("h.queue_name operator(pg_catalog.=) ?", query.queueName());
        }
        if (query.key() != null) {
            other("h.key operator(pg_catalog.=) ?", query.key());
        }
        if (query.search() != null) {
            addSearch(query.search(), readsPayloads(query));
        }
    }

    /** Returns whether a search looks into payloads and results. */
    static boolean readsPayloads(HistoryQuery query) {
        return query.search() != null && query.payloadLimit() > 0;
    }

    /** Returns the outcome of a row. */
    static HistoryOutcome outcome(String text) {
        for (HistoryOutcome outcome : HistoryOutcome.values()) {
            if (text.equals(name(outcome))) {
                return outcome;
            }
        }
        return HistoryOutcome.OTHER;
    }

    private static String name(HistoryOutcome outcome) {
        return outcome.name().toLowerCase(Locale.ROOT);
    }

    private void addOutcome(HistoryOutcome outcome) {
        if (outcome == HistoryOutcome.OTHER) {
            for (HistoryOutcome known : HistoryOutcome.values()) {
                if (known != outcome) {
                    other("h.outcome operator(pg_catalog.<>) ?", name(known));
                }
            }
        } else {
            other("h.outcome operator(pg_catalog.=) ?", name(outcome));
        }
    }

    /** Results are stored without characters beyond ASCII. */
    private void addSearch(String text, boolean payloads) {
        otherValues.add(text);
        List<String> places = new ArrayList<>(List.of("pg_catalog.strpos(h.key, ?) operator(pg_catalog.>) 0"));
        addPlace(places, "h.error", text);
        if (payloads) {
            addPlace(places, "h.payload", text);
            addPlace(places, "h.result", AsciiJson.escape(text));
        }
        others.add("(" + String.join(" or ", places) + ")");
    }

    /** What is too large is not read. */
    private void addPlace(List<String> places, String column, String text) {
        places.add("case when pg_catalog.pg_column_size(" + column + ") operator(pg_catalog.<=) " + LARGE
                + " then pg_catalog.strpos(" + column + "::pg_catalog.text, ?) operator(pg_catalog.>) 0 end");
        otherValues.add(text);
    }

    private void range(String condition, Instant value) {
        range.add(condition);
        rangeValues.add(Timestamps.offset(value));
    }

    private void other(String condition, String value) {
        others.add(condition);
        otherValues.add(value);
    }

    private void goOnAfter(String cursor) {
        Matcher parts = CURSOR.matcher(cursor);
        try {
            if (parts.matches()) {
                Instant endedAt = Instant.EPOCH.plus(Long.parseLong(parts.group(1)), ChronoUnit.MICROS);
                long jobId = Long.parseLong(parts.group(2));
                if (Timestamps.storable(endedAt)) {
                    range.add("row(h.ended_at, h.job_id) operator(pg_catalog.<) row(?::timestamptz, ?::bigint)");
                    rangeValues.add(Timestamps.offset(endedAt));
                    rangeValues.add(jobId);
                    return;
                }
            }
        } catch (NumberFormatException | DateTimeException | ArithmeticException e) {
            throw notACursor(cursor, e);
        }
        throw notACursor(cursor, null);
    }

    private static IllegalArgumentException notACursor(String cursor, @Nullable Exception cause) {
        return new IllegalArgumentException(
                "after must be the next of an earlier page of the history, but is \"" + cursor + "\"", cause);
    }

    /** Returns the {@link HistoryQuery#after} of the entries behind this one. */
    static String cursor(HistoryEntry entry) {
        return ChronoUnit.MICROS.between(Instant.EPOCH, entry.endedAt()) + "." + entry.jobId();
    }

    /** Returns the conditions on the time. */
    String range() {
        return range.isEmpty() ? "true" : String.join(" and ", range);
    }

    boolean hasOthers() {
        return !others.isEmpty();
    }

    /** Returns the conditions that are checked for what has been read. */
    String others() {
        return others.isEmpty() ? "true" : String.join(" and ", others);
    }

    /** Returns the values for the conditions on the time, and for the others. */
    List<Object> values() {
        List<Object> values = new ArrayList<>(rangeValues);
        values.addAll(otherValues);
        return values;
    }
}
