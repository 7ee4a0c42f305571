package dev.pgworker.internal.store;

import java.math.BigDecimal;
import java.math.RoundingMode;
import java.sql.Array;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.util.List;

import org.jspecify.annotations.Nullable;

import dev.pgworker.internal.jdbc.Timestamps;

/**
 * A schedule as its row says, which anybody may have written: nothing of it is checked beyond the constraints of the table.
 *
 * @param due its kind and what belongs to it
 * @param job what it adds
 * @param overlap allow, queue or skip
 * @param misfire skip, run_once or run_all
 * @param backfill how far back missed executions are considered; null for without limit
 * @param nextAt since when it is due; {@link #UNKNOWN} if that has to be found out
 * @param lastAt for when the last job was added; null for never
 * @param lastJobLives whether the job of the last execution waits or runs, as far as that matters
 * @param problem why it could not be executed before; null if it could
 */
public record ScheduleRow(
        String name,
        Due due,
        Template job,
        String overlap,
        String misfire,
        @Nullable Duration backfill,
        Instant nextAt,
        @Nullable Instant lastAt,
        boolean lastJobLives,
        @Nullable String problem) {

    /** What {@code -infinity} is read as. */
    public static final Instant UNKNOWN = java.time.OffsetDateTime.MIN.toInstant();

    /**
     * When a schedule is due.
     *
     * @param kind crontab, cron, rate or delay
     * @param startsAt before when it is not due; null for no limit
     * @param endsAt from when on it is not due any more; null for no limit
     */
    public record Due(
            String kind,
            @Nullable String expression,
            @Nullable String zone,
            @Nullable Duration every,
            @Nullable Instant origin,
            @Nullable Instant startsAt,
            @Nullable Instant endsAt) {}

    /**
     * What all jobs of a schedule have in common.
     *
     * @param jitter by how much each runs later than it is due at most
     * @param payload JSON, an object
     */
    public record Template(
            Duration jitter,
            String task,
            String payload,
            @Nullable String queueName,
            int priority,
            int maxAttempts,
            @Nullable String jobKey,
            String jobKeyMode,
            List<String> flags) {}

    static ScheduleRow read(ResultSet row) throws SQLException {
        return new ScheduleRow(
                row.getString(1),
                new Due(
                        row.getString(2),
                        row.getString(3),
                        row.getString(4),
                        duration(row, 5),
                        Timestamps.nullableInstant(row, 6),
                        Timestamps.nullableInstant(row, 7),
                        Timestamps.nullableInstant(row, 8)),
                template(row),
                row.getString(18),
                row.getString(19),
                duration(row, 20),
                Timestamps.instant(row, 21),
                Timestamps.nullableInstant(row, 22),
                row.getBoolean(23),
                row.getString(24));
    }

    private static Template template(ResultSet row) throws SQLException {
        Duration jitter = duration(row, 9);
        Array flags = row.getArray(17);
        return new Template(
                jitter == null ? Duration.ZERO : jitter,
                row.getString(10),
                row.getString(11),
                row.getString(12),
                row.getInt(13),
                row.getInt(14),
                row.getString(15),
                row.getString(16),
                flags == null ? List.of() : List.of((String[]) flags.getArray()));
    }

    private static @Nullable Duration duration(ResultSet row, int column) throws SQLException {
        BigDecimal seconds = row.getBigDecimal(column);
        if (seconds == null) {
            return null;
        }
        BigDecimal micros = seconds.movePointRight(6).setScale(0, RoundingMode.HALF_UP);
        return Duration.ofNanos(0)
                .plusSeconds(micros.longValue() / 1_000_000)
                .plusNanos(micros.longValue() % 1_000_000 * 1_000);
    }
}
