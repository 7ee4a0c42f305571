package dev.pgworker;

import java.util.List;
import java.util.function.Supplier;
import java.util.stream.Stream;

import org.jspecify.annotations.Nullable;

import dev.pgworker.internal.client.JdbcWorkerOperations;
import dev.pgworker.internal.client.ScheduleControl;
import dev.pgworker.internal.crontab.CronScheduler;
import dev.pgworker.internal.engine.WorkerContext;
import dev.pgworker.internal.lifecycle.Hearing;
import dev.pgworker.internal.lifecycle.Lease;
import dev.pgworker.internal.lifecycle.PeriodicService;
import dev.pgworker.internal.lifecycle.Started.Part;
import dev.pgworker.internal.recovery.OldLocks;
import dev.pgworker.internal.recovery.Sweep;
import dev.pgworker.internal.schedule.DeclaredSchedules;
import dev.pgworker.internal.schedule.ScheduleService;
import dev.pgworker.internal.store.CleanupStore;
import dev.pgworker.internal.store.ContinueStore;
import dev.pgworker.internal.store.CrontabStore;
import dev.pgworker.internal.store.LookoutStore.Subject;
import dev.pgworker.internal.store.ScheduleStore;
import dev.pgworker.internal.store.SweepStore;
import dev.pgworker.internal.store.WorkerStore;
import dev.pgworker.internal.watch.Continuations;
import dev.pgworker.internal.watch.Lookout;
import dev.pgworker.internal.watch.ScheduledCleanup;
import dev.pgworker.job.CleanupSettings;
import dev.pgworker.schedule.Schedule;

/** What recurs in one run of a worker: the crontab, the schedules of the database, clean-ups, continuations and sweeps. Not started. */
final class RecurringServices {

    private final WorkerParts parts;
    private final WorkerContext context;
    private final Sweep sweep;
    private final @Nullable CronScheduler cron;
    private final ScheduleService schedules;
    private final @Nullable ScheduledCleanup cleanup;
    private final Continuations continuations;

    /**
     * Creates the services.
     *
     * @param lease without which it does not sweep
     * @param lookout how services hear of changes
     */
    RecurringServices(WorkerParts parts, WorkerContext context, Lease lease, Lookout lookout) {
        this.parts = parts;
        this.context = context;
        sweep = sweep(lease);
        cron = cron();
        schedules = schedules(() -> lookout.hearing(Subject.SCHEDULES));
        cleanup = cleanup(parts.settings().cleanup());
        continuations = new Continuations(
                new ContinueStore(parts.dataSource(), parts.schema()),
                () -> lookout.hearing(Subject.CONTINUATIONS),
                context.outage());
    }

    ScheduleService schedules() {
        return schedules;
    }

    Continuations continuations() {
        return continuations;
    }

    /** Returns the services that there are. */
    Stream<@Nullable PeriodicService> all() {
        return Stream.of(
                sweep,
                cron,
                cron == null ? null : cron.makingUp(),
                schedules,
                schedules.late(),
                cleanup,
                continuations);
    }

    /** Has the start wait for the parts of these services. */
    void expectParts() {
        if (cron != null) {
            context.started().expect(Part.CRONTAB);
        }
        if (!parts.schedules().declared().isEmpty()) {
            context.started().expect(Part.SCHEDULES);
        }
    }

    private Sweep sweep(Lease lease) {
        return new Sweep(
                context.workerId(),
                parts.settings().recovery(),
                new SweepStore(parts.dataSource(), parts.schema(), parts.recoveryHandlers()),
                new OldLocks(new WorkerStore(parts.dataSource(), parts.schema())),
                lease,
                context.events(),
                context.outage());
    }

    private @Nullable ScheduledCleanup cleanup(CleanupSettings settings) {
        if (settings.schedule() == null) {
            return null;
        }
        JdbcWorkerOperations operations = new JdbcWorkerOperations(
                        parts.dataSource(),
                        parts.schema(),
                        new SweepStore(parts.dataSource(), parts.schema(), parts.recoveryHandlers()),
                        SweepStore.Request.of(parts.settings().recovery()),
                        context.events())
                .actingAs(ScheduledCleanup.USER);
        return new ScheduledCleanup(
                settings.schedule(),
                settings,
                new CleanupStore(parts.dataSource(), parts.schema()),
                limit -> operations.cleanup(settings.tasks(), settings.failedJobsOlderThan(), limit),
                context.outage());
    }

    private @Nullable CronScheduler cron() {
        return parts.cron().isEmpty()
                ? null
                : new CronScheduler(
                        context.workerId(),
                        parts.cron(),
                        new CrontabStore(parts.dataSource(), parts.schema()),
                        context.events(),
                        context.outage(),
                        () -> context.started().done(Part.CRONTAB));
    }

    private ScheduleService schedules(Supplier<Hearing> hearing) {
        List<Schedule> declared = parts.schedules().declared();
        List<String> names = declared.stream().map(Schedule::name).toList();
        return new ScheduleService(
                context.workerId(),
                parts.schedules(),
                new ScheduleStore(parts.dataSource(), parts.schema(), names),
                new DeclaredSchedules(
                        new ScheduleControl(parts.dataSource(), parts.schema(), parts.codec(), parts.jobScheduler()),
                        declared,
                        () -> context.started().done(Part.SCHEDULES)),
                hearing,
                context.events(),
                context.outage());
    }
}
