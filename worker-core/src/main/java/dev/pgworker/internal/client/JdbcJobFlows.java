package dev.pgworker.internal.client;

import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import javax.sql.DataSource;

import org.jspecify.annotations.Nullable;
import org.springframework.jdbc.core.simple.JdbcClient;
import org.springframework.jdbc.support.SqlArrayValue;

import dev.pgworker.flow.AddedFlow;
import dev.pgworker.flow.FlowJob;
import dev.pgworker.flow.FlowMember;
import dev.pgworker.flow.FlowState;
import dev.pgworker.flow.JobFlow;
import dev.pgworker.flow.JobFlows;
import dev.pgworker.flow.OnFailure;
import dev.pgworker.flow.PredecessorResult;
import dev.pgworker.flow.PredecessorResults;
import dev.pgworker.internal.argument.Arguments;
import dev.pgworker.internal.jdbc.ClientConnections;
import dev.pgworker.internal.jdbc.Timestamps;
import dev.pgworker.job.Job;
import dev.pgworker.job.JobScheduler;
import dev.pgworker.schema.WorkerSchema;
import dev.pgworker.task.PayloadCodec;

/** Flows, on the connection of the caller's transaction. */
public final class JdbcJobFlows implements JobFlows {

    private static final int MOST_MEMBERS = 10_000;

    private final ClientConnections connections;
    private final WorkerSchema schema;
    private final PayloadCodec codec;
    private final JobScheduler scheduler;

    /**
     * Creates the flows of one schema.
     *
     * @param codec reads results
     * @param scheduler adds the jobs, to the same schema through the same data source
     */
    public JdbcJobFlows(DataSource dataSource, WorkerSchema schema, PayloadCodec codec, JobScheduler scheduler) {
        this.connections = new ClientConnections(dataSource);
        this.schema = schema;
        this.codec = codec;
        this.scheduler = scheduler;
    }

    @Override
    public AddedFlow add(JobFlow flow) {
        List<FlowJob> parts = Arguments.requireNonNull("flow", flow).jobs();
        if (parts.isEmpty()) {
            throw new IllegalArgumentException("flow must have at least one job");
        }
        return connections.together("add a flow of " + parts.size() + " jobs", client -> {
            List<Job> jobs =
                    scheduler.addJobs(parts.stream().map(FlowJob::request).toList());
            new Links(parts, jobs).write(client);
            return new AddedFlow(flow, jobs);
        });
    }

    private static final String LINK = """
            select {schema}.pgworker_run_all_after(?, ?, ?, ?)
            """;

    /** What waits for what, as it is passed to the database. */
    private final class Links {

        private final List<Job> jobs;
        private final List<Long> successors = new ArrayList<>();
        private final List<Long> predecessors = new ArrayList<>();
        private final List<Long> waiting = new ArrayList<>();
        private final List<String> choices = new ArrayList<>();

        Links(List<FlowJob> parts, List<Job> jobs) {
            this.jobs = jobs;
            parts.forEach(this::add);
        }

        private void add(FlowJob part) {
            Job job = jobs.get(part.index());
            List<Long> ids = new ArrayList<>();
            addPredecessors(part, ids);
            if (job.isSkipped() || ids.isEmpty()) {
                if (!job.isSkipped() && part.onFailure() == OnFailure.INSTEAD) {
                    throw new IllegalStateException(
                            part + " runs only if a job fails that it waits for, and waits for none");
                }
                return;
            }
            for (Long id : ids) {
                successors.add(job.id());
                predecessors.add(id);
            }
            waiting.add(job.id());
            choices.add(part.onFailure().name().toLowerCase(Locale.ROOT));
        }

        private void addPredecessors(FlowJob part, List<Long> ids) {
            ids.addAll(part.existingPredecessors());
            for (FlowJob predecessor : part.predecessors()) {
                Job job = jobs.get(predecessor.index());
                if (job.isSkipped()) {
                    addPredecessors(predecessor, ids);
                } else {
                    ids.add(job.id());
                }
            }
        }

        void write(JdbcClient client) {
            if (waiting.isEmpty()) {
                return;
            }
            client.sql(schema.in(LINK))
                    .param(new SqlArrayValue("int8", successors.toArray()))
                    .param(new SqlArrayValue("int8", predecessors.toArray()))
                    .param(new SqlArrayValue("int8", waiting.toArray()))
                    .param(new SqlArrayValue("text", choices.toArray()))
                    .query((row, number) -> number)
                    .list();
        }
    }

    private static final String FIND = """
            select f.id, f.task_identifier, f.state, f.ended_at, f.on_failure, f.predecessors
            from {schema}.pgworker_flow_of(?, ?) f
            """;

    @Override
    public List<FlowMember> find(long jobId, int most) {
        Arguments.requireRange("most", most, 1, MOST_MEMBERS);
        return connections.query(
                "find the flow of job " + jobId,
                false,
                client -> client.sql(schema.in(FIND))
                        .param(jobId)
                        .param(most)
                        .query(JdbcJobFlows::member)
                        .list());
    }

    private static FlowMember member(ResultSet row, int number) throws SQLException {
        String choice = row.getString(5);
        return new FlowMember(
                row.getLong(1),
                row.getString(2),
                state(row.getString(3)),
                Timestamps.nullableInstant(row, 4),
                choice == null ? null : OnFailure.valueOf(choice.toUpperCase(Locale.ROOT)),
                List.of((Long[]) row.getArray(6).getArray()));
    }

    private static FlowState state(String text) {
        return FlowState.valueOf(text.toUpperCase(Locale.ROOT));
    }

    private static final String PREDECESSORS = """
            select p.id, p.task_identifier, p.outcome, p.result, p.error from {schema}.pgworker_predecessors(?) p
            """;

    /** Returns what the jobs have come to that a job has waited for; they are read when that is first used. */
    public PredecessorResults resultsFor(Job job) {
        return new Results(job.id());
    }

    /** Read once: afterwards none of them changes that matters. Any thread that the handler uses may ask first. */
    private final class Results implements PredecessorResults {

        private final long jobId;
        private @Nullable List<PredecessorResult> found;

        Results(long jobId) {
            this.jobId = jobId;
        }

        @Override
        public synchronized List<PredecessorResult> all() {
            if (found == null) {
                found = connections.query(
                        "read the results that job " + jobId + " has waited for",
                        false,
                        client -> client.sql(schema.in(PREDECESSORS))
                                .param(jobId)
                                .query(JdbcJobFlows.this::result)
                                .list());
            }
            return found;
        }
    }

    private PredecessorResult result(ResultSet row, int number) throws SQLException {
        String outcome = row.getString(3);
        return new Result(
                row.getLong(1),
                row.getString(2),
                outcome == null ? FlowState.WAITING : state(outcome),
                row.getString(5),
                row.getString(4),
                codec);
    }

    private record Result(
            long jobId,
            String taskIdentifier,
            FlowState state,
            @Nullable String error,
            @Nullable String json,
            PayloadCodec codec)
            implements PredecessorResult {

        @Override
        @SuppressWarnings({"unchecked", "TypeParameterUnusedInFormals"})
        public <R> R as(Class<R> type) {
            Arguments.requireNonNull("type", type);
            String subject = "job " + jobId + " (" + taskIdentifier + ")";
            if (json == null) {
                throw new IllegalStateException("There is no result of " + subject + ", which "
                        + (state == FlowState.SUCCEEDED ? "has succeeded" : "is " + state)
                        + (error == null ? "" : ": " + error.lines().findFirst().orElse("")));
            }
            Object value = codec.decodeResult(
                    "The result of " + subject,
                    json,
                    type,
                    "Have the handlers of the two tasks agree on the type, or read it as JsonNode");
            if (value == null) {
                throw new IllegalStateException("The result of " + subject + " is null");
            }
            return (R) value;
        }

        /** Results are as confidential as payloads. */
        @Override
        public String toString() {
            return "job " + jobId + " (" + taskIdentifier + ", " + state + ")";
        }
    }
}
