package dev.pgworker.internal.store;

import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

import org.jspecify.annotations.Nullable;
import tools.jackson.core.JacksonException;
import tools.jackson.databind.DeserializationFeature;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;
import tools.jackson.databind.node.ObjectNode;

import dev.pgworker.internal.jdbc.Timestamps;
import dev.pgworker.job.JobKeyMode;
import dev.pgworker.job.JobRequest;
import dev.pgworker.job.JobSpec;
import dev.pgworker.schedule.Misfire;
import dev.pgworker.schedule.Overlap;
import dev.pgworker.schedule.Recurrence;
import dev.pgworker.schedule.RecurringJob;
import dev.pgworker.schedule.RecurringJob.Origin;
import dev.pgworker.schedule.Schedule;

/**
 * A row of the schedules.
 *
 * @param job what each execution adds, with the payload as a tree; null if it cannot be read
 * @param schedule the schedule; null if it cannot be read
 * @param unreadable why it cannot be read; null if it can
 * @param nextAt when it is due, {@link #COMPUTE} where that is to be found out; null for never
 * @param awaitsEnd whether it is due some time after its job ends
 * @param readAt the database's time
 * @param status what an application sees of it
 */
public record ScheduleRow(
        @Nullable JobRequest job,
        @Nullable Schedule schedule,
        @Nullable String unreadable,
        @Nullable Instant nextAt,
        boolean awaitsEnd,
        Instant readAt,
        RecurringJob status) {

    /** Stands for "from now on, by the recurrence". */
    public static final Instant COMPUTE = Timestamps.BEGINNING;

    /** The columns of row {@code s}, and the database's time. */
    public static final String COLUMNS = """
            s.name, s.kind, s.expression, s.zone, %s, s.origin, s.starts_at, s.ends_at, %s, %s, s.overlap, s.misfire,
            s.task_identifier, s.payload, s.queue_name, s.priority, s.max_attempts, s.job_key, s.job_key_mode,
            pg_catalog.to_json(s.flags), s.declared, s.paused_at, s.paused_by, s.next_at, s.last_at, s.last_job_id, s.awaits_end,
            s.problem, s.created_at, s.updated_at, pg_catalog.clock_timestamp()
            """.formatted(micros("every"), micros("jitter"), micros("backfill"));

    private static String micros(String interval) {
        return "(extract(epoch from s." + interval + ") operator(pg_catalog.*) 1000000)::bigint";
    }

    private static final DateTimeFormatter TIMESTAMP = DateTimeFormatter.ofPattern(
                    "uuuu-MM-dd'T'HH:mm:ss.SSS'Z'", Locale.ROOT)
            .withZone(ZoneOffset.UTC);

    /** Keeps every digit of a number. */
    private static final JsonMapper exact = JsonMapper.builder()
            .enable(DeserializationFeature.USE_BIG_DECIMAL_FOR_FLOATS)
            .build();

    /** Reads a row of {@link #COLUMNS}. If it was written by SQL, it may be anything that the table lets in. */
    public static ScheduleRow read(ResultSet row) throws SQLException {
        JobRequest job = null;
        Schedule schedule = null;
        String unreadable = null;
        try {
            job = job(row);
            schedule = schedule(row, job);
        } catch (RuntimeException e) {
            // Hundreds of others may be read with it.
            unreadable = e.getMessage() == null ? e.getClass().getName() : e.getMessage();
        }
        Instant nextAt = Timestamps.nullableInstant(row, 24);
        Instant now = Timestamps.instant(row, 31);
        RecurringJob status = status(row, schedule, unreadable, now);
        return new ScheduleRow(job, schedule, unreadable, nextAt, row.getBoolean(27), now, status);
    }

    private static RecurringJob status(
            ResultSet row, @Nullable Schedule schedule, @Nullable String unreadable, Instant now) throws SQLException {
        Instant pausedAt = Timestamps.nullableInstant(row, 22);
        Instant nextAt = Timestamps.nullableInstant(row, 24);
        return new RecurringJob(
                row.getString(1),
                row.getBoolean(21) ? Origin.DECLARED : Origin.DATABASE,
                schedule,
                pausedAt == null ? nextRun(nextAt, schedule, now) : null,
                Timestamps.nullableInstant(row, 25),
                row.getObject(26, Long.class),
                pausedAt,
                row.getString(23),
                unreadable == null ? row.getString(28) : unreadable,
                Timestamps.instant(row, 29),
                Timestamps.instant(row, 30));
    }

    private static @Nullable Instant nextRun(@Nullable Instant nextAt, @Nullable Schedule schedule, Instant now) {
        if (schedule == null || nextAt == null) {
            return null;
        }
        return nextAt.equals(COMPUTE) ? schedule.firstDue(now) : nextAt;
    }

    private static Schedule schedule(ResultSet row, JobRequest job) throws SQLException {
        return Schedule.builder(row.getString(1), recurrence(row), job.identifier(), job.payload())
                .spec(job.spec())
                .startsAt(Timestamps.nullableInstant(row, 7))
                .endsAt(Timestamps.nullableInstant(row, 8))
                .jitter(duration(row, 9))
                .backfill(row.getObject(10) == null ? null : duration(row, 10))
                .overlap(Overlap.valueOf(row.getString(11).toUpperCase(Locale.ROOT)))
                .misfire(Misfire.valueOf(row.getString(12).toUpperCase(Locale.ROOT)))
                .build();
    }

    private static Recurrence recurrence(ResultSet row) throws SQLException {
        return switch (row.getString(2)) {
            case "crontab" -> Recurrence.crontab(row.getString(3), ZoneId.of(row.getString(4)));
            case "cron" -> Recurrence.cron(row.getString(3), ZoneId.of(row.getString(4)));
            case "rate" -> Recurrence.fixedRate(duration(row, 5), Timestamps.instant(row, 6));
            case "delay" -> Recurrence.fixedDelay(duration(row, 5));
            default -> throw new IllegalArgumentException("kind must be crontab, cron, rate or delay");
        };
    }

    private static Duration duration(ResultSet row, int column) throws SQLException {
        long micros = row.getLong(column);
        return Duration.ofSeconds(Math.floorDiv(micros, 1_000_000L), Math.floorMod(micros, 1_000_000L) * 1_000);
    }

    private static JobRequest job(ResultSet row) throws SQLException {
        String jobKey = row.getString(18);
        JobSpec spec = JobSpec.builder()
                .queueName(row.getString(15))
                .priority(row.getInt(16))
                .maxAttempts(row.getInt(17))
                .jobKey(jobKey)
                .jobKeyMode(
                        jobKey == null
                                ? null
                                : JobKeyMode.valueOf(row.getString(19).toUpperCase(Locale.ROOT)))
                .flags(flags(row.getString(20)))
                .build();
        return JobRequest.of(row.getString(13), payload("payload", row.getString(14)), spec);
    }

    private static List<String> flags(@Nullable String json) {
        List<String> flags = new ArrayList<>();
        if (json != null) {
            exact.readTree(json).forEach(flag -> flags.add(flag.asString()));
        }
        return flags;
    }

    /**
     * Reads a payload as a tree, to which something can be added.
     *
     * @param name what to call it in messages
     * @throws IllegalArgumentException if it is no JSON object
     */
    public static ObjectNode payload(String name, String json) {
        JsonNode payload;
        try {
            payload = exact.readTree(json);
        } catch (JacksonException e) {
            throw new IllegalArgumentException(name + " cannot be read as JSON: " + e.getOriginalMessage(), e);
        }
        if (payload instanceof ObjectNode object) {
            return object;
        }
        throw new IllegalArgumentException(
                name + " must be serialized as a JSON object, to which _cron is added, but is "
                        + payload.getNodeType().name().toLowerCase(Locale.ROOT));
    }

    /** Returns a payload with what an execution adds to it. */
    public static ObjectNode stamped(ObjectNode payload, String id, Instant dueAt, boolean backfilled) {
        payload.putObject("_cron")
                .put("ts", TIMESTAMP.format(dueAt))
                .put("backfilled", backfilled)
                .put("schedule", id);
        return payload;
    }

    /** Returns whether it matters if the job of the last execution is still there. */
    boolean dependsOnLastJob() {
        return schedule != null
                && (schedule.overlap() == Overlap.SKIP || schedule.recurrence().kind() == Recurrence.Kind.FIXED_DELAY);
    }

    /** Returns how its jobs are added: those of which each waits for the one before it are in a queue. */
    public JobSpec specOfJobs(JobSpec spec) {
        boolean queued = schedule != null && schedule.overlap() == Overlap.QUEUE && spec.queueName() == null;
        return queued ? spec.toBuilder().queueName(status.id()).build() : spec;
    }
}
