package dev.pgworker.cli;

import java.time.Instant;

import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

import dev.pgworker.job.JobChange.Reschedule;
import dev.pgworker.job.JobChanges;
import dev.pgworker.job.Rescheduling;

/** Changes when and how often jobs run. */
@Command(
        name = "reschedule",
        description = "Change when and how often jobs run. Omitted options change nothing. Running jobs are skipped.",
        footer = {
            "  worker-cli reschedule 4711 --run-at 2026-12-24T18:00:00+01:00 --priority 5",
            "  worker-cli reschedule --queue mail --run-in 2h --yes"
        })
final class RescheduleCommand extends SessionCommand {

    @Mixin
    private JobSelection selection = new JobSelection();

    @Mixin
    private RunTime runTime = new RunTime();

    @Option(names = "--priority", paramLabel = "N", description = "Smaller runs first, -32768 to 32767.")
    private @Nullable Integer priority;

    @Option(names = "--attempts", paramLabel = "N", description = "How many attempts count as used, 0 to 32767.")
    private @Nullable Integer attempts;

    @Option(names = "--max-attempts", paramLabel = "N", description = "How often a job may be attempted, 1 to 32767.")
    private @Nullable Integer maxAttempts;

    @Mixin
    private Confirmation confirmation = new Confirmation();

    RescheduleCommand(Session session) {
        super(session);
    }

    @Override
    public Integer call() {
        Instant runAt = runTime.instant();
        if (runAt == null && priority == null && attempts == null && maxAttempts == null) {
            throw CommandFailure.usage(
                    "One of --run-at, --run-in, --priority, --attempts and --max-attempts must be given");
        }
        Rescheduling rescheduling = new Rescheduling(runAt, priority, attempts, maxAttempts);
        JobChanges changes = session.changes();
        return new JobChange(
                        session,
                        "Reschedule",
                        "Rescheduled",
                        new Reschedule(rescheduling),
                        ids -> changes.reschedule(ids, rescheduling))
                .run(selection, null, confirmation, false);
    }
}
