package dev.pgworker.cli;

import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;

import dev.pgworker.job.JobChange.RunNow;
import dev.pgworker.job.JobChanges;
import dev.pgworker.job.JobState;

/** Makes jobs due. */
@Command(
        name = "retry",
        description = {
            "Run jobs now. Failed ones get all their attempts back. Running jobs are skipped.",
            "With a filter or --all, and without --state, failed jobs only."
        },
        footer = {"  worker-cli retry 4711", "  worker-cli retry --task send_mail --yes"})
final class RetryCommand extends SessionCommand {

    @Mixin
    private JobSelection selection = new JobSelection();

    @Mixin
    private Confirmation confirmation = new Confirmation();

    RetryCommand(Session session) {
        super(session);
    }

    @Override
    public Integer call() {
        JobChanges changes = session.changes();
        return new JobChange(session, "Retry", "Retried", new RunNow(), changes::runNow)
                .run(selection, JobState.FAILED, confirmation, false);
    }
}
