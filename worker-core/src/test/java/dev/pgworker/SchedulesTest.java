package dev.pgworker;

import java.time.Duration;
import java.time.Instant;
import java.time.ZoneId;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import java.util.stream.Stream;

import com.zaxxer.hikari.HikariDataSource;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.springframework.core.ParameterizedTypeReference;

import dev.pgworker.event.WorkerEvent.JobCompleted;
import dev.pgworker.event.WorkerEvent.JobFailed;
import dev.pgworker.event.WorkerEvent.ListenerConnected;
import dev.pgworker.event.WorkerEvent.ScheduleExecuted;
import dev.pgworker.event.WorkerEvent.ScheduleFailed;
import dev.pgworker.internal.schedule.DeclaredSchedules;
import dev.pgworker.internal.schedule.ScheduleService;
import dev.pgworker.job.JobSpec;
import dev.pgworker.job.Task;
import dev.pgworker.schedule.Misfire;
import dev.pgworker.schedule.Overlap;
import dev.pgworker.schedule.Recurrence;
import dev.pgworker.schedule.RecurringJob;
import dev.pgworker.schedule.RecurringJobs;
import dev.pgworker.schedule.Schedule;
import dev.pgworker.schema.SchemaMigrator;
import dev.pgworker.schema.WorkerSchema;
import dev.pgworker.task.JobControlException;
import dev.pgworker.testing.InterceptedDataSource;
import dev.pgworker.testing.LogCapture;
import dev.pgworker.testing.OwnDatabase;
import dev.pgworker.testing.RecordingListener;
import dev.pgworker.testing.TestSchema;

import static org.assertj.core.api.Assertions.assertThat;

/** Schedules of the database as running workers execute them. */
@Tag("any-postgres")
class SchedulesTest {

    private static final Task<Map<String, Object>> TICK = Task.of("tick", new ParameterizedTypeReference<>() {});
    private static final Recurrence EVERY_SECOND = Recurrence.cron("* * * * * *", ZoneId.of("UTC"));

    @RegisterExtension
    final TestSchema db = new TestSchema(20);

    private final RecordingListener events = new RecordingListener();

    private RecurringJobs schedules() {
        return WorkerClient.recurringJobs(db.dataSource(), db.schema(), db.codec());
    }

    private void start(int workers) {
        for (int i = 0; i < workers; i++) {
            db.start(db.worker().listener(events));
        }
        events.await(ListenerConnected.class, workers);
    }

    private static Schedule.Builder schedule(String name, Recurrence recurrence) {
        return Schedule.builder(name, recurrence, "tick", null).overlap(Overlap.ALLOW);
    }

    /** Nobody finds them by chance before five seconds are over, and after half of that in the median. */
    @Test
    @Tag("thorough")
    void editsTakeEffectAtOnce() {
        start(2);
        List<Duration> latencies = new ArrayList<>();
        for (int i = 0; i < 20; i++) {
            String name = "delay" + i;
            long begin = System.nanoTime();
            schedules()
                    .create(schedule(name, Recurrence.fixedDelay(Duration.ofHours(1)))
                            .build());
            events.await(ScheduleExecuted.class, executed -> executed.schedule().equals(name));
            latencies.add(Duration.ofNanos(System.nanoTime() - begin));
        }
        latencies.sort(null);
        System.out.println("A schedule was executed " + latencies.get(10).toMillis()
                + " ms after it was created (median), " + latencies.get(19).toMillis() + " ms at most");
        assertThat(latencies.get(10)).isLessThan(Duration.ofSeconds(2));
    }

    @Test
    @Tag("thorough")
    void editsTakeEffectOnAllWorkers() {
        start(2);
        schedules().create(schedule("a", EVERY_SECOND).build());
        events.await(ScheduleExecuted.class, 3, executed -> executed.schedule().equals("a"));
        assertThat(schedules().pause("a")).isTrue();
        Instant pausedAt = now();
        schedules().create(schedule("b", EVERY_SECOND).build());
        events.await(ScheduleExecuted.class, 3, executed -> executed.schedule().equals("b"));
        assertThat(events.all(ScheduleExecuted.class))
                .filteredOn(executed -> executed.schedule().equals("a"))
                .allMatch(executed -> executed.dueAt().isBefore(pausedAt));
        assertThat(schedules().resume("a")).isTrue();
        Instant resumedAt = now();
        events.await(
                ScheduleExecuted.class,
                executed -> executed.schedule().equals("a") && executed.dueAt().isAfter(resumedAt));
        assertThat(schedules().delete("a")).isTrue();
    }

    private Instant now() {
        return db.sql("select clock_timestamp()")
                .query((row, i) -> row.getTimestamp(1).toInstant())
                .single();
    }

    @Test
    void aStopInTheMiddleOfAnInterceptorLosesNoExecution() throws Exception {
        CountDownLatch asked = new CountDownLatch(1);
        Worker stopped = db.start(db.worker().listener(events).scheduleInterceptor(job -> {
            asked.countDown();
            try {
                Thread.sleep(Duration.ofMinutes(1).toMillis());
            } catch (InterruptedException e) {
                throw new IllegalStateException(e);
            }
            return job;
        }));
        schedules()
                .create(schedule("delay", Recurrence.fixedDelay(Duration.ofHours(1)))
                        .build());
        assertThat(asked.await(120, TimeUnit.SECONDS)).isTrue();
        stopped.stop();
        assertThat(events.all(ScheduleFailed.class)).isEmpty();

        start(1);
        events.await(ScheduleExecuted.class, executed -> executed.schedule().equals("delay"));
    }

    @Test
    @Tag("thorough")
    void manyWorkersAddOneJobForEachScheduleAndTime() {
        start(4);
        for (int i = 0; i < 20; i++) {
            schedules()
                    .create(schedule("s" + i, EVERY_SECOND)
                            .misfire(Misfire.RUN_ALL)
                            .build());
        }
        for (int i = 0; i < 20; i++) {
            String name = "s" + i;
            events.await(
                    ScheduleExecuted.class, 5, executed -> executed.schedule().equals(name));
        }

        assertOneJobForEachTime(db);
        Awaitility.await()
                .alias("another worker that takes part")
                .until(() -> events.all(ScheduleExecuted.class).stream()
                                .map(ScheduleExecuted::workerId)
                                .distinct()
                                .count()
                        > 1);
    }

    /** Asserts that from its first job on, each schedule has one for each second up to its last run. */
    static void assertOneJobForEachTime(TestSchema db) {
        assertThat(db.sql("""
                        select j.name from (
                          select payload->'_cron'->>'schedule' as name, count(*) as jobs, count(distinct payload->'_cron'->>'ts') as times,
                            extract(epoch from max((payload->'_cron'->>'ts')::timestamptz) - min((payload->'_cron'->>'ts')::timestamptz)) + 1
                              as seconds
                          from {schema}._private_jobs group by 1) j
                        where j.jobs <> j.times or j.jobs <> j.seconds""").query(String.class).list())
                .as("schedules with too many or too few jobs")
                .isEmpty();
    }

    @Test
    @Tag("thorough")
    void aFixedDelayBeginsAsSoonAsThisWorkerHasEndedTheJob() {
        List<Long> starts = new ArrayList<>();
        db.start(db.worker().listener(events).task(TICK, (payload, context) -> {
            synchronized (starts) {
                starts.add(System.nanoTime());
                if (starts.size() == 2) {
                    throw JobControlException.failPermanently("on purpose");
                }
            }
        }));
        events.await(ListenerConnected.class);
        schedules()
                .create(schedule("a", Recurrence.fixedDelay(Duration.ofSeconds(1)))
                        .build());

        events.await(JobCompleted.class, 3);
        events.await(JobFailed.class);

        Awaitility.await()
                .alias("one that begins as soon as it may, which a busy machine delays for most")
                .until(() -> gaps(starts).anyMatch(gap -> gap.compareTo(Duration.ofMillis(1_800)) < 0));
        assertThat(gaps(starts))
                .as("between the starts of two jobs")
                .allMatch(gap -> gap.compareTo(Duration.ofMillis(990)) >= 0);
    }

    private static Stream<Duration> gaps(List<Long> nanos) {
        List<Long> copy;
        synchronized (nanos) {
            copy = List.copyOf(nanos);
        }
        return IntStream.range(1, copy.size()).mapToObj(i -> Duration.ofNanos(copy.get(i) - copy.get(i - 1)));
    }

    @Test
    void anybodysNotificationsMakeNoStorm() {
        AtomicInteger statements = new AtomicInteger();
        Worker worker = db.start(
                Worker.builder(counting(statements)).schema(db.schema()).listener(events));
        events.await(ListenerConnected.class);
        Awaitility.await().until(() -> statements.get() > 0);
        int before = statements.get();
        long begin = System.nanoTime();
        for (int told = 0; told < 1_000; told++) {
            db.sql("select pg_notify('pgworker:schedules', repeat('x', 7000))")
                    .query((row, i) -> 1)
                    .list();
        }
        Awaitility.await().until(() -> statements.get() > before);
        double seconds = (System.nanoTime() - begin) / 1e9;
        assertThat(statements.get() - before).as("looks in %s seconds", seconds).isLessThanOrEqualTo((int)
                (13 * (seconds + 1)));
        assertThat(worker.status().deadThreads()).isEmpty();
    }

    private InterceptedDataSource counting(AtomicInteger statements) {
        return new InterceptedDataSource(db.dataSource(), (call, proceed) -> {
            if (call.method().getName().startsWith("execute") && call.sql().contains("pgworker_schedules")) {
                statements.incrementAndGet();
            }
            return proceed.proceed();
        });
    }

    @Test
    void whereTheTableIsMissingJobsRunAllTheSame() {
        db.sql("drop table {schema}.pgworker_schedules cascade").update();
        try (LogCapture log = new LogCapture(ScheduleService.class)) {
            start(1);
            Awaitility.await().until(() -> !log.messages().isEmpty());
            db.sql("notify \"pgworker:schedules\"").update();
            db.start(db.worker().listener(events).task(TICK, (payload, context) -> {}));
            db.scheduler().addJob(TICK, Map.of());
            events.await(JobCompleted.class);
            assertThat(log.messages())
                    .allMatch(line -> line.contains("docs/schema.md"))
                    .hasSizeLessThanOrEqualTo(2);
        }
    }

    @Test
    void declaredSchedulesArePutAtEachStartAndExecutedByThoseWhoDeclareThem() {
        Schedule mine = schedule("mine", EVERY_SECOND).build();
        start(1);
        Worker declaring = db.start(db.worker().listener(events).schedules(List.of(mine)));
        ScheduleExecuted executed = events.await(ScheduleExecuted.class);
        assertThat(executed.workerId()).isEqualTo(declaring.id());
        assertThat(schedules().find("mine").orElseThrow().origin()).isEqualTo(RecurringJob.Origin.DECLARED);
        declaring.stop();

        schedules().create(schedule("other", EVERY_SECOND).build());
        events.await(ScheduleExecuted.class, 3, one -> one.schedule().equals("other"));
        Instant last = schedules().find("mine").orElseThrow().lastRun();
        assertThat(last).as("nobody executes it").isBefore(now().minusSeconds(1));

        schedules().pause("mine");
        Schedule changed =
                schedule("mine", EVERY_SECOND).payload(Map.of("v", 2)).build();
        db.start(db.worker()
                .listener(events)
                .schedules(List.of(changed, schedule("next", EVERY_SECOND).build())));
        events.await(ScheduleExecuted.class, one -> one.schedule().equals("next"));
        assertThat(schedules().find("mine").orElseThrow().isPaused()).isTrue();
        schedules().resume("mine");
        events.await(
                ScheduleExecuted.class,
                one -> one.schedule().equals("mine") && one.dueAt().isAfter(last));
        assertThat(db.sql(
                                "select payload->>'v' from {schema}._private_jobs where payload->'_cron'->>'schedule' = 'mine'"
                                        + " order by id desc limit 1")
                        .query(String.class)
                        .single())
                .isEqualTo("2");
    }

    @Test
    void aDeclaredScheduleThatTheDatabaseRefusesHurtsNoOther() {
        db.sql("alter table {schema}.pgworker_schedules add constraint no_bad check (name <> 'bad')")
                .update();
        try (LogCapture log = new LogCapture(DeclaredSchedules.class)) {
            db.start(db.worker()
                    .listener(events)
                    .schedules(List.of(
                            schedule("bad", EVERY_SECOND).build(),
                            schedule("a", EVERY_SECOND).build())));
            events.await(ScheduleExecuted.class, one -> one.schedule().equals("a"));
            assertThat(log.messages()).singleElement().asString().contains("bad", "could not be put");
        }
    }

    @Test
    @Tag("thorough")
    void withoutListeningEditsTakeEffectAllTheSame() {
        db.start(db.worker()
                .listener(events)
                .settings(WorkerSettings.builder().listen(false).build()));
        schedules().create(schedule("a", EVERY_SECOND).build());

        events.await(ScheduleExecuted.class, 2);
    }

    @Test
    @Tag("thorough")
    void afterAnOutageSchedulesGoOnAndNothingIsAddedTwice() {
        OwnDatabase database = new OwnDatabase();
        database.create();
        try (HikariDataSource pool = new HikariDataSource(TestSchema.poolConfig(database.url(), 8))) {
            new SchemaMigrator(pool, WorkerSchema.DEFAULT).migrate();
            RecurringJobs schedules = WorkerClient.recurringJobs(pool, WorkerSchema.DEFAULT, db.codec());
            Worker worker = Worker.builder(pool).listener(events).build();
            worker.start();
            try {
                schedules.create(
                        schedule("a", EVERY_SECOND).misfire(Misfire.RUN_ALL).build());
                events.await(ScheduleExecuted.class, 2);
                database.forbidConnections();
                database.cut();
                Awaitility.await().until(() -> worker.status().outage());
                database.allowConnections();
                int before = events.all(ScheduleExecuted.class).size();
                events.await(ScheduleExecuted.class, before + 4);
            } finally {
                worker.stop();
            }
            Set<Instant> times = ConcurrentHashMap.newKeySet();
            List<ScheduleExecuted> executed = events.all(ScheduleExecuted.class);
            executed.forEach(one -> times.add(one.dueAt()));
            assertThat(times).hasSameSizeAs(executed);
            for (int i = 1; i < executed.size(); i++) {
                assertThat(Duration.between(
                                executed.get(i - 1).dueAt(), executed.get(i).dueAt()))
                        .isEqualTo(Duration.ofSeconds(1));
            }
        } finally {
            database.drop();
        }
    }

    @Test
    void jobsWithAKeyRun() {
        db.start(db.worker().listener(events).task(TICK, (payload, context) -> {}));
        events.await(ListenerConnected.class);
        schedules()
                .create(schedule("keyed", EVERY_SECOND)
                        .spec(JobSpec.builder().jobKey("k").build())
                        .build());
        events.await(JobCompleted.class, 2);
    }
}
