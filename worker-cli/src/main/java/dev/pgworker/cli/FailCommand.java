package dev.pgworker.cli;

import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

import dev.pgworker.job.JobChange.Fail;
import dev.pgworker.job.JobChanges;

/** Gives jobs up. */
@Command(
        name = "fail",
        description = "Fail jobs permanently, so that they do not run again. Running jobs are skipped.",
        footer = {"  worker-cli fail 4711 --reason \"wrong address\""})
final class FailCommand extends SessionCommand {

    @Mixin
    private JobSelection selection = new JobSelection();

    @Option(
            names = "--reason",
            paramLabel = "TEXT",
            description = "What becomes the last error of the jobs. Default: ${DEFAULT-VALUE}.")
    private String reason = "Failed by hand";

    @Mixin
    private Confirmation confirmation = new Confirmation();

    FailCommand(Session session) {
        super(session);
    }

    @Override
    public Integer call() {
        JobChanges changes = session.changes();
        return new JobChange(session, "Fail", "Failed", new Fail(reason), ids -> changes.permanentlyFail(ids, reason))
                .run(selection, null, confirmation, true);
    }
}
