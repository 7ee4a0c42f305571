package dev.pgworker.test;

import java.math.BigDecimal;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;

import org.junit.jupiter.api.Test;
import org.springframework.core.ParameterizedTypeReference;

import dev.pgworker.job.JobRequest;
import dev.pgworker.job.JobSpec;
import dev.pgworker.job.Task;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

class EnqueuedJobsAssertTest {

    private static final Task<Greeting> HELLO = Task.of("hello", Greeting.class);
    private static final Task<List<Greeting>> GREETINGS =
            Task.of("greetings", new ParameterizedTypeReference<List<Greeting>>() {});

    private final TestJobScheduler jobs = new TestJobScheduler();

    record Greeting(String name) {}

    /** Equal only to itself, as classes without equals are. */
    static final class Price {
        public BigDecimal amount = new BigDecimal("1.10");
    }

    @Test
    void nothingWasEnqueued() {
        assertThat(jobs.jobs()).isEmpty().hasNotEnqueued(HELLO).hasNotEnqueued("hello");

        assertThatThrownBy(() -> assertThat(jobs.jobs()).hasEnqueued(HELLO))
                .isInstanceOf(AssertionError.class)
                .hasMessageContaining("Expecting a job of task \"hello\" but there is no job");
        assertThatThrownBy(() -> assertThat(jobs.jobs()).as("after the order").hasSize(1))
                .hasMessageContainingAll("after the order", "Expecting 1 jobs");
    }

    @Test
    void everythingThatASpecSaysIsSeen() {
        Instant runAt = Instant.parse("2030-01-01T04:00:00.123456789Z");
        JobSpec spec = JobSpec.builder()
                .queueName("mail")
                .jobKey("k")
                .priority(-5)
                .maxAttempts(3)
                .flags("a", "b")
                .runAt(runAt)
                .build();
        jobs.addJob(HELLO, new Greeting("Ada"), spec);

        assertThat(jobs.jobs())
                .hasSize(1)
                .hasEnqueued(HELLO)
                .withPayload(new Greeting("Ada"))
                .inQueue("mail")
                .withKey("k")
                .withPriority(-5)
                .withMaxAttempts(3)
                .withAttempts(0)
                .withFlags("b", "a")
                .dueAt(runAt)
                .once();
        assertThat(jobs.jobs().list().get(0).runAt()).isEqualTo(Instant.parse("2030-01-01T04:00:00.123457Z"));
        assertThat(jobs.jobs().payloads(HELLO)).containsExactly(new Greeting("Ada"));
        assertThatThrownBy(() -> assertThat(jobs.jobs()).hasEnqueued(HELLO).withFlags("a"))
                .hasMessageContaining("with flags [a]");
        assertThatThrownBy(() -> assertThat(jobs.jobs()).hasEnqueued(HELLO).withoutKey())
                .hasMessageContaining("without a key");
        assertThatThrownBy(() -> assertThat(jobs.jobs()).hasEnqueued(HELLO).withoutQueue())
                .hasMessageContaining("in no queue");
        assertThatThrownBy(() -> assertThat(jobs.jobs()).hasEnqueued(HELLO).due())
                .hasMessageContaining("due in PT");
        assertThatThrownBy(() -> assertThat(jobs.jobs()).hasNotEnqueued(HELLO))
                .hasMessageContaining("Expecting no job of task \"hello\" but 1 job:");
    }

    @Test
    void aFailureShowsWhatWasAssertedAndWhatThereIs() {
        jobs.addJob(
                HELLO, new Greeting("Ada"), JobSpec.builder().queueName("mail").build());
        jobs.addJob(HELLO, new Greeting("Bob"));

        assertThatThrownBy(() -> assertThat(jobs.jobs())
                        .hasEnqueued(HELLO)
                        .withPayload(new Greeting("Bob"))
                        .inQueue("mail"))
                .hasMessageContainingAll(
                        "Expecting a job of task \"hello\", with payload {\"name\":\"Bob\"}, in queue \"mail\" but 2 jobs:",
                        "(hello, attempt 0/25) {\"name\":\"Ada\"}, due, priority 0, queue \"mail\"",
                        "(hello, attempt 0/25) {\"name\":\"Bob\"}, due, priority 0");
        assertThatThrownBy(() -> assertThat(jobs.jobs()).hasEnqueued(HELLO).once())
                .hasMessageContainingAll("Expecting 1 jobs of task \"hello\" but there are 2");
    }

    @Test
    void payloadsAreComparedByValueOrAsJson() {
        jobs.addJob("price", new Price());
        jobs.addJob("map", Map.of("a", 1, "_trace", "00-1"));
        jobs.addJob("nothing");
        jobs.addJobs(Stream.of(JobRequest.of(GREETINGS, List.of(new Greeting("Ada")))));

        assertThat(jobs.jobs()).hasEnqueued(Task.of("price", Price.class)).withPayload(new Price());
        assertThat(jobs.jobs()).hasEnqueued("price").withPayload(Map.of("amount", new BigDecimal("1.10")));
        assertThat(jobs.jobs()).hasEnqueued("map").withPayload(Map.of("a", 1));
        assertThat(jobs.jobs()).hasEnqueued("nothing").withPayload(Map.of());
        assertThat(jobs.jobs()).hasEnqueued(GREETINGS).withPayload(List.of(new Greeting("Ada")));
        assertThatThrownBy(() -> assertThat(jobs.jobs()).hasEnqueued("map").withPayload(Map.of("a", "1")))
                .isInstanceOf(AssertionError.class);
        assertThatThrownBy(() -> assertThat(jobs.jobs())
                        .hasEnqueued(Task.of("map", Greeting.class))
                        .withPayload(new Greeting("Ada")))
                .isInstanceOf(AssertionError.class);
    }

    @Test
    void payloadsAreAssertedByRequirements() {
        jobs.addJob(HELLO, new Greeting("Ada"));
        jobs.addJob(HELLO, new Greeting("Bob"));

        assertThat(jobs.jobs())
                .hasEnqueued(HELLO)
                .withPayloadSatisfying(greeting -> assertThat(greeting.name()).startsWith("B"))
                .once();
        assertThatThrownBy(() -> assertThat(jobs.jobs())
                        .hasEnqueued(HELLO)
                        .withPayloadSatisfying(
                                greeting -> assertThat(greeting.name()).isEqualTo("Eve")))
                .hasMessageContainingAll("satisfies the requirements", "because of", "\"Ada\"", "\"Eve\"");
    }

    @Test
    void timesAreReckonedFromTheCallThatAdds() {
        jobs.addJob(
                HELLO,
                new Greeting("Ada"),
                JobSpec.builder().runIn(Duration.ofHours(1)).build());

        assertThat(jobs.jobs()).hasEnqueued(HELLO).dueIn(Duration.ofHours(1));
        assertThatThrownBy(() -> assertThat(jobs.jobs()).hasEnqueued(HELLO).dueIn(Duration.ofMinutes(61)))
                .hasMessageContaining("due in PT1H1M");
    }

    @Test
    void aSchedulerInMemoryRefusesWhatTheApplicationsDoes() {
        assertThatThrownBy(() -> jobs.addJob("", null)).isInstanceOf(IllegalArgumentException.class);
        assertThatThrownBy(() -> jobs.addJob("hello", JobSpec.DEFAULT)).isInstanceOf(IllegalArgumentException.class);
        assertThatThrownBy(() -> jobs.addJobs(
                        List.of(JobRequest.of(HELLO, new Greeting("Ada")), JobRequest.of("hello", JobSpec.DEFAULT))))
                .isInstanceOf(IllegalArgumentException.class);
        assertThat(jobs.jobs()).isEmpty();
        jobs.addJob(HELLO, new Greeting("Ada"));
        jobs.clear();
        assertThat(jobs.jobs()).isEmpty();
    }
}
