package dev.pgworker.cli;

import java.util.ArrayList;
import java.util.List;

import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Parameters;

/** Takes all jobs and queues from workers. */
@Command(
        name = "force-unlock",
        description = {
            "Take all jobs and queues from workers that are known to be dead. Those of a living one run twice.",
            "The command sweep finds dead workers by itself."
        })
final class ForceUnlockCommand extends SessionCommand {

    @Parameters(
            paramLabel = "WORKER",
            arity = "1..*",
            description = "Ids of workers, as the command workers lists them.")
    private List<String> workers = new ArrayList<>();

    @Mixin
    private Confirmation confirmation = new Confirmation();

    ForceUnlockCommand(Session session) {
        super(session);
    }

    @Override
    public Integer call() {
        confirmation.require(session.terminal(), "Unlock all jobs of " + Text.count(workers.size(), "worker"));
        session.jobs().forceUnlockWorkers(workers);
        if (session.isJson()) {
            session.writeJson(Json.object("unlocked", workers));
        } else {
            session.say("Unlocked what " + Text.count(workers.size(), "worker") + " held.");
        }
        return ExitStatus.OK;
    }
}
