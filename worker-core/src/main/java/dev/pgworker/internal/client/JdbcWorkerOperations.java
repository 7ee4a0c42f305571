package dev.pgworker.internal.client;

import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import javax.sql.DataSource;

import org.jspecify.annotations.Nullable;
import org.springframework.jdbc.support.SqlArrayValue;

import dev.pgworker.internal.argument.Arguments;
import dev.pgworker.internal.event.WorkerEvents;
import dev.pgworker.internal.jdbc.ClientConnections;
import dev.pgworker.internal.store.PauseStore;
import dev.pgworker.internal.store.SweepReport;
import dev.pgworker.internal.store.SweepStore;
import dev.pgworker.job.CleanupResult;
import dev.pgworker.job.CleanupTask;
import dev.pgworker.job.DeadWorker;
import dev.pgworker.job.PauseTarget;
import dev.pgworker.job.SweepOptions;
import dev.pgworker.job.SweepResult;
import dev.pgworker.job.WorkerOperations;
import dev.pgworker.schema.WorkerSchema;

/** Pauses, recovers and unlocks on the connection of the caller's transaction; cleans up apart from it. */
public final class JdbcWorkerOperations implements WorkerOperations {

    private static final int MAX_REASON = 1_000;

    private static final Duration LONGEST_AGE = Duration.ofDays(3650);

    private final ClientConnections connections;
    private final WorkerSchema schema;
    private final SweepStore sweeps;
    private final SweepStore.Request usualSweep;
    private final WorkerEvents events;
    private final ChangeReport report;

    /**
     * Creates the operations of one schema.
     *
     * @param usualSweep what a sweep does unless its options differ
     * @param events where to report what has been changed; delivers by itself
     */
    public JdbcWorkerOperations(
            DataSource dataSource,
            WorkerSchema schema,
            SweepStore sweeps,
            SweepStore.Request usualSweep,
            WorkerEvents events) {
        this(new ClientConnections(dataSource), schema, sweeps, usualSweep, events, new ChangeReport(events, null));
    }

    private JdbcWorkerOperations(
            ClientConnections connections,
            WorkerSchema schema,
            SweepStore sweeps,
            SweepStore.Request usualSweep,
            WorkerEvents events,
            ChangeReport report) {
        this.connections = connections;
        this.schema = schema;
        this.sweeps = sweeps;
        this.usualSweep = usualSweep;
        this.events = events;
        this.report = report;
    }

    @Override
    public JdbcWorkerOperations actingAs(String user) {
        return new JdbcWorkerOperations(
                connections, schema, sweeps, usualSweep, events, report.of(Arguments.requireUser(user)));
    }

    private static final String PAUSE = """
            select {schema}.pgworker_pause(kind => ?, name => ?, by => ?, reason => ?)
            """;

    @Override
    public boolean pause(PauseTarget target, @Nullable String reason) {
        Arguments.requireNonNull("target", target);
        Arguments.requireOptionalText("reason", reason, MAX_REASON);
        String user = Arguments.storable(report.user(), Integer.MAX_VALUE);
        boolean paused = connections.query(
                "pause " + target,
                true,
                client -> client.sql(schema.in(PAUSE))
                        .param(PauseStore.word(target.kind()))
                        .param(name(target))
                        .param(user)
                        .param(reason == null || reason.isEmpty() ? null : reason)
                        .query(Boolean.class)
                        .single());
        if (paused) {
            report.other("pause", "Paused", List.of(words(target)), List.of(), 1);
        }
        return paused;
    }

    private static final String RESUME = """
            select {schema}.pgworker_resume(kind => ?, name => ?)
            """;

    @Override
    public boolean resume(PauseTarget target) {
        Arguments.requireNonNull("target", target);
        boolean resumed = connections.query(
                "resume " + target,
                true,
                client -> client.sql(schema.in(RESUME))
                        .param(PauseStore.word(target.kind()))
                        .param(name(target))
                        .query(Boolean.class)
                        .single());
        if (resumed) {
            report.other("resume", "Resumed", List.of(words(target)), List.of(), 1);
        }
        return resumed;
    }

    private static String name(PauseTarget target) {
        return target.name() == null ? "" : target.name();
    }

    /** In the log, quotes are escaped. */
    private static String words(PauseTarget target) {
        String kind = target.kind().name().toLowerCase(Locale.ROOT);
        return target.name() == null ? kind : kind + " " + target.name();
    }

    private static final String FORCE_UNLOCK = """
            select {schema}.force_unlock_workers(?)
            """;

    @Override
    public void forceUnlockWorkers(Collection<String> workerIds) {
        Set<String> given = Arguments.requireElements("workerIds", workerIds);
        given.forEach(id -> Arguments.requireGivenText("workerIds", id));
        if (given.isEmpty()) {
            return;
        }
        boolean unused = connections.query(
                "unlock the jobs of workers",
                false,
                client -> client.sql(schema.in(FORCE_UNLOCK))
                        .param(new SqlArrayValue("text", given.toArray()))
                        .query((row, number) -> true)
                        .single());
        report.other("force-unlock", "Workers unlocked", given, List.of(), given.size());
    }

    @Override
    public SweepResult sweep(SweepOptions options) {
        Arguments.requireNonNull("options", options);
        SweepStore.Request request = usualSweep.with(options);
        SweepStore.Result result =
                connections.call("sweep", true, connection -> sweeps.sweep(connection, request, DeadWorker.BY_HAND));
        if (!request.dryRun()) {
            ClientConnections.afterCommit(() -> SweepReport.tell(result, DeadWorker.BY_HAND, events));
            if (result.worthTelling()) {
                List<Long> jobs =
                        result.jobs().stream().map(each -> each.job().id()).toList();
                report.other("sweep", "Dead workers swept up", result.workerIds(), jobs, jobs.size());
            }
        }
        return new SweepResult(
                result.locked(), result.workerIds(), result.jobs().size());
    }

    @Override
    public CleanupResult cleanup(Set<CleanupTask> which) {
        return cleanup(which, Duration.ZERO);
    }

    @Override
    public CleanupResult cleanup(Set<CleanupTask> which, Duration failedJobsOlderThan) {
        return cleanup(which, failedJobsOlderThan, Cleanup.UNTIL_DONE);
    }

    /**
     * As {@link #cleanup(Set, Duration)}, but in bounded time: the next one continues with the rest.
     *
     * @param limit after which no more chunks of jobs and schedules are deleted
     */
    public CleanupResult cleanup(Set<CleanupTask> which, Duration failedJobsOlderThan, Duration limit) {
        Arguments.requireNonNull("failedJobsOlderThan", failedJobsOlderThan);
        if (failedJobsOlderThan.isNegative() || failedJobsOlderThan.compareTo(LONGEST_AGE) > 0) {
            throw new IllegalArgumentException(
                    "failedJobsOlderThan must be between 0 and 3650 days, but is " + failedJobsOlderThan);
        }
        CleanupResult result = new Cleanup(connections, schema)
                .run(Arguments.requireElements("tasks", which), failedJobsOlderThan, limit);
        long rows =
                result.deleted().values().stream().mapToLong(Long::longValue).sum();
        if (rows > 0) {
            List<String> deleted = result.deleted().entrySet().stream()
                    .map(entry -> entry.getKey() + " " + entry.getValue())
                    .sorted()
                    .toList();
            report.other("cleanup", "Rows cleaned up", deleted, List.of(), rows);
        }
        return result;
    }
}
