package dev.pgworker.faults;

import java.time.Duration;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import javax.sql.DataSource;

import org.springframework.core.ParameterizedTypeReference;
import org.springframework.jdbc.core.JdbcTemplate;
import tools.jackson.core.JsonParser;
import tools.jackson.databind.DeserializationContext;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.ValueDeserializer;
import tools.jackson.databind.json.JsonMapper;
import tools.jackson.databind.module.SimpleModule;

import dev.pgworker.Worker;
import dev.pgworker.event.WorkerEvent;
import dev.pgworker.faults.FaultPlan.Area;
import dev.pgworker.faults.FaultPlan.Fault;
import dev.pgworker.faults.FaultPlan.Kind;
import dev.pgworker.job.Job;
import dev.pgworker.job.JobSpec;
import dev.pgworker.job.Task;
import dev.pgworker.schema.WorkerSchema;
import dev.pgworker.task.BatchResult;
import dev.pgworker.task.JobContext;
import dev.pgworker.task.JobControlException;
import dev.pgworker.task.JobInterceptor;
import dev.pgworker.task.PayloadCodec;
import dev.pgworker.task.TaskHandler;
import dev.pgworker.task.TaskOptions;
import dev.pgworker.task.TaskRegistration;

/** All that an application gives to a worker to be called, and that may fail in every way. */
final class FaultyCallbacks {

    /** A payload. */
    record Work(int number) {}

    static final Task<Work> PLAIN = Task.of("plain", Work.class);
    static final Task<Work> TRANSACTIONAL = Task.of("transactional", Work.class);
    static final Task<Work> TIMED = Task.of("timed", Work.class);
    static final Task<Work> ADDING = Task.of("adding", Work.class);
    static final Task<List<Work>> BATCH = Task.of("batch", new ParameterizedTypeReference<List<Work>>() {});

    private static final Instant FAR = Instant.parse("+12000-01-01T00:00:00Z");
    private static final Duration TIMEOUT = Duration.ofMillis(60);

    private final FaultPlan plan;
    private final Runs runs;
    private final WorkerSchema schema;
    private final JdbcTemplate jdbc;

    /**
     * Creates the callbacks of one run.
     *
     * @param dataSource where handlers write
     */
    FaultyCallbacks(FaultPlan plan, Runs runs, WorkerSchema schema, DataSource dataSource) {
        this.plan = plan;
        this.runs = runs;
        this.schema = schema;
        // Looks for no error codes, which takes a connection of its own.
        jdbc = new JdbcTemplate(dataSource, true);
        jdbc.setExceptionTranslator(new org.springframework.jdbc.support.SQLStateSQLExceptionTranslator());
    }

    void give(Worker.Builder builder, boolean direct) {
        TaskOptions usual = TaskOptions.DEFAULT.withDirect(direct);
        builder.codec(codec())
                .tasks(List.of(
                        registration(PLAIN, (work, context) -> {}, usual),
                        registration(TRANSACTIONAL, this::leaveTrace, TaskOptions.DEFAULT.withTransactional(true)),
                        registration(ADDING, this::addAnother, TaskOptions.DEFAULT.withTransactional(true)),
                        registration(TIMED, this::wait, usual.withTimeout(TIMEOUT)),
                        TaskRegistration.ofBatch(BATCH, this::handleItems).with(zeroDelay(usual))))
                .forbiddenFlags(this::forbidden)
                .jobInterceptor(this::intercept)
                .listener(event -> listen("listener", event))
                .directListener(event -> listen("direct listener", event));
    }

    private TaskRegistration registration(Task<Work> task, TaskHandler<Work> handler, TaskOptions options) {
        return TaskRegistration.of(task, (work, context) -> handle(work, context, handler))
                .with(zeroDelay(options));
    }

    private void handle(Work work, JobContext context, TaskHandler<Work> handler) throws Exception {
        Job job = context.job();
        try (Runs.Run run = runs.begin(job)) {
            Fault fault = plan.next(
                    Area.HANDLER,
                    "handler of " + job.taskIdentifier(),
                    Kind.FAILURE,
                    Kind.LOST_ANSWER,
                    Kind.ERROR,
                    Kind.LATE_ERROR,
                    Kind.DELAY,
                    Kind.LATER,
                    Kind.INTERRUPT,
                    Kind.HOSTILE);
            failBefore(fault);
            takeTime(work);
            handler.handle(work, context);
            failAfter(fault);
            run.succeeded();
        }
    }

    /** Some jobs take a while: only then can another one run beside them. */
    private static void takeTime(Work work) {
        if (work.number() % 3 == 0) {
            LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(work.number() % 40));
        }
    }

    private static void failBefore(Fault fault) {
        if (fault == null) {
            return;
        }
        switch (fault.kind()) {
            case FAILURE, HOSTILE -> throw FaultPlan.<RuntimeException>sneaky(fault.ofApplication());
            case ERROR -> throw fault.error();
            case LATER -> throw control(fault);
            case DELAY -> fault.delay();
            default -> {}
        }
    }

    private static void failAfter(Fault fault) {
        if (fault == null) {
            return;
        }
        switch (fault.kind()) {
            case LOST_ANSWER -> throw FaultPlan.<RuntimeException>sneaky(fault.ofApplication());
            case LATE_ERROR -> throw fault.error();
            case INTERRUPT -> Thread.currentThread().interrupt();
            default -> {}
        }
    }

    private static JobControlException control(Fault fault) {
        return switch (fault.random().nextInt(6)) {
            case 0 -> JobControlException.failPermanently("On purpose");
            case 1 -> JobControlException.snoozeFor(Duration.ZERO);
            case 2 -> JobControlException.snoozeUntil(FAR);
            case 3 -> JobControlException.retryAt(FAR, "On purpose", null);
            case 4 -> JobControlException.snoozeFor(ChronoUnit.FOREVER.getDuration());
            default -> JobControlException.retryIn(Duration.ofMillis(5), "On purpose", null);
        };
    }

    private void leaveTrace(Work work, JobContext context) {
        // Sent twice it leaves one trace all the same: two traces are two runs.
        jdbc.update(
                schema.in("insert into {schema}.traces values (?, ?) on conflict do nothing"),
                context.job().id(),
                runs.begun(context.job().id()));
    }

    private void addAnother(Work work, JobContext context) {
        leaveTrace(work, context);
        context.jobScheduler()
                .addJob(
                        PLAIN,
                        work,
                        JobSpec.builder().jobKey("another-" + work.number()).build());
    }

    private void wait(Work work, JobContext context) throws InterruptedException {
        if (plan.next(Area.HANDLER, "timed", Kind.DELAY) != null) {
            Thread.sleep(60_000);
        }
    }

    private BatchResult handleItems(List<Work> items, JobContext context) {
        try (Runs.Run run = runs.begin(context.job())) {
            BatchResult result = BatchResult.forEach(items, item -> {
                Fault fault = plan.next(Area.HANDLER, "item", Kind.FAILURE, Kind.ERROR, Kind.DELAY, Kind.HOSTILE);
                failBefore(fault);
            });
            if (result.errors().stream().allMatch(error -> error == null)) {
                run.succeeded();
            }
            return result;
        }
    }

    private TaskOptions zeroDelay(TaskOptions options) {
        return options.withRetryDelay((job, error) -> {
            Fault fault = plan.next(Area.HANDLER, "retry delay", Kind.FAILURE, Kind.ERROR, Kind.DELAY, Kind.HOSTILE);
            if (fault != null && fault.is(Kind.HOSTILE)) {
                return switch (fault.random().nextInt(6)) {
                    case 0 -> null;
                    case 1 -> ChronoUnit.FOREVER.getDuration();
                    case 2 -> Duration.ofSeconds(1L << 41);
                    case 3 -> Duration.ofDays(365L * 301);
                    case 4 -> Duration.ofSeconds(Long.MIN_VALUE);
                    default -> throw HostileException.create(fault.random());
                };
            }
            failBefore(fault);
            return Duration.ZERO;
        });
    }

    private Collection<String> forbidden() {
        Fault fault = plan.next(
                Area.CALLBACK, "forbidden flags", Kind.FAILURE, Kind.ERROR, Kind.DELAY, Kind.INTERRUPT, Kind.HOSTILE);
        if (fault != null && fault.is(Kind.HOSTILE)) {
            return switch (fault.random().nextInt(3)) {
                case 0 -> null;
                case 1 -> Arrays.asList("never", null);
                default -> throw HostileException.create(fault.random());
            };
        }
        failBefore(fault);
        failAfter(fault);
        return List.of("never");
    }

    private BatchResult intercept(JobContext context, JobInterceptor.Execution execution) throws Exception {
        Fault fault = plan.next(
                Area.HANDLER,
                "interceptor",
                Kind.FAILURE,
                Kind.LOST_ANSWER,
                Kind.ERROR,
                Kind.LATE_ERROR,
                Kind.DELAY,
                Kind.INLINE,
                Kind.INTERRUPT,
                Kind.HOSTILE);
        if (fault != null && fault.is(Kind.INLINE)) {
            runs.skipped(context.job());
            return null;
        }
        failBefore(fault);
        BatchResult result = execution.proceed();
        failAfter(fault);
        return result;
    }

    private void listen(String site, WorkerEvent event) {
        Fault fault = plan.next(
                Area.CALLBACK,
                site + " on " + event.getClass().getSimpleName(),
                Kind.FAILURE,
                Kind.ERROR,
                Kind.DELAY,
                Kind.INTERRUPT,
                Kind.HOSTILE);
        failBefore(fault);
        failAfter(fault);
    }

    private PayloadCodec codec() {
        SimpleModule module = new SimpleModule();
        module.addDeserializer(Work.class, new ValueDeserializer<Work>() {
            @Override
            public Work deserialize(JsonParser parser, DeserializationContext context) {
                JsonNode node = context.readTree(parser);
                failBefore(plan.next(Area.CODEC, "codec", Kind.FAILURE, Kind.ERROR, Kind.DELAY, Kind.HOSTILE));
                return new Work(node.path("number").asInt());
            }
        });
        return new PayloadCodec(JsonMapper.builder().addModule(module).build());
    }
}
