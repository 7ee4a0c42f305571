package dev.pgworker;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.stream.Stream;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

import dev.pgworker.event.WorkerEvent.JobCompleted;
import dev.pgworker.event.WorkerEvent.JobFailed;
import dev.pgworker.job.Job;
import dev.pgworker.job.JobRequest;
import dev.pgworker.job.JobScheduler;
import dev.pgworker.job.JobSpec;
import dev.pgworker.job.ScheduleInterceptor;
import dev.pgworker.job.Task;
import dev.pgworker.task.BatchResult;
import dev.pgworker.task.JobControlException;
import dev.pgworker.task.JobInterceptor;
import dev.pgworker.testing.RecordingListener;
import dev.pgworker.testing.TestSchema;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

/** What stands around a run, and before scheduling. */
@Tag("any-postgres")
class InterceptorTest {

    private static final Task<String> WORK = Task.of("work", String.class);

    @RegisterExtension
    final TestSchema db = new TestSchema();

    private final RecordingListener events = new RecordingListener();
    private final List<String> seen = new CopyOnWriteArrayList<>();

    private Worker.Builder worker(JobInterceptor... interceptors) {
        Worker.Builder builder = db.worker().listener(events).task(WORK, (what, context) -> {
            seen.add("handler " + what + " " + context.job().payload());
            if (what.equals("fail")) {
                throw new IllegalStateException("on purpose");
            }
        });
        for (JobInterceptor interceptor : interceptors) {
            builder.jobInterceptor(interceptor);
        }
        return builder;
    }

    @Test
    void areCalledInOrderAroundTheHandler() {
        db.start(worker(named("outer"), named("inner")));
        db.scheduler().addJob(WORK, "x");

        events.await(JobCompleted.class);

        assertThat(seen)
                .containsExactly("outer before", "inner before", "handler x \"x\"", "inner after", "outer after");
    }

    private JobInterceptor named(String name) {
        return (context, execution) -> {
            seen.add(name + " before");
            BatchResult result = execution.proceed();
            seen.add(name + " after");
            return result;
        };
    }

    @Test
    void mayKeepTheHandlerFromRunning() {
        db.start(worker((context, execution) -> null));
        db.scheduler().addJob(WORK, "x");

        events.await(JobCompleted.class);

        assertThat(seen).isEmpty();
        assertThat(db.jobs()).isZero();
    }

    @Test
    void mayFailTheAttempt() {
        db.start(worker((context, execution) -> {
            throw JobControlException.failPermanently("not today");
        }));
        db.scheduler().addJob(WORK, "x");

        assertThat(events.await(JobFailed.class).permanently()).isTrue();
        assertThat(seen).isEmpty();
    }

    @Test
    void mayReplaceTheOutcome() {
        db.start(worker((context, execution) -> {
            try {
                return execution.proceed();
            } catch (IllegalStateException e) {
                return null;
            }
        }));
        db.scheduler().addJob(WORK, "fail");

        events.await(JobCompleted.class);

        assertThat(seen).hasSize(1);
    }

    @Test
    void mayReplaceThePayloadOfOneAttempt() {
        db.start(worker((context, execution) -> execution.proceed("\"fail\"")));
        Job job = db.scheduler()
                .addJob(WORK, "stored", JobSpec.builder().maxAttempts(1).build());

        events.await(JobFailed.class);

        assertThat(seen).containsExactly("handler fail \"fail\"");
        assertThat(db.queries().find(job.id()).orElseThrow().payload()).isEqualTo("\"stored\"");
    }

    @Test
    void mayReplaceHowTheItemsOfABatchWent() {
        Task<List<Integer>> batch =
                Task.of("batch", new org.springframework.core.ParameterizedTypeReference<List<Integer>>() {});
        db.start(db.worker()
                .listener(events)
                .batchTask(
                        batch,
                        (items, context) -> BatchResult.forEach(items, item -> {
                            throw new IllegalStateException("item " + item);
                        }))
                .jobInterceptor((context, execution) -> {
                    execution.proceed();
                    return null;
                }));
        db.scheduler().addBatchJob(batch, List.of(1, 2));

        events.await(JobCompleted.class);
    }

    private JobScheduler scheduler(ScheduleInterceptor... interceptors) {
        return WorkerClient.jobScheduler(db.dataSource(), db.schema(), db.codec(), () -> List.of(interceptors));
    }

    private List<String> stored() {
        return db.sql("select task_identifier || ' ' || payload || ' ' || j.priority from {schema}._private_jobs j"
                        + " join {schema}.jobs v using (id) order by id")
                .query(String.class)
                .list();
    }

    private static final ScheduleInterceptor LOUD = request -> JobRequest.of(
            request.identifier(),
            request.payload() + "!",
            request.spec().toBuilder().priority(-1).build());

    private static final ScheduleInterceptor SKIPPING =
            request -> String.valueOf(request.payload()).startsWith("skip") ? null : request;

    @Test
    void beforeSchedulingChangeTheJobInOrder() {
        JobScheduler jobs = scheduler(
                LOUD, request -> JobRequest.of(request.identifier(), request.payload() + "?", request.spec()));

        Job job = jobs.addJob(WORK, "a");
        jobs.addJob("other", "b", JobSpec.builder().jobKey("k").build());
        jobs.addJobs(List.of(JobRequest.of("bulk", "c")));
        assertThat(jobs.addJobs(Stream.of(JobRequest.of("stream", "d")))).isEqualTo(1);
        jobs.addBatchJob("batch", List.of(1), JobSpec.DEFAULT);

        assertThat(job.payload()).isEqualTo("\"a!?\"");
        assertThat(stored())
                .containsExactly(
                        "work \"a!?\" -1",
                        "other \"b!?\" -1",
                        "bulk \"c!?\" -1",
                        "stream \"d!?\" -1",
                        "batch \"[1]!?\" -1");
    }

    @Test
    void beforeSchedulingSkipJobs() {
        JobScheduler jobs = scheduler(SKIPPING);

        Job skipped = jobs.addJob(WORK, "skip this");
        List<Job> bulk = jobs.addJobs(List.of(
                JobRequest.of("t", "skip"),
                JobRequest.of("t", "a"),
                JobRequest.of("t", "skip"),
                JobRequest.of("t", "b")));
        long streamed = jobs.addJobs(Stream.of(JobRequest.of("t", "skip"), JobRequest.of("t", "c")));

        assertThat(skipped.isSkipped()).isTrue();
        assertThat(skipped.payload()).isEqualTo("\"skip this\"");
        assertThat(bulk.stream().map(Job::isSkipped)).containsExactly(true, false, true, false);
        assertThat(bulk.get(3).payload()).isEqualTo("\"b\"");
        assertThat(jobs.addJobs(List.of(JobRequest.of("t", "skip"))))
                .singleElement()
                .matches(Job::isSkipped);
        assertThat(streamed).isEqualTo(1);
        assertThat(stored()).containsExactly("t \"a\" 0", "t \"b\" 0", "t \"c\" 0");
    }

    @Test
    void beforeSchedulingRefuseJobs() {
        List<JobRequest> asked = new ArrayList<>();
        JobScheduler jobs = scheduler(request -> {
            asked.add(request);
            if ("refuse".equals(request.payload())) {
                throw new IllegalStateException("refused");
            }
            return request;
        });

        assertThatIllegalStateException()
                .isThrownBy(() -> jobs.addJob(WORK, "refuse"))
                .withMessage("refused");
        assertThatIllegalStateException()
                .isThrownBy(() -> jobs.addJobs(List.of(JobRequest.of("t", "a"), JobRequest.of("t", "refuse"))));
        assertThatIllegalStateException()
                .isThrownBy(() -> jobs.addJobs(Stream.of(JobRequest.of("t", "a"), JobRequest.of("t", "refuse"))));

        assertThat(asked).hasSize(5);
        assertThat(db.jobs()).isZero();
    }
}
