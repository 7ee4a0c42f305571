package dev.pgworker.dashboard;

import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import tools.jackson.databind.JsonNode;

import dev.pgworker.autoconfigure.WorkerInstances;
import dev.pgworker.flow.AddedFlow;
import dev.pgworker.flow.FlowJob;
import dev.pgworker.flow.JobFlow;
import dev.pgworker.flow.OnFailure;

import static org.assertj.core.api.Assertions.assertThat;

/** What the pages read of jobs that wait for jobs. */
class FlowsTest {

    private static Application application;
    private static Http http;

    @BeforeAll
    static void start() {
        application = Application.unsecured("pgworker.enabled=false");
        http = application.api();
    }

    @AfterAll
    static void stop() {
        application.close();
    }

    @Test
    void theJobsThatWaitForEachOtherAreShown() {
        JobFlow flow = new JobFlow();
        FlowJob part = flow.add("part", null);
        FlowJob whole = flow.add("whole", null).after(part).onFailure(OnFailure.REMOVE);
        flow.add("apology", null).after(part).onFailure(OnFailure.INSTEAD);
        AddedFlow added = application
                .context()
                .getBean(WorkerInstances.class)
                .get(WorkerInstances.DEFAULT)
                .jobFlows()
                .add(flow);

        JsonNode members =
                http.json("/default/flow?id=" + added.job(whole).id()).path("members");
        assertThat(members).hasSize(3);
        assertThat(members.get(1).path("task").asString()).isEqualTo("whole");
        assertThat(members.get(1).path("state").asString()).isEqualTo("waiting");
        assertThat(members.get(1).path("onFailure").asString()).isEqualTo("remove");
        assertThat(members.get(1).path("predecessors").get(0).asLong())
                .isEqualTo(added.job(part).id());
        assertThat(members.get(2).path("onFailure").asString()).isEqualTo("instead");
        JsonNode wait = http.json("/default/jobs/" + added.job(whole).id()).path("wait");
        assertThat(wait.path("reason").asString()).isEqualTo("predecessors");
        assertThat(http.json("/default/flow?id=" + added.job(whole).id() + "&most=2")
                        .path("members"))
                .hasSize(2);
        assertThat(http.json("/default/flow?id=4711").path("members")).isEmpty();
    }
}
