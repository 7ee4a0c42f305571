package dev.pgworker.internal.client;

import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.List;
import java.util.Optional;
import java.util.stream.Collectors;
import java.util.stream.Stream;

import org.springframework.jdbc.core.simple.JdbcClient;

import dev.pgworker.job.JobWait;
import dev.pgworker.schema.WorkerSchema;

/** Finds out for which other jobs a job waits, and describes them in plain words. */
final class FlowWaits {

    private FlowWaits() {}

    private static final String WAITS_FOR = """
            select w.open, w.failed, w.first_ids from {schema}.pgworker_waits_for(?) w
            """;

    /** Returns for which jobs a job waits; empty if it does not. */
    static Optional<JobWait> of(JdbcClient client, WorkerSchema schema, long id) {
        return client.sql(schema.in(WAITS_FOR))
                .param(id)
                .query((row, number) -> new JobWait(JobWait.Reason.PREDECESSORS, null, null, text(row)))
                .optional();
    }

    private static String text(ResultSet row) throws SQLException {
        long open = row.getLong(1);
        long failed = row.getLong(2);
        if (open + failed == 0) {
            return "All jobs for which it has waited have ended; it starts in a moment if a worker is running.";
        }
        List<Long> ids = List.of((Long[]) row.getArray(3).getArray());
        return "Waits for "
                + Stream.of(
                                many(open, "has not ended", "have not ended"),
                                many(failed, "has not succeeded", "have not succeeded"))
                        .filter(words -> !words.isEmpty())
                        .collect(Collectors.joining(", and for "))
                + ": " + ids.stream().map(String::valueOf).collect(Collectors.joining(", "))
                + (open + failed > ids.size() ? " and others." : ".")
                + (failed > 0 && open == 0 ? " Retry what has failed, or make this one run now." : "");
    }

    private static String many(long number, String one, String more) {
        return number == 0 ? "" : number == 1 ? "1 job that " + one : number + " jobs that " + more;
    }
}
