package dev.pgworker.cli;

import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Parameters;

import dev.pgworker.job.Job;
import dev.pgworker.job.JobAdmin;

/** Deletes jobs by their keys. */
@Command(
        name = "remove",
        description =
                "Delete jobs by their job keys. A running one finishes its attempt, loses its key and is not retried.")
final class RemoveCommand extends SessionCommand {

    @Parameters(paramLabel = "KEY", arity = "1..*", description = "Job keys.")
    private List<String> keys = new ArrayList<>();

    @Mixin
    private Confirmation confirmation = new Confirmation();

    RemoveCommand(Session session) {
        super(session);
    }

    @Override
    public Integer call() {
        confirmation.require(session.terminal(), "Remove " + Text.count(keys.size(), "job") + " by key");
        JobAdmin admin = session.jobs();
        List<Job> removed = new ArrayList<>();
        List<String> unknown = new ArrayList<>();
        for (String key : keys) {
            Optional<Job> job = admin.remove(key);
            job.ifPresentOrElse(removed::add, () -> unknown.add(key));
        }
        if (session.isJson()) {
            session.writeJson(Json.object(
                    "count", removed.size(),
                    "removed",
                            removed.stream()
                                    .map(job -> Json.object(
                                            "id",
                                            job.id(),
                                            "task",
                                            job.taskIdentifier(),
                                            "running",
                                            job.lockedAt() != null))
                                    .toList(),
                    "unknown", unknown));
        } else {
            removed.forEach(job -> session.say(
                    job.lockedAt() == null
                            ? "Removed job " + job.id() + " of task " + Text.line(job.taskIdentifier()) + "."
                            : "Job " + job.id() + " of task " + Text.line(job.taskIdentifier())
                                    + " is running: it has lost its key and is not retried."));
        }
        unknown.forEach(key -> session.say("No job with key " + Text.line(key)));
        return unknown.isEmpty() ? ExitStatus.OK : ExitStatus.NOT_FOUND;
    }
}
