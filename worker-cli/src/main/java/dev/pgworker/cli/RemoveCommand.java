package dev.pgworker.cli;

import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;

import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

import dev.pgworker.job.Job;
import dev.pgworker.job.JobChange.Remove;
import dev.pgworker.job.JobChanges;

/** Deletes jobs by their keys, their ids or what they are. */
@Command(
        name = "remove",
        description = {
            "Delete jobs by their job keys. A running one finishes its attempt, loses its key and is not retried; see cancel.",
            "With --id, a filter or --all, delete these jobs; running ones are skipped."
        },
        footer = {"  worker-cli remove welcome:42 --yes", "  worker-cli remove --state failed --task send_mail"})
final class RemoveCommand extends SessionCommand {

    @Parameters(paramLabel = "KEY", arity = "0..*", description = "Job keys.")
    private List<String> keys = new ArrayList<>();

    @Option(
            names = "--id",
            paramLabel = "ID",
            split = ",",
            description = "Ids of jobs, with commas between; - reads them from standard input.")
    private List<String> ids = new ArrayList<>();

    @Mixin
    private JobFilters filters = new JobFilters();

    @Option(names = "--all", description = "All jobs, if there is neither a key, an id nor a filter.")
    private boolean all;

    @Mixin
    private Confirmation confirmation = new Confirmation();

    RemoveCommand(Session session) {
        super(session);
    }

    @Override
    public Integer call() {
        boolean filtered = !filters.isEmpty() || all;
        long ways = Stream.of(!keys.isEmpty(), !ids.isEmpty(), filtered)
                .filter(given -> given)
                .count();
        if (ways != 1) {
            throw CommandFailure.usage("Give either KEY, --id, filters (" + JobFilters.NAMES + ") or --all");
        }
        JobChanges changes = session.changes();
        if (!keys.isEmpty()) {
            return removeByKey(changes);
        }
        JobChange change = new JobChange(session, "Remove", "Removed", new Remove(), changes::remove);
        return filtered
                ? change.runMatching(filters.query(null), confirmation)
                : change.runIds(JobSelection.ids(ids, session.terminal()), confirmation, true);
    }

    private int removeByKey(JobChanges changes) {
        confirmation.require(session.terminal(), "Remove " + Text.count(keys.size(), "job") + " by key");
        List<Job> removed = new ArrayList<>();
        List<String> unknown = new ArrayList<>();
        for (String key : keys) {
            Optional<Job> job = changes.remove(key);
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
