package dev.pgworker.test;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;

import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import tools.jackson.databind.json.JsonMapper;

import dev.pgworker.WorkerClient;
import dev.pgworker.flow.FlowJob;
import dev.pgworker.flow.JobFlow;
import dev.pgworker.flow.JobFlows;
import dev.pgworker.job.JobSpec;
import dev.pgworker.job.Task;
import dev.pgworker.schema.WorkerSchema;
import dev.pgworker.task.PayloadCodec;

import static org.assertj.core.api.Assertions.assertThat;

/** A test runs a flow to its end, and lets time pass meanwhile. */
class FlowsInTestsTest {

    private static final Task<Integer> PART = Task.of("part", Integer.class);
    private static final Task<Integer> WHOLE = Task.of("whole", Integer.class);

    private static WorkerSchema schema;

    @BeforeAll
    static void install() {
        schema = WorkerDatabase.newSchema();
    }

    @AfterAll
    static void uninstall() {
        WorkerDatabase.drop(schema);
    }

    @Test
    void aFlowRunsToItsEnd() {
        List<String> done = new ArrayList<>();
        try (TestWorker worker = TestWorker.create(
                WorkerDatabase.dataSource(),
                schema,
                builder -> builder.task(PART, (number, context) -> done.add("part " + number))
                        .task(WHOLE, (number, context) -> done.add("whole " + number)))) {
            worker.clear();
            JobFlows flows = WorkerClient.jobFlows(
                    WorkerDatabase.dataSource(), schema, new PayloadCodec(new JsonMapper()), worker.jobScheduler());
            JobFlow flow = new JobFlow();
            FlowJob first = flow.add(
                    PART, 1, JobSpec.builder().runIn(Duration.ofHours(1)).build());
            FlowJob second = flow.add(WHOLE, 2).after(first);
            flow.add(WHOLE, 3).after(second);
            flows.add(flow);

            assertThat(worker.runDue()).isEmpty();
            worker.advance(Duration.ofHours(2));
            assertThat(worker.runDue()).hasSize(3).allCompleted();
            assertThat(done).containsExactly("part 1", "whole 2", "whole 3");
        }
    }
}
