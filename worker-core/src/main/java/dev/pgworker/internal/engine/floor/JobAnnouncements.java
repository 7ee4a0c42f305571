package dev.pgworker.internal.engine.floor;

import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;

import org.jspecify.annotations.Nullable;
import tools.jackson.core.JacksonException;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

import dev.pgworker.internal.store.Floor.Kind;

/**
 * The content of notifications of jobs: that of the schema's functions has when the first job is due and which
 * priorities the jobs have, and that of one job that is due, or of jobs that a limit has kept waiting, which ones they
 * are. Any role may send anything, and believing it costs a look; peers send nothing of the kind. Thread-safe.
 */
public final class JobAnnouncements {

    private static final JsonMapper json = new JsonMapper();

    /** More are in no announcement of the schema's functions. */
    private static final int MOST_PRIORITIES = 32;

    /** PostgreSQL sends no longer ones. */
    private static final int LONGEST = 8_000;

    private final List<Floors> floors;
    private final Runnable onUnknown;
    private final Consumer<List<Long>> onNamed;

    /**
     * Creates announcements that lower these floors.
     *
     * @param onUnknown called when jobs have come to lie at an unknown place
     * @param onNamed called with the ids of jobs that lie where they were before a limit kept them waiting
     */
    public JobAnnouncements(List<Floors> floors, Runnable onUnknown, Consumer<List<Long>> onNamed) {
        this.floors = floors;
        this.onUnknown = onUnknown;
        this.onNamed = onNamed;
    }

    /** Notes that announcements may have been missed. */
    public void missed() {
        floors.forEach(Floors::forget);
    }

    /**
     * Takes note of a notification.
     *
     * @return the id of the only job, which was due when it was added, and is in no queue; null if there are others, or
     *     the text does not have it
     */
    public @Nullable Long made(String text) {
        JsonNode said = read(text);
        List<Integer> priorities = said == null ? null : priorities(said.path("p"));
        List<Long> ids = said == null ? List.of() : ids(said.path("ids"));
        if (!ids.isEmpty()) {
            onNamed.accept(ids);
        }
        if (said == null || priorities == null) {
            if (ids.isEmpty()) {
                onUnknown.run();
            }
            return null;
        }
        JsonNode at = said.path("at");
        // The server has rounded to the millisecond.
        Instant earliest = at.isIntegralNumber() && at.canConvertToLong()
                ? Instant.ofEpochMilli(at.longValue()).minusMillis(1)
                : null;
        boolean onlyQueued = !ids.isEmpty() || said.path("q").asBoolean(false);
        for (int priority : priorities) {
            announced(new Kind(true, priority), earliest);
            if (!onlyQueued) {
                announced(new Kind(false, priority), earliest);
            }
        }
        JsonNode id = said.path("id");
        JsonNode count = said.path("count");
        return id.isIntegralNumber() && id.canConvertToLong() && count.isInt() && count.intValue() == 1
                ? id.longValue()
                : null;
    }

    private void announced(Kind kind, @Nullable Instant earliest) {
        floors.forEach(each -> each.announced(kind, earliest));
    }

    private static @Nullable JsonNode read(String text) {
        if (text.length() > LONGEST || !text.startsWith("{")) {
            return null;
        }
        try {
            return json.readTree(text);
        } catch (JacksonException e) {
            return null;
        }
    }

    private static List<Long> ids(JsonNode said) {
        List<Long> ids = new ArrayList<>(said.size());
        for (JsonNode id : said) {
            if (!id.isIntegralNumber() || !id.canConvertToLong()) {
                return List.of();
            }
            ids.add(id.longValue());
        }
        return ids;
    }

    private static @Nullable List<Integer> priorities(JsonNode said) {
        if (!said.isArray() || said.size() > MOST_PRIORITIES) {
            return null;
        }
        List<Integer> priorities = new ArrayList<>(said.size());
        for (JsonNode priority : said) {
            if (!priority.isIntegralNumber()
                    || !priority.canConvertToInt()
                    || priority.intValue() != (short) priority.intValue()) {
                return null;
            }
            priorities.add(priority.intValue());
        }
        return priorities;
    }
}
