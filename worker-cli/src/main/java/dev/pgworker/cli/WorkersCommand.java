package dev.pgworker.cli;

import java.time.Duration;
import java.util.List;

import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import tools.jackson.databind.util.RawValue;

import dev.pgworker.job.ActiveWorker;
import dev.pgworker.job.JobQueries;

/** Lists registered workers. */
@Command(
        name = "workers",
        description = "List registered workers, dead ones until they are recovered. Those of Node.js do not register.",
        footer = {"  worker-cli workers --stale-after 10m"})
final class WorkersCommand extends SessionCommand {

    @Option(
            names = "--stale-after",
            paramLabel = "DURATION",
            converter = Times.DurationConverter.class,
            description =
                    "How old the last heartbeat of a stale worker is. Default: what each has published, otherwise 5m.")
    private @Nullable Duration staleAfter;

    WorkersCommand(Session session) {
        super(session);
    }

    @Override
    public Integer call() {
        JobQueries queries = session.queries();
        List<ActiveWorker> workers = staleAfter == null ? queries.activeWorkers() : queries.activeWorkers(staleAfter);
        if (session.isJson()) {
            session.writeJson(Json.object(
                    "workers",
                    workers.stream()
                            .map(worker -> Json.object(
                                    "id", worker.id(),
                                    "startedAt", worker.startedAt(),
                                    "lastHeartbeatAt", worker.lastHeartbeatAt(),
                                    "metadata", worker.metadata() == null ? null : new RawValue(worker.metadata()),
                                    "heldJobs", worker.heldJobs(),
                                    "stale", worker.stale()))
                            .toList()));
            return ExitStatus.OK;
        }
        Table table = new Table("WORKER", "=STARTED", "=LAST HEARTBEAT", ">JOBS", "=STATE");
        workers.forEach(worker -> {
            Table unused = table.row(
                    worker.id(),
                    Text.seconds(worker.startedAt()),
                    Text.seconds(worker.lastHeartbeatAt()),
                    worker.heldJobs(),
                    worker.stale() ? "stale" : "alive");
        });
        session.writeTable(table);
        return ExitStatus.OK;
    }
}
