package dev.pgworker.internal.client;

import java.util.ArrayList;
import java.util.List;

import org.springframework.dao.DataAccessException;

import dev.pgworker.internal.argument.Arguments;
import dev.pgworker.internal.jdbc.ClientConnections;
import dev.pgworker.job.BulkProgress;
import dev.pgworker.job.BulkResult;
import dev.pgworker.job.JobChange;
import dev.pgworker.job.JobSelection;
import dev.pgworker.schema.WorkerSchema;

/** Changes many jobs, some at a time. Used by one thread for one change. */
final class BulkChange {

    /** A session that waits for a row of a chunk waits for at most this many. */
    private static final int CHUNK = 500;

    /** More are not logged. */
    private static final int MOST_KEPT = 20;

    private final ClientConnections connections;
    private final WorkerSchema schema;
    private final ChangeReport report;
    private final List<Object> values;
    private final ChangeStatement statement;

    private int done;
    private int changed;
    private final List<Long> first = new ArrayList<>();

    BulkChange(ClientConnections connections, WorkerSchema schema, ChangeReport report, JobChange change) {
        this.values = ChangeStatement.values(change, report.user());
        this.connections = connections;
        this.schema = schema;
        this.report = report;
        this.statement = ChangeStatement.of(change);
    }

    BulkResult run(JobSelection selection, BulkProgress progress) {
        List<Long> ids = Arguments.requireNonNull("selection", selection).ids();
        Arguments.requireNonNull("progress", progress);
        try {
            while (done < ids.size() && !Thread.currentThread().isInterrupted()) {
                List<Long> chunk = ids.subList(done, Math.min(ids.size(), done + CHUNK));
                note(change(chunk, ids.size()));
                done += chunk.size();
                if (!progress.chunkDone(done, changed, ids.size())) {
                    break;
                }
            }
        } catch (DataAccessException e) {
            // A pool that was waited for: the thread stays interrupted.
            if (!(e.getMostSpecificCause() instanceof InterruptedException)) {
                throw e;
            }
        } finally {
            if (changed > 0) {
                report.log(statement, changed, first);
            }
        }
        return new BulkResult(ids.size(), done, changed);
    }

    /** In a transaction of its own, whatever becomes of the caller's; payloads are not read. */
    private List<Long> change(List<Long> chunk, int total) {
        return connections.apart(
                statement.task() + " (after " + done + " of " + total + ", of which " + changed + " have been changed)",
                transactions -> transactions.run(client -> statement
                        .changing(client, schema, chunk, values)
                        .query(Long.class)
                        .list()));
    }

    private void note(List<Long> ids) {
        changed += ids.size();
        first.addAll(ids.subList(0, Math.min(ids.size(), MOST_KEPT - first.size())));
        if (!ids.isEmpty()) {
            report.publish(statement.action(), ids, ids.size());
        }
    }
}
