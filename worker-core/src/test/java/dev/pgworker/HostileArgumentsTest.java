package dev.pgworker;

import java.io.IOException;
import java.lang.reflect.Constructor;
import java.lang.reflect.Executable;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.lang.reflect.Parameter;
import java.lang.reflect.Proxy;
import java.lang.reflect.Type;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Collections;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Predicate;
import java.util.function.Supplier;
import java.util.function.UnaryOperator;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import javax.sql.DataSource;

import io.micrometer.observation.ObservationRegistry;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.springframework.core.ParameterizedTypeReference;
import org.springframework.core.retry.RetryPolicy;
import org.springframework.jdbc.support.JdbcTransactionManager;
import org.springframework.transaction.PlatformTransactionManager;
import org.springframework.util.backoff.BackOff;
import org.springframework.util.backoff.FixedBackOff;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

import dev.pgworker.crontab.CronItem;
import dev.pgworker.crontab.Crontab;
import dev.pgworker.crontab.CrontabException;
import dev.pgworker.flow.FlowJob;
import dev.pgworker.flow.JobFlow;
import dev.pgworker.flow.JobFlows;
import dev.pgworker.flow.PredecessorResult;
import dev.pgworker.flow.PredecessorResults;
import dev.pgworker.history.HistoryQuery;
import dev.pgworker.history.HistorySettings;
import dev.pgworker.history.JobHistory;
import dev.pgworker.internal.argument.LogText;
import dev.pgworker.job.CleanupTask;
import dev.pgworker.job.Job;
import dev.pgworker.job.JobChange;
import dev.pgworker.job.JobChanges;
import dev.pgworker.job.JobQueries;
import dev.pgworker.job.JobQuery;
import dev.pgworker.job.JobRequest;
import dev.pgworker.job.JobScheduler;
import dev.pgworker.job.JobSpec;
import dev.pgworker.job.PauseTarget;
import dev.pgworker.job.Rescheduling;
import dev.pgworker.job.SweepOptions;
import dev.pgworker.job.Task;
import dev.pgworker.job.WorkerOperations;
import dev.pgworker.limit.JobLimits;
import dev.pgworker.limit.Limit;
import dev.pgworker.limit.LimitMethods;
import dev.pgworker.recovery.RecoverySettings;
import dev.pgworker.schedule.Recurrence;
import dev.pgworker.schedule.RecurringJobs;
import dev.pgworker.schedule.RecurringQuery;
import dev.pgworker.schedule.Schedule;
import dev.pgworker.schema.SchemaMigrator;
import dev.pgworker.schema.WorkerSchema;
import dev.pgworker.statistics.JobStatistics;
import dev.pgworker.task.BatchResult;
import dev.pgworker.task.JobContext;
import dev.pgworker.task.PayloadCodec;
import dev.pgworker.task.PayloadException;
import dev.pgworker.task.RetryDelay;
import dev.pgworker.task.TaskOptions;
import dev.pgworker.task.TaskRegistration;
import dev.pgworker.task.TaskRegistry;
import dev.pgworker.testing.TestJob;
import dev.pgworker.testing.TestSchema;
import dev.pgworker.testing.Values;

import static org.assertj.core.api.Assertions.assertThat;

/** Each argument of each public method is refused by its name, or the method does what it promises, whatever is passed. */
@Tag("any-postgres")
class HostileArgumentsTest {

    private static final Pattern METHOD = Pattern.compile("([^ #]+)#(?:<.+?>(?=\\w+\\())?(\\w+)\\((.+)\\).*");

    /** Payloads are named as in the job that is added; a kind is right or wrong with the name. */
    private static final Map<String, String> ALIASES =
            Map.of("payloads", "payload", "items", "payload", "kind", " must ", "attributes", "tasks");

    @RegisterExtension
    final TestSchema db = new TestSchema();

    private final AtomicInteger names = new AtomicInteger();
    private final List<String> problems = new ArrayList<>();
    private final JobFlow flow = new JobFlow();
    private int tried;
    private long jobId;

    private @Nullable Worker worker;

    @Test
    void areRefusedByNameOrAccepted() throws Exception {
        worker = db.worker()
                .task(Task.of("task", Object.class), (payload, context) -> {})
                .cronItem(CronItem.of("minutely").everyMinute().build())
                .build();
        db.sql("insert into {schema}._private_known_crontabs (identifier, known_since) values ('text', now())")
                .update();
        jobId = db.scheduler().addJob("task").id();
        flow.add("text", null);
        for (Executable method : methods()) {
            Class<?> type = method.getDeclaringClass();
            if (type != JobContext.class && !isForUsersToImplement(method)) {
                boolean alone = method instanceof Constructor<?> || Modifier.isStatic(method.getModifiers());
                tryArguments(method, () -> alone ? null : sample(type, "", method));
            }
        }
        whileAJobRuns();
        assertThat(String.join("\n", problems)).as("of " + tried + " calls").isEmpty();
        assertThat(tried).isGreaterThan(3_000);
    }

    private void whileAJobRuns() throws Exception {
        List<Executable> methods = methods().stream()
                .filter(method -> method.getDeclaringClass() == JobContext.class)
                .toList();
        int before = tried;
        db.scheduler().addJob("hostile");
        db.worker()
                .task(Task.of("hostile", Object.class), (payload, context) -> {
                    for (Executable method : methods) {
                        tryArguments(method, () -> context);
                    }
                })
                .build()
                .runOnce();
        assertThat(tried).isGreaterThan(before);
    }

    private static List<Executable> methods() throws IOException {
        List<Executable> methods = new ArrayList<>();
        for (String line : Files.readAllLines(Path.of("src/test/resources/public-api.txt"))) {
            Matcher matcher = METHOD.matcher(line);
            if (matcher.matches()) {
                methods.add(find(matcher.group(1), matcher.group(2), matcher.group(3)));
            }
        }
        return methods;
    }

    private static Executable find(String type, String name, String parameters) {
        Class<?> declaring;
        try {
            declaring = Class.forName(type);
        } catch (ClassNotFoundException e) {
            throw new IllegalStateException(e);
        }
        Stream<? extends Executable> candidates = name.equals("new")
                ? Stream.of(declaring.getDeclaredConstructors())
                : Stream.of(declaring.getDeclaredMethods())
                        .filter(method -> method.getName().equals(name) && !method.isSynthetic());
        return candidates
                .filter(candidate -> Arrays.stream(candidate.getGenericParameterTypes())
                        .map(Type::getTypeName)
                        .collect(Collectors.joining(", "))
                        .equals(parameters))
                .findFirst()
                .orElseThrow(() -> new IllegalStateException("No " + type + "#" + name + "(" + parameters + ")"));
    }

    /** The library calls these; of {@code JobInterceptor.Execution}, a job allows one call. */
    private static boolean isForUsersToImplement(Executable method) {
        Set<Class<?>> ofTheLibrary = Set.of(
                JobChanges.class,
                JobFlows.class,
                JobHistory.class,
                JobLimits.class,
                JobQueries.class,
                JobScheduler.class,
                RecurringJobs.class,
                JobStatistics.class,
                WorkerOperations.class);
        return Modifier.isAbstract(method.getModifiers()) && !ofTheLibrary.contains(method.getDeclaringClass());
    }

    private void tryArguments(Executable method, Supplier<@Nullable Object> receiver) {
        boolean built = true;
        Throwable failure = call(method, receiver.get(), samples(method), true);
        if (failure != null) {
            built = false;
            failure = call(method, receiver.get(), samples(method), false);
        }
        if (failure != null) {
            problems.add(method + " refuses what is allowed: " + failure);
            return;
        }
        Parameter[] parameters = method.getParameters();
        for (int i = 0; i < parameters.length; i++) {
            for (Object value : Values.hostile(method.getGenericParameterTypes()[i])) {
                Object[] arguments = samples(method);
                arguments[i] = value;
                failure = call(method, receiver.get(), arguments, built);
                if (failure != null && !names(failure, parameters[i].getName())) {
                    problems.add(method.getDeclaringClass().getName() + "#" + method.getName() + " "
                            + parameters[i].getName() + " = " + shown(value) + ": " + failure);
                }
            }
        }
    }

    private static String shown(@Nullable Object value) {
        String text = value instanceof Object[] array ? Arrays.toString(array) : String.valueOf(value);
        String type = value == null ? "" : value.getClass().getSimpleName() + " ";
        return type + LogText.visible(text.length() > 100 ? text.substring(0, 20) + "..." : text);
    }

    /** Calls a method, and builds what it returns if that is a builder that can build; returns what is thrown. */
    private @Nullable Throwable call(
            Executable method, @Nullable Object receiver, @Nullable Object[] arguments, boolean build) {
        tried++;
        try {
            method.setAccessible(true);
            Object result = method instanceof Constructor<?> constructor
                    ? constructor.newInstance(arguments)
                    : ((Method) method).invoke(receiver, arguments);
            if (build && result != null && result.getClass().getSimpleName().equals("Builder")) {
                result = result.getClass().getMethod("build").invoke(result);
            }
            use(result);
            return null;
        } catch (InvocationTargetException e) {
            return e.getCause();
        } catch (ReflectiveOperationException | RuntimeException e) {
            return e;
        }
    }

    /** Passes on what carries arguments to the database. */
    private void use(@Nullable Object result) {
        String unused = result + " " + Objects.hashCode(result);
        if (result instanceof JobQuery query) {
            db.queries().list(query);
            db.queries().count(query);
        } else if (result instanceof HistoryQuery query) {
            db.queries().history().list(query);
        } else if (result instanceof RecurringQuery query) {
            worker.recurringJobs().list(query);
        } else if (result instanceof SweepOptions options) {
            db.operations().sweep(options);
        } else if (result instanceof JobSpec spec) {
            db.scheduler().addJob("task", null, spec);
            db.scheduler().addJobs(List.of(JobRequest.of("task", null, spec)));
        } else if (result instanceof JobRequest request) {
            db.scheduler().addJobs(List.of(request));
        } else if (result instanceof Rescheduling rescheduling) {
            db.changes().reschedule(List.of(jobId), rescheduling);
        } else if (result instanceof PauseTarget target) {
            db.operations().pause(target, null);
            db.operations().resume(target);
        } else if (result instanceof Schedule schedule) {
            worker.recurringJobs().put(schedule);
            schedule.next(TestJob.TIME, 10);
        } else if (result instanceof Limit limit) {
            worker.jobLimits().put(limit.weights() == null ? limit : limit.per("text"));
        } else if (result instanceof RetryDelay policy) {
            policy.delay(TestJob.withId(1).build(), new IllegalStateException());
        } else if (result instanceof CronItem item) {
            item.nextDue(TestJob.TIME);
        }
    }

    /** The JVM's own message of a null pointer names what a method of the JDK calls its argument. */
    private static boolean names(Throwable failure, String argument) {
        String alias = ALIASES.getOrDefault(argument, argument);
        String message = String.valueOf(failure.getMessage());
        String said = message.toLowerCase(Locale.ROOT);
        return failure instanceof CrontabException
                || failure instanceof PayloadException
                || ((failure instanceof IllegalArgumentException || failure instanceof NullPointerException)
                        && !message.startsWith("Cannot ")
                        && (said.contains(argument.toLowerCase(Locale.ROOT)) || said.contains(alias)));
    }

    private @Nullable Object[] samples(Executable method) {
        Parameter[] parameters = method.getParameters();
        Object[] samples = new Object[parameters.length];
        for (int i = 0; i < samples.length; i++) {
            samples[i] = parameters[i].getAnnotatedType().isAnnotationPresent(Nullable.class)
                            && method.getDeclaringClass() != Rescheduling.class
                    ? null
                    : sample(method.getGenericParameterTypes()[i], parameters[i].getName(), method);
        }
        return samples;
    }

    /** Returns a value that the method allows, or an object that has it. */
    private @Nullable Object sample(Type type, String name, Executable of) {
        Class<?> raw = Values.rawType(type);
        if (raw == String.class) {
            return text(name, of);
        }
        if (raw == Collection.class || raw == List.class || raw == Set.class || raw == Stream.class) {
            return Values.collection(raw, List.of(sample(Values.element(type), name, of)));
        }
        if (raw == Task.class && type.getTypeName().contains("List<")) {
            return Task.of("batch", new ParameterizedTypeReference<List<Object>>() {});
        }
        if (raw == Schedule.class) {
            String called = of.getName().equals("create") ? "unique-" + names.incrementAndGet() : "text";
            return Schedule.builder(called, recurrence(), "task", null).build();
        }
        if (raw == FlowJob.class) {
            boolean fresh = name.isEmpty() || of.getName().equals("orElse");
            return fresh ? flow.add("text", null) : flow.jobs().get(0);
        }
        if (raw == FlowJob[].class) {
            return new FlowJob[] {flow.jobs().get(0)};
        }
        if (raw == long[].class) {
            return new long[] {jobId};
        }
        if (raw == JobFlow.class && of.getDeclaringClass() == JobFlows.class) {
            JobFlow added = new JobFlow();
            added.add("text", null);
            return added;
        }
        if (raw == Limit.class && of.getName().equals("withWeights")) {
            return Limit.fairShare("text", "text").per("text");
        }
        if (raw == BackOff.class) {
            return new FixedBackOff(100, 3);
        }
        if (raw == RetryPolicy.class) {
            return RetryPolicy.withDefaults();
        }
        if (name.equals("weights")) {
            return Map.of("text", 2.0);
        }
        if (name.equals("attributes")) {
            return Map.of("tasks", "text", "maxRunning", 1);
        }
        if (name.equals("retryFor")) {
            return Set.of(IllegalArgumentException.class);
        }
        if (raw == Duration.class) {
            return Duration.ofMinutes(name.equals("sweepThreshold") ? 10 : 1);
        }
        if (raw.isArray()) {
            return new String[] {"text"};
        }
        if (raw.isEnum()) {
            return raw == PauseTarget.Kind.class ? PauseTarget.Kind.EVERYTHING : raw.getEnumConstants()[0];
        }
        Object value = value(raw);
        if (value != null) {
            return value;
        }
        if (raw.isRecord()) {
            return ofRecord(raw);
        }
        if (raw.isInterface()) {
            return Proxy.newProxyInstance(
                    raw.getClassLoader(),
                    new Class<?>[] {raw},
                    (proxy, called, arguments) -> called.getReturnType() == boolean.class ? true : null);
        }
        throw new IllegalStateException("No sample of " + raw + " for " + of);
    }

    private Object ofRecord(Class<?> raw) {
        for (Constructor<?> constructor : raw.getDeclaredConstructors()) {
            if (constructor.getParameterCount() == raw.getRecordComponents().length) {
                try {
                    return constructor.newInstance(samples(constructor));
                } catch (ReflectiveOperationException e) {
                    throw new IllegalStateException("No sample of " + raw, e);
                }
            }
        }
        throw new IllegalStateException("No constructor of " + raw);
    }

    private static String text(String name, Executable of) {
        return switch (name) {
            case "pattern" -> "* * * * *";
            case "expression" -> "0 0 0 * * *";
            case "id" ->
                of.getDeclaringClass() == RecurringJobs.class && !of.getName().equals("delete") ? "minutely" : "text";
            case "text" ->
                of.getDeclaringClass().getName().startsWith(Crontab.class.getName()) ? "* * * * * task" : "text";
            case "argumentName" -> "payload";
            case "json" -> "{}";
            default -> "text";
        };
    }

    private @Nullable Object value(Class<?> type) {
        if (type == int.class || type == Integer.class) {
            return 1;
        }
        if (type == long.class || type == Long.class) {
            return 1_000L;
        }
        if (type == boolean.class || type == Boolean.class) {
            return false;
        }
        Map<Class<?>, Supplier<Object>> values = Map.ofEntries(
                Map.entry(double.class, () -> 2.0),
                Map.entry(Instant.class, () -> TestJob.TIME),
                Map.entry(ZoneId.class, () -> ZoneOffset.UTC),
                Map.entry(Object.class, () -> Map.of("a", 1)),
                Map.entry(Type.class, () -> Object.class),
                Map.entry(Class.class, () -> IllegalStateException.class),
                Map.entry(Map.class, () -> Map.of(CleanupTask.GC_JOB_QUEUES, 1L)),
                Map.entry(Throwable.class, IllegalStateException::new),
                Map.entry(Exception.class, IllegalStateException::new),
                Map.entry(Executor.class, () -> (Executor) Runnable::run),
                Map.entry(Predicate.class, () -> (Predicate<Object>) any -> true),
                Map.entry(Supplier.class, () -> (Supplier<Object>) List::of),
                Map.entry(UnaryOperator.class, UnaryOperator::identity),
                Map.entry(ParameterizedTypeReference.class, () -> new ParameterizedTypeReference<List<Object>>() {}),
                Map.entry(JsonMapper.class, JsonMapper::new),
                Map.entry(ObservationRegistry.class, () -> ObservationRegistry.NOOP),
                Map.entry(DataSource.class, db::dataSource),
                Map.entry(PlatformTransactionManager.class, () -> new JdbcTransactionManager(db.dataSource())));
        Supplier<Object> value = values.get(type);
        return value == null ? ofTheLibrary(type) : value.get();
    }

    private @Nullable Object ofTheLibrary(Class<?> type) {
        Worker built = Objects.requireNonNull(worker);
        Map<Class<?>, Supplier<Object>> values = Map.ofEntries(
                Map.entry(BatchResult.class, () -> BatchResult.of(Collections.singletonList(null))),
                Map.entry(
                        CronItem.class, () -> CronItem.of("task").everyMinute().build()),
                Map.entry(CronItem.Builder.class, () -> CronItem.of("task").everyMinute()),
                Map.entry(Crontab.class, () -> Crontab.EMPTY),
                Map.entry(Crontab.Builder.class, Crontab::builder),
                Map.entry(HistoryQuery.Builder.class, HistoryQuery::builder),
                Map.entry(HistorySettings.Builder.class, HistorySettings::builder),
                Map.entry(HistorySettings.class, () -> HistorySettings.DEFAULT),
                Map.entry(Job.class, () -> TestJob.withId(1).payload("[1]").build()),
                Map.entry(JsonNode.class, () -> new JsonMapper().createObjectNode()),
                Map.entry(JobChange.class, JobChange.RunNow::new),
                Map.entry(JobContext.class, HostileArgumentsTest::context),
                Map.entry(JobFlow.class, () -> flow),
                Map.entry(JobFlows.class, built::jobFlows),
                Map.entry(JobHistory.class, () -> db.queries().history()),
                Map.entry(JobLimits.class, built::jobLimits),
                Map.entry(JobQuery.class, () -> JobQuery.ALL),
                Map.entry(JobQuery.Builder.class, JobQuery::builder),
                Map.entry(JobScheduler.class, db::scheduler),
                Map.entry(RecurringJobs.class, built::recurringJobs),
                Map.entry(JobSpec.class, () -> JobSpec.DEFAULT),
                Map.entry(JobSpec.Builder.class, JobSpec::builder),
                Map.entry(JobStatistics.class, () -> db.queries().statistics()),
                Map.entry(Limit.class, () -> Limit.rate("text", 10, Duration.ofMinutes(1), "text")),
                Map.entry(LimitMethods.class, () -> new LimitMethods(UnaryOperator.identity())),
                Map.entry(PayloadCodec.class, db::codec),
                Map.entry(PredecessorResults.class, HostileArgumentsTest::predecessors),
                Map.entry(Recurrence.class, HostileArgumentsTest::recurrence),
                Map.entry(RecoverySettings.Builder.class, RecoverySettings::builder),
                Map.entry(
                        Rescheduling.Builder.class, () -> Rescheduling.builder().attempts(1)),
                Map.entry(Schedule.Builder.class, () -> Schedule.builder("text", recurrence(), "task", null)),
                Map.entry(SchemaMigrator.class, () -> new SchemaMigrator(db.dataSource(), db.schema())),
                Map.entry(Task.class, () -> Task.of("task", Object.class)),
                Map.entry(TaskOptions.class, () -> TaskOptions.DEFAULT),
                Map.entry(TaskRegistration.class, HostileArgumentsTest::registration),
                Map.entry(TaskRegistry.class, () -> TaskRegistry.of(List.of(registration()))),
                Map.entry(Worker.class, () -> built),
                Map.entry(Worker.Builder.class, db::worker),
                Map.entry(WorkerSchema.class, db::schema),
                Map.entry(WorkerSettings.Builder.class, WorkerSettings::builder),
                Map.entry(WorkerSettings.class, () -> WorkerSettings.builder().build()));
        Supplier<Object> value = values.get(type);
        return value == null ? null : value.get();
    }

    private static PredecessorResults predecessors() {
        PredecessorResult one = (PredecessorResult) Proxy.newProxyInstance(
                PredecessorResult.class.getClassLoader(),
                new Class<?>[] {PredecessorResult.class},
                (proxy, called, arguments) -> called.getReturnType() == int.class
                        ? (Object) 1
                        : called.getReturnType() == String.class ? "task" : null);
        return () -> List.of(one);
    }

    private static Recurrence recurrence() {
        return Recurrence.fixedRate(Duration.ofMinutes(1), TestJob.TIME);
    }

    private static TaskRegistration registration() {
        return TaskRegistration.of(Task.of("task", Object.class), (payload, context) -> {});
    }

    private static Object context() {
        Job job = TestJob.withId(1).build();
        return Proxy.newProxyInstance(
                JobContext.class.getClassLoader(),
                new Class<?>[] {JobContext.class},
                (proxy, called, arguments) -> called.getName().equals("job") ? job : null);
    }
}
