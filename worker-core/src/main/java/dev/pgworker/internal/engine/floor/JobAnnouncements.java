package dev.pgworker.internal.engine.floor;

import java.time.Instant;
import java.util.ArrayList;
import java.util.List;

import org.jspecify.annotations.Nullable;
import tools.jackson.core.JacksonException;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/**
 * What notifications of jobs say: that of the schema's functions tells when the first job is due and which priorities the jobs
 * have, and that of one job that is due, or of jobs that a limit has kept waiting, which ones they are. Anybody may send anything, and
 * believing it costs a scan or a look at some rows; peers say nothing of the kind.
 */
public final class JobAnnouncements {

    private static final JsonMapper json = new JsonMapper();

    /** More are in no announcement of the schema's functions. */
    private static final int MOST_PRIORITIES = 32;

    /** PostgreSQL sends no longer ones. */
    private static final int LONGEST = 8_000;

    private final ClaimFloor floor;
    private final QueueFloors queueFloors;

    /** Creates announcements that lower these floors. */
    public JobAnnouncements(ClaimFloor floor, QueueFloors queueFloors) {
        this.floor = floor;
        this.queueFloors = queueFloors;
    }

    /** Says that announcements may have been missed. May be called from any thread, as the other method. */
    public void missed() {
        floor.forget();
        queueFloors.forget();
    }

    /**
     * Takes note of a notification.
     *
     * @return the id of the only job, which was due when it was added, and is in no queue; null if there are others, or nothing is
     *     said of it
     */
    public @Nullable Long made(String text) {
        JsonNode said = read(text);
        if (said == null) {
            queueFloors.announced(null, null);
            floor.announced(null, null, List.of());
            return null;
        }
        if (said.path("p").isNull()) {
            // Jobs are back where they were before, wherever that is.
            queueFloors.forget();
        }
        JsonNode at = said.path("at");
        // The server has rounded to the millisecond.
        Instant earliest = at.isIntegralNumber() && at.canConvertToLong()
                ? Instant.ofEpochMilli(at.longValue()).minusMillis(1)
                : null;
        List<Integer> priorities = priorities(said.path("p"));
        queueFloors.announced(earliest, priorities);
        floor.announced(
                earliest,
                said.path("q").asBoolean(false) && priorities != null ? List.of() : priorities,
                ids(said.path("ids")));
        return onlyJob(said);
    }

    private static @Nullable Long onlyJob(JsonNode said) {
        JsonNode id = said.path("id");
        JsonNode count = said.path("count");
        return id.isIntegralNumber() && id.canConvertToLong() && count.isInt() && count.intValue() == 1
                ? id.longValue()
                : null;
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
