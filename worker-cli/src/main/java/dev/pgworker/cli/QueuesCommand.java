package dev.pgworker.cli;

import java.util.List;

import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

import dev.pgworker.job.NamedQueue;

/** Lists named queues. */
@Command(
        name = "queues",
        description = "List named queues by name, with their waiting jobs.",
        footer = {"  worker-cli queues --limit 20"})
final class QueuesCommand extends SessionCommand {

    @Option(
            names = {"-n", "--limit"},
            paramLabel = "N",
            description = "Largest number of rows, 1 to 1000. Default: ${DEFAULT-VALUE}.")
    private int limit = 100;

    @Option(names = "--after", paramLabel = "NAME", description = "Continue after the queue with this name.")
    private @Nullable String after;

    QueuesCommand(Session session) {
        super(session);
    }

    @Override
    public Integer call() {
        List<NamedQueue> queues = session.queries().queues(after, limit);
        String next =
                queues.size() < limit ? null : queues.get(queues.size() - 1).name();
        if (session.isJson()) {
            session.writeJson(Json.object(
                    "queues",
                    queues.stream()
                            .map(queue -> Json.object(
                                    "name", queue.name(),
                                    "waiting", queue.waiting(),
                                    "more", queue.more() ? true : null,
                                    "lockedAt", queue.lockedAt(),
                                    "lockedBy", queue.lockedBy(),
                                    "pausedSince",
                                            queue.pause() == null
                                                    ? null
                                                    : queue.pause().since()))
                            .toList(),
                    "next",
                    next));
            return ExitStatus.OK;
        }
        Table table = new Table("QUEUE", ">WAITING", "=RUNNING SINCE", "WORKER", "=PAUSED SINCE");
        queues.forEach(queue -> {
            Table unused = table.row(
                    queue.name(),
                    queue.waiting() + (queue.more() ? "+" : ""),
                    Text.seconds(queue.lockedAt()),
                    queue.lockedBy(),
                    queue.pause() == null ? null : Text.seconds(queue.pause().since()));
        });
        session.writeTable(table);
        if (next != null) {
            session.say("There may be more: --after " + Text.line(next));
        }
        return ExitStatus.OK;
    }
}
