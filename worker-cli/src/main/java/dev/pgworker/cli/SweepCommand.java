package dev.pgworker.cli;

import java.time.Duration;

import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

import dev.pgworker.job.SweepOptions;
import dev.pgworker.job.SweepResult;
import dev.pgworker.job.WorkerOperations;

/** Recovers the jobs of dead workers. */
@Command(
        name = "sweep",
        description = "Find dead workers, release their jobs and queues and delete their registrations.",
        footer = {"  worker-cli sweep --dry-run", "  worker-cli sweep --threshold 10m --yes"})
final class SweepCommand extends SessionCommand {

    /** Twice the usual heartbeat interval: with less, living workers would lose their jobs between two heartbeats. */
    private static final Duration LEAST_THRESHOLD = Duration.ofMinutes(1);

    @Option(
            names = "--threshold",
            paramLabel = "DURATION",
            converter = Times.DurationConverter.class,
            description = "How old the last heartbeat of a dead worker is, at least 1m; such as 10m."
                    + " Default: what each worker has published, otherwise 5m.")
    private @Nullable Duration threshold;

    @Option(
            names = "--recovery-delay",
            paramLabel = "DURATION",
            converter = Times.DurationConverter.class,
            description = "When recovered jobs run again. Default: 30s.")
    private @Nullable Duration recoveryDelay;

    @Option(names = "--dry-run", description = "Only tell which workers are dead.")
    private boolean dryRun;

    @Mixin
    private Confirmation confirmation = new Confirmation();

    SweepCommand(Session session) {
        super(session);
    }

    @Override
    public Integer call() {
        if (threshold != null && threshold.compareTo(LEAST_THRESHOLD) < 0) {
            throw CommandFailure.usage("--threshold must be at least " + Text.duration(LEAST_THRESHOLD) + ", but is "
                    + Text.duration(threshold)
                    + ": a threshold must be longer than the heartbeat interval of every worker (30s by default)");
        }
        WorkerOperations operations = session.operations();
        SweepOptions options = new SweepOptions(threshold, recoveryDelay, dryRun);
        if (!dryRun) {
            confirmation.require(session.terminal(), "Take the jobs from dead workers");
        }
        SweepResult result = operations.sweep(options);
        if (session.isJson()) {
            session.writeJson(Json.object(
                    "swept", result.swept(),
                    "dryRun", dryRun,
                    "workers", result.workerIds(),
                    "recoveredJobs", result.recoveredJobs()));
        } else {
            result.workerIds().forEach(worker -> {
                session.terminal().out().println(Text.line(worker));
            });
        }
        if (!result.swept() && !dryRun) {
            session.say("Another sweep is at work. Nothing was done.");
            return ExitStatus.FAILED;
        }
        String dead = Text.count(result.workerIds().size(), "dead worker");
        session.say(
                dryRun
                        ? dead + ". Nothing was done."
                        : dead + ", " + Text.count(result.recoveredJobs(), "job") + " recovered.");
        return ExitStatus.OK;
    }
}
