package dev.pgworker.dashboard;

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneId;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

import org.jspecify.annotations.Nullable;

import dev.pgworker.job.JobSpec;
import dev.pgworker.schedule.Recurrence;
import dev.pgworker.schedule.RecurringJob;
import dev.pgworker.schedule.Schedule;

/** Schedules of the database as the pages get them. */
final class ScheduleViews {

    private static final int NEXT = 10;

    /** What a schedule does at the moment; each word says why there is no next time, but for the last one. */
    private enum State {
        PROBLEM,
        PAUSED,
        WAITING,
        ENDED,
        ACTIVE
    }

    private final JobViews jobs;

    ScheduleViews(JobViews jobs) {
        this.jobs = jobs;
    }

    /** Returns a schedule of a list. */
    Map<String, @Nullable Object> listed(RecurringJob status) {
        return base(status).map();
    }

    private static View base(RecurringJob status) {
        Schedule schedule = status.schedule();
        View view = new View()
                .put("name", status.id())
                .put("state", state(status))
                .put("declared", status.origin() == RecurringJob.Origin.DECLARED)
                .put("next", status.nextRun())
                .put("lastRun", status.lastRun())
                .put("lastJobId", status.lastJobId())
                .put("pausedSince", status.pausedSince())
                .put("pausedBy", status.pausedBy())
                .put("problem", status.problem())
                .put("task", schedule == null ? null : schedule.job().identifier());
        putRecurrence(view, schedule == null ? null : schedule.recurrence());
        return view;
    }

    private static State state(RecurringJob status) {
        if (status.problem() != null || status.schedule() == null) {
            return State.PROBLEM;
        }
        if (status.isPaused()) {
            return State.PAUSED;
        }
        if (status.nextRun() != null) {
            return State.ACTIVE;
        }
        boolean afterJobs = status.schedule().recurrence().kind() == Recurrence.Kind.FIXED_DELAY;
        return afterJobs && status.lastJobId() != null ? State.WAITING : State.ENDED;
    }

    static void putRecurrence(View view, @Nullable Recurrence recurrence) {
        ZoneId zone = recurrence == null ? null : recurrence.zone();
        view.put("kind", recurrence == null ? null : recurrence.kind())
                .put("words", recurrence == null ? null : RecurrenceWords.describe(recurrence))
                .put("expression", recurrence == null ? null : recurrence.expression())
                .put("zone", zone == null ? null : zone.getId())
                .put("everyMs", recurrence == null ? null : recurrence.every())
                .put("origin", recurrence == null ? null : recurrence.origin());
    }

    /** Returns a schedule on a page of its own. */
    View whole(RecurringJob status) {
        View view = base(status).put("createdAt", status.createdAt()).put("updatedAt", status.updatedAt());
        Schedule schedule = status.schedule();
        if (schedule == null) {
            return view.put("upcoming", List.of());
        }
        JobSpec spec = schedule.job().spec();
        Duration jitter = schedule.jitter().isZero() ? null : schedule.jitter();
        view.put("queue", spec.queueName())
                .put("key", spec.jobKey())
                .put("keyMode", spec.jobKeyMode())
                .put("priority", spec.priority())
                .put("maxAttempts", spec.maxAttempts())
                .put("flags", spec.flags())
                .put("overlap", schedule.overlap())
                .put("misfire", schedule.misfire())
                .put("backfillMs", schedule.backfill())
                .put("backfill", span(schedule.backfill()))
                .put("jitterMs", jitter)
                .put("jitter", span(jitter))
                .put("startsAt", schedule.startsAt())
                .put("endsAt", schedule.endsAt())
                .put("upcoming", texts(upcoming(schedule, status.nextRun())));
        String json = payload(schedule);
        jobs.putJson(view, "payload", schedule.job().identifier(), json, PayloadRule.LONG);
        // A rule may show another text, or a part, which nobody must take for the payload.
        return view.put("payloadWhole", json.equals(view.map().get("payload")));
    }

    private static @Nullable String span(@Nullable Duration duration) {
        return duration == null ? null : RecurrenceWords.span(duration);
    }

    /** Returns the payload as JSON. */
    static String payload(Schedule schedule) {
        Object payload = schedule.job().payload();
        return payload == null ? "{}" : new String(Json.bytes(payload), StandardCharsets.UTF_8);
    }

    /** A fixed delay has no times but the next one, because nobody knows how long jobs take. */
    private static List<Instant> upcoming(Schedule schedule, @Nullable Instant next) {
        if (next == null) {
            return List.of();
        }
        if (schedule.recurrence().kind() == Recurrence.Kind.FIXED_DELAY) {
            return List.of(next);
        }
        List<Instant> times = new ArrayList<>(List.of(next));
        times.addAll(schedule.next(next, NEXT - 1));
        return times;
    }

    static List<String> texts(List<Instant> times) {
        return times.stream().map(Instant::toString).toList();
    }
}
