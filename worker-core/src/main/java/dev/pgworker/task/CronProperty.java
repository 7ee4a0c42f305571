package dev.pgworker.task;

import java.time.DateTimeException;
import java.time.Instant;
import java.time.format.DateTimeFormatter;

import org.jspecify.annotations.Nullable;
import tools.jackson.core.JacksonException;
import tools.jackson.core.JsonParser;
import tools.jackson.core.JsonToken;
import tools.jackson.core.ObjectReadContext;
import tools.jackson.core.StreamReadConstraints;
import tools.jackson.core.json.JsonFactory;

/**
 * The property that a crontab or a schedule adds to the payloads of its jobs. Payloads come from anywhere: what is not as it
 * should be counts as not there.
 */
record CronProperty(
        Instant ts, boolean backfilled, @Nullable String schedule) {

    private static final String NAME = "_cron";
    private static final int LONGEST_TIME = 64;

    /** Without limits, because the rest of the payload is no concern here; nothing is read recursively. */
    private static final JsonFactory json = JsonFactory.builder()
            .streamReadConstraints(StreamReadConstraints.builder()
                    .maxNestingDepth(Integer.MAX_VALUE)
                    .maxNumberLength(Integer.MAX_VALUE)
                    .maxStringLength(Integer.MAX_VALUE)
                    .maxNameLength(Integer.MAX_VALUE)
                    .build())
            .build();

    /** Returns null if there is none. */
    static @Nullable CronProperty read(String payload) {
        if (!payload.contains(NAME)) {
            return null;
        }
        CronProperty found = null;
        try (JsonParser parser = json.createParser(ObjectReadContext.empty(), payload)) {
            if (parser.nextToken() != JsonToken.START_OBJECT) {
                return null;
            }
            while (parser.nextToken() == JsonToken.PROPERTY_NAME) {
                boolean wanted = parser.currentName().equals(NAME);
                JsonToken value = parser.nextToken();
                if (wanted) {
                    // As for any reader of JSON, the last of several counts.
                    found = value == JsonToken.START_OBJECT ? properties(parser) : null;
                }
                parser.skipChildren();
            }
        } catch (JacksonException e) {
            return null;
        }
        return found;
    }

    /** Reads to the end of the object. */
    private static @Nullable CronProperty properties(JsonParser parser) {
        Instant ts = null;
        boolean backfilled = false;
        String schedule = null;
        while (parser.nextToken() == JsonToken.PROPERTY_NAME) {
            String name = parser.currentName();
            JsonToken value = parser.nextToken();
            switch (name) {
                case "ts" -> ts = value == JsonToken.VALUE_STRING ? instant(parser.getString()) : null;
                case "backfilled" -> backfilled = value == JsonToken.VALUE_TRUE;
                case "schedule" -> schedule = value == JsonToken.VALUE_STRING ? parser.getString() : null;
                default -> {
                    // Other values may have more.
                }
            }
            parser.skipChildren();
        }
        return ts == null ? null : new CronProperty(ts, backfilled, schedule);
    }

    private static @Nullable Instant instant(String text) {
        if (text.length() > LONGEST_TIME) {
            return null;
        }
        try {
            return DateTimeFormatter.ISO_OFFSET_DATE_TIME.parse(text, Instant::from);
        } catch (DateTimeException e) {
            return null;
        }
    }
}
