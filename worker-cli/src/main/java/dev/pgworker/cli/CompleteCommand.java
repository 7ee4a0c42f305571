package dev.pgworker.cli;

import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;

import dev.pgworker.job.JobChange.Complete;
import dev.pgworker.job.JobChanges;

/** Deletes jobs as if they had succeeded. */
@Command(
        name = "complete",
        description = "Delete jobs as if they had succeeded. Running jobs are skipped.",
        footer = {"  worker-cli complete 4711 4712 --yes"})
final class CompleteCommand extends SessionCommand {

    @Mixin
    private JobSelection selection = new JobSelection();

    @Mixin
    private Confirmation confirmation = new Confirmation();

    CompleteCommand(Session session) {
        super(session);
    }

    @Override
    public Integer call() {
        JobChanges changes = session.changes();
        return new JobChange(session, "Complete", "Completed", new Complete(), changes::complete)
                .run(selection, null, confirmation, true);
    }
}
