package dev.pgworker.internal.schedule;

import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ThreadLocalRandom;

import org.jspecify.annotations.Nullable;

import dev.pgworker.event.ScheduleSkipReason;
import dev.pgworker.internal.failure.ErrorText;
import dev.pgworker.internal.schedule.MisfireRule.Execution;
import dev.pgworker.internal.store.DueSchedule;
import dev.pgworker.internal.store.ScheduleRow;
import dev.pgworker.internal.store.ScheduleStep;
import dev.pgworker.internal.store.ScheduleStep.NewJob;
import dev.pgworker.job.JobSpec;
import dev.pgworker.schedule.Overlap;
import dev.pgworker.schedule.Recurrence;
import dev.pgworker.schedule.Schedule;

/** Decides what becomes of a schedule that is due. Calls no other code but the interceptors. */
final class ScheduleRules {

    /** How many missed executions of one schedule run before others have their turn. */
    static final int MOST_AT_ONCE = 100;

    private static final int LONGEST_PROBLEM = 1_000;

    private final SchedulePlan plan;

    ScheduleRules(SchedulePlan plan) {
        this.plan = plan;
    }

    /**
     * What has been decided.
     *
     * @param skipped executions that do not take place
     * @param failed executions whose job could not be made, or what is wrong with the schedule
     */
    record Decision(ScheduleStep step, List<Skipped> skipped, List<Failed> failed) {}

    /** As {@link dev.pgworker.event.WorkerEvent.ScheduleSkipped} has it. */
    record Skipped(Instant dueAt, int count, ScheduleSkipReason reason) {}

    /** As {@link dev.pgworker.event.WorkerEvent.ScheduleFailed} has it. */
    record Failed(@Nullable Instant dueAt, Exception error) {}

    /** Decides about a schedule that is due. Never throws: whatever is wrong with one is its own problem. */
    Decision decide(DueSchedule due, Instant now) {
        Schedule schedule = due.row().schedule();
        if (schedule == null) {
            return broken(due, new IllegalArgumentException(due.row().unreadable()));
        }
        try {
            if (due.nextAt().equals(ScheduleRow.COMPUTE)) {
                return begin(due, schedule, now);
            }
            return schedule.recurrence().kind() == Recurrence.Kind.FIXED_DELAY
                    ? delay(due, schedule, now)
                    : execute(due, schedule, now);
        } catch (RuntimeException | StackOverflowError e) {
            return broken(due, e);
        }
    }

    private static Decision broken(DueSchedule due, Throwable e) {
        String message = e instanceof IllegalArgumentException ? e.getMessage() : ErrorText.headline(e);
        String problem = String.valueOf(message);
        ScheduleStep step = new ScheduleStep(
                due,
                List.of(),
                null,
                false,
                null,
                problem.length() > LONGEST_PROBLEM ? problem.substring(0, LONGEST_PROBLEM) : problem);
        Exception error = e instanceof Exception exception ? exception : new IllegalStateException(e);
        return new Decision(step, List.of(), List.of(new Failed(null, error)));
    }

    private static Decision nothing(DueSchedule due, @Nullable Instant next, boolean awaitsEnd) {
        return new Decision(new ScheduleStep(due, List.of(), next, awaitsEnd, null, null), List.of(), List.of());
    }

    /** Finds out when a schedule is due that is new, or has been changed or resumed. */
    private static Decision begin(DueSchedule due, Schedule schedule, Instant now) {
        if (schedule.recurrence().kind() == Recurrence.Kind.FIXED_DELAY) {
            if (due.lastJobLives()) {
                return nothing(due, null, true);
            }
            if (due.row().status().lastRun() != null) {
                return nothing(due, schedule.nextDue(now), false);
            }
        }
        return nothing(due, schedule.firstDue(now), false);
    }

    /** A delay has no times of its own that it could miss: late is late. */
    private Decision delay(DueSchedule due, Schedule schedule, Instant now) {
        if (due.lastJobLives()) {
            return nothing(due, null, true);
        }
        List<Skipped> skipped = new ArrayList<>();
        List<Failed> failed = new ArrayList<>();
        List<NewJob> jobs = jobs(due, schedule, List.of(new Execution(due.nextAt(), false)), skipped, failed);
        boolean awaits = !jobs.isEmpty();
        Instant next = awaits ? null : schedule.nextDue(now);
        return new Decision(new ScheduleStep(due, jobs, next, awaits, null, null), skipped, failed);
    }

    private Decision execute(DueSchedule due, Schedule schedule, Instant now) {
        List<Skipped> skipped = new ArrayList<>();
        List<Failed> failed = new ArrayList<>();
        Timeline times = new Timeline(schedule);
        MisfireRule.Due chosen =
                MisfireRule.of(schedule.misfire()).choose(times, due.nextAt(), now, schedule.backfill(), MOST_AT_ONCE);
        if (chosen.skipped() > 0) {
            skipped.add(new Skipped(chosen.skippedFrom(), chosen.skipped(), ScheduleSkipReason.MISFIRE));
        }
        List<Execution> executions = chosen.executions();
        Instant next = chosen.next();
        // Of several missed ones, those after the first would run beside it.
        int most = schedule.overlap() != Overlap.SKIP ? MOST_AT_ONCE : due.lastJobLives() ? 0 : 1;
        if (executions.size() > most) {
            Instant from = executions.get(most).dueAt();
            int count = times.count(from, now.plusNanos(1), MisfireRule.MOST_COUNTED);
            skipped.add(new Skipped(from, count, ScheduleSkipReason.OVERLAP));
            executions = executions.subList(0, most);
            next = times.after(now);
        }
        List<NewJob> jobs = jobs(due, schedule, executions, skipped, failed);
        Instant later = Timeline.isUpTo(next, now) ? now : null;
        return new Decision(new ScheduleStep(due, jobs, next, false, later, null), skipped, failed);
    }

    private List<NewJob> jobs(
            DueSchedule due,
            Schedule schedule,
            List<Execution> executions,
            List<Skipped> skipped,
            List<Failed> failed) {
        List<NewJob> jobs = new ArrayList<>();
        JobSpec common = due.row().specOfJobs(schedule.job().spec());
        for (Execution execution : executions) {
            Instant runAt = execution.dueAt().plus(jitter(schedule.jitter()));
            try {
                NewJob job = plan.job(
                        schedule, execution, common.toBuilder().runAt(runAt).build());
                if (job == null) {
                    skipped.add(new Skipped(execution.dueAt(), 1, ScheduleSkipReason.REJECTED));
                } else {
                    jobs.add(job);
                }
            } catch (Throwable e) {
                // Interceptors are the application's: they may throw anything, and what they throw may not be readable.
                Throwable loggable = ErrorText.loggable(e);
                failed.add(new Failed(
                        execution.dueAt(),
                        loggable instanceof Exception exception ? exception : new IllegalStateException(loggable)));
            }
        }
        return jobs;
    }

    private static Duration jitter(Duration most) {
        long micros = most.toNanos() / 1_000;
        return Duration.ofNanos(ThreadLocalRandom.current().nextLong(micros + 1) * 1_000);
    }
}
