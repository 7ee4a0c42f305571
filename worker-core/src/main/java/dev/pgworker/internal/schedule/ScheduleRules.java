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
import dev.pgworker.internal.store.ScheduleRow;
import dev.pgworker.internal.store.ScheduleStep;
import dev.pgworker.internal.store.ScheduleStep.NewJob;
import dev.pgworker.job.JobKeyMode;
import dev.pgworker.job.JobSpec;

/** Decides what becomes of a schedule that is due. Asks nobody but the interceptors. */
final class ScheduleRules {

    /** How many executions one schedule makes up for, before others have their turn. */
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
    Decision decide(ScheduleRow row, Instant now) {
        try {
            DueTimes times = DueTimes.of(row.due());
            if (row.nextAt().equals(ScheduleRow.UNKNOWN)) {
                return begin(row, times, now);
            }
            return times.isDelay() ? delay(row, times, now) : execute(row, times, now);
        } catch (RuntimeException | StackOverflowError e) {
            return broken(row, e);
        }
    }

    private static Decision broken(ScheduleRow row, Throwable e) {
        String message = e instanceof IllegalArgumentException ? e.getMessage() : ErrorText.headline(e);
        String problem = String.valueOf(message);
        ScheduleStep step = new ScheduleStep(
                row,
                List.of(),
                null,
                false,
                null,
                problem.length() > LONGEST_PROBLEM ? problem.substring(0, LONGEST_PROBLEM) : problem);
        Exception error = e instanceof Exception exception ? exception : new IllegalStateException(e);
        return new Decision(step, List.of(), List.of(new Failed(null, error)));
    }

    /** Finds out when a schedule is due that is new, or has been changed or resumed. */
    private static Decision begin(ScheduleRow row, DueTimes times, Instant now) {
        boolean awaits = times.isDelay() && row.lastJobLives();
        Instant next = times.isDelay() && row.lastAt() == null ? times.first(now) : times.after(now);
        return new Decision(
                new ScheduleStep(row, List.of(), awaits ? null : next, awaits, null, null), List.of(), List.of());
    }

    /** A delay has no times of its own that it could miss: late is late. */
    private Decision delay(ScheduleRow row, DueTimes times, Instant now) {
        if (row.lastJobLives()) {
            return new Decision(new ScheduleStep(row, List.of(), null, true, null, null), List.of(), List.of());
        }
        List<Skipped> skipped = new ArrayList<>();
        List<Failed> failed = new ArrayList<>();
        List<NewJob> jobs = jobs(row, List.of(new Execution(row.nextAt(), false)), skipped, failed);
        boolean awaits = !jobs.isEmpty();
        return new Decision(
                new ScheduleStep(row, jobs, awaits ? null : times.after(now), awaits, null, null), skipped, failed);
    }

    private Decision execute(ScheduleRow row, DueTimes times, Instant now) {
        List<Skipped> skipped = new ArrayList<>();
        List<Failed> failed = new ArrayList<>();
        MisfireRule.Due due =
                MisfireRule.of(row.misfire()).choose(times, row.nextAt(), now, row.backfill(), MOST_AT_ONCE);
        if (due.skipped() > 0) {
            skipped.add(new Skipped(due.skippedFrom(), due.skipped(), ScheduleSkipReason.MISFIRE));
        }
        List<Execution> executions = due.executions();
        Instant next = due.next();
        if (isOverlapSkipped(row)) {
            // Whatever is made up for runs beside the first of it.
            int most = row.lastJobLives() ? 0 : 1;
            if (executions.size() > most) {
                Instant from = executions.get(most).dueAt();
                skipped.add(new Skipped(
                        from,
                        times.count(from, now.plusNanos(1), MisfireRule.MOST_COUNTED),
                        ScheduleSkipReason.OVERLAP));
                executions = executions.subList(0, most);
                next = times.after(now);
            }
        }
        List<NewJob> jobs = jobs(row, executions, skipped, failed);
        Instant later = DueTimes.isUpTo(next, now) ? now : null;
        return new Decision(new ScheduleStep(row, jobs, next, false, later, null), skipped, failed);
    }

    private static boolean isOverlapSkipped(ScheduleRow row) {
        return row.overlap().equals("skip");
    }

    private List<NewJob> jobs(ScheduleRow row, List<Execution> executions, List<Skipped> skipped, List<Failed> failed) {
        List<NewJob> jobs = new ArrayList<>();
        for (Execution execution : executions) {
            JobSpec spec = spec(row, execution.dueAt());
            try {
                NewJob job = plan.job(
                        row.name(), execution, row.job().task(), row.job().payload(), spec);
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

    private static JobSpec spec(ScheduleRow row, Instant dueAt) {
        ScheduleRow.Template job = row.job();
        String queue = row.overlap().equals("queue") && job.queueName() == null ? row.name() : job.queueName();
        return JobSpec.builder()
                .queueName(queue)
                .runAt(dueAt.plus(jitter(job.jitter())))
                .maxAttempts(job.maxAttempts())
                .jobKey(job.jobKey())
                .jobKeyMode(job.jobKey() == null ? null : keyMode(job.jobKeyMode()))
                .priority(job.priority())
                .flags(job.flags())
                .build();
    }

    private static JobKeyMode keyMode(String column) {
        for (JobKeyMode mode : JobKeyMode.values()) {
            if (mode.sqlName().equals(column)) {
                return mode;
            }
        }
        throw new IllegalArgumentException("job_key_mode " + column + " is not known to this version");
    }

    private static Duration jitter(Duration most) {
        long micros = most.toNanos() / 1_000;
        return Duration.ofNanos(ThreadLocalRandom.current().nextLong(micros + 1) * 1_000);
    }
}
