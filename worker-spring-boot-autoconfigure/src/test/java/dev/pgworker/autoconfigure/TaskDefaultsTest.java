package dev.pgworker.autoconfigure;

import java.time.Duration;
import java.util.List;
import java.util.stream.Stream;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.springframework.boot.context.properties.source.InvalidConfigurationPropertyValueException;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;

import dev.pgworker.autoconfigure.testing.RecordedEvents;
import dev.pgworker.autoconfigure.testing.TestDatabase;
import dev.pgworker.event.WorkerEvent.JobFailed;
import dev.pgworker.job.Job;
import dev.pgworker.job.JobQueries;
import dev.pgworker.job.JobRequest;
import dev.pgworker.job.JobScheduler;
import dev.pgworker.job.JobSpec;
import dev.pgworker.job.Task;
import dev.pgworker.task.JobHandler;
import dev.pgworker.task.JobTimeoutException;

import static org.assertj.core.api.Assertions.assertThat;

/** What the configuration says of single tasks. */
@ExtendWith(OutputCaptureExtension.class)
class TaskDefaultsTest {

    private static final Task<Integer> OTHER = Task.of("other", Integer.class);

    @RegisterExtension
    final TestDatabase db = new TestDatabase().installed();

    private final RecordedEvents events = new RecordedEvents();

    private ApplicationContextRunner runner() {
        return db.runner().withBean("events", RecordedEvents.class, () -> events);
    }

    static class Slow {

        @JobHandler("slow_task")
        void slow() throws InterruptedException {
            Thread.sleep(60_000);
        }

        @JobHandler(value = "quick", timeout = "1m")
        void quick() {
            throw new IllegalStateException("on purpose");
        }
    }

    @Test
    void attemptsAndPriorityApplyToWhatTheApplicationAddsWithoutSaying() {
        runner().withPropertyValues(
                        "pgworker.enabled=false",
                        "pgworker.task-defaults.other.max-attempts=5",
                        "pgworker.task-defaults.other.priority=-3",
                        "pgworker.task-defaults[mail/send].priority=7")
                .run(context -> {
                    JobScheduler jobs = context.getBean(JobScheduler.class);
                    JobSpec own = JobSpec.builder()
                            .maxAttempts(2)
                            .priority(0)
                            .queueName("q")
                            .build();
                    for (Job job : List.of(
                            jobs.addJob("other"),
                            jobs.addJob(OTHER, 1),
                            jobs.addJobs(List.of(JobRequest.of(OTHER, 1))).get(0))) {
                        assertThat(job.maxAttempts()).isEqualTo(5);
                        assertThat(job.priority()).isEqualTo(-3);
                    }
                    assertThat(jobs.addJobs(Stream.of(JobRequest.of(OTHER, 1), JobRequest.of("unnamed", 1))))
                            .isEqualTo(2);
                    assertThat(db.sql("select count(*) from {schema}.jobs where priority = -3 and max_attempts = 5")
                                    .query(Integer.class)
                                    .single())
                            .isEqualTo(4);
                    Job job = jobs.addJob(OTHER, 1, own);
                    assertThat(job.maxAttempts()).isEqualTo(2);
                    assertThat(job.priority()).isZero();
                    assertThat(job.queueName()).isEqualTo("q");
                    assertThat(jobs.addJob("mail/send").priority()).isEqualTo(7);
                    assertThat(jobs.addJob("unnamed").maxAttempts()).isEqualTo(25);
                });
    }

    @Test
    void timeoutAndBackOffApplyToWhatRunsWithoutSaying() {
        runner().withBean(Slow.class)
                .withPropertyValues(
                        "pgworker.task-defaults.slow_task.timeout=100ms",
                        "pgworker.task-defaults.slow_task.back-off.delay=1h",
                        "pgworker.task-defaults.slow_task.back-off.multiplier=3",
                        "pgworker.task-defaults.quick.timeout=1ms",
                        "pgworker.task-defaults.quick.back-off.delay=2h")
                .run(context -> {
                    JobScheduler jobs = context.getBean(JobScheduler.class);
                    long slow = jobs.addJob("slow_task").id();
                    assertThat(events.await(JobFailed.class).error()).isInstanceOf(JobTimeoutException.class);
                    long quick = jobs.addJob("quick").id();
                    events.await(JobFailed.class);

                    JobQueries queries = context.getBean(JobQueries.class);
                    Job after = queries.find(slow).orElseThrow();
                    assertThat(Duration.between(queries.now(), after.runAt()))
                            .isBetween(Duration.ofMinutes(53), Duration.ofMinutes(66));
                    Job failed = queries.find(quick).orElseThrow();
                    assertThat(failed.lastError()).contains("on purpose");
                    assertThat(Duration.between(queries.now(), failed.runAt()))
                            .isBetween(Duration.ofMinutes(107), Duration.ofMinutes(132));
                });
    }

    @Test
    void tellsOfTasksThatItDoesNotKnow(CapturedOutput output) {
        runner().withBean(Slow.class)
                .withPropertyValues(
                        "pgworker.task-defaults.slow_taks.timeout=1s", "pgworker.task-defaults.quick.timeout=1s")
                .run(context -> assertThat(output)
                        .contains("pgworker.task-defaults.* names [slow_taks]", "it knows [")
                        .doesNotContain("names [quick"));
    }

    @Test
    void tellsOfPropertiesThatNobodyReads(CapturedOutput output) {
        runner().withBean(Slow.class)
                .withPropertyValues(
                        "pgworker.task-defaults.mail.send.timeout=1s",
                        "pgworker.task-defaults.quick.max-attempt=1",
                        "pgworker.task-defaults.slow_task.back-off=",
                        "pgworker.taskDefaults.slow_task.backOff.maxDelay=9h",
                        "pgworker.task-defaults[mail.send].timeout=1s")
                .run(
                        context -> assertThat(output)
                                .contains(
                                        "[pgworker.task-defaults.mail.send.timeout, pgworker.task-defaults.quick.max-attempt] are not read"));
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', textBlock = """
                    max-attempts        | 0      | It must be between 1 and 32767.
                    max-attempts        | 32768  | It must be between 1 and 32767.
                    priority            | 32768  | It must be between -32768 and 32767.
                    timeout             | 0s     | It must be positive.
                    timeout             | -1s    | It must be positive.
                    back-off.delay      | -1s    | It must be between 0 and 36500 days.
                    back-off.delay      | 36501d | It must be between 0 and 36500 days.
                    back-off.multiplier | 0.5    | It must be at least 1.
                    back-off.multiplier | NaN    | It must be at least 1.
                    back-off.max-delay  | 0s     | It must not be shorter than pgworker.task-defaults.quick.back-off.delay, PT1S.
                    back-off.max-delay  | 99999d | It must be between 0 and 36500 days.
                    """)
    void refusesWhatIsWrong(String property, String value, String rule) {
        runner().withBean(Slow.class)
                .withPropertyValues("pgworker.task-defaults.quick." + property + "=" + value)
                .run(context -> assertThat(context.getStartupFailure())
                        .rootCause()
                        .isInstanceOfSatisfying(InvalidConfigurationPropertyValueException.class, refused -> {
                            assertThat(refused.getName()).isEqualTo("pgworker.task-defaults.quick." + property);
                            assertThat(refused.getReason()).isEqualTo(rule);
                        }));
    }
}
