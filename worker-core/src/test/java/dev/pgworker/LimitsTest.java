package dev.pgworker;

import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Function;
import java.util.stream.IntStream;

import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.Logger;
import ch.qos.logback.classic.spi.ILoggingEvent;
import ch.qos.logback.core.read.ListAppender;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.slf4j.LoggerFactory;

import dev.pgworker.event.WorkerEvent.JobCompleted;
import dev.pgworker.event.WorkerEvent.JobFailed;
import dev.pgworker.event.WorkerEvent.LimitApplied;
import dev.pgworker.event.WorkerEvent.LimitChanged;
import dev.pgworker.event.WorkerEvent.ListenerConnected;
import dev.pgworker.job.Job;
import dev.pgworker.job.JobCounts;
import dev.pgworker.job.JobQuery;
import dev.pgworker.job.JobRequest;
import dev.pgworker.job.JobSpec;
import dev.pgworker.job.JobState;
import dev.pgworker.job.JobWait;
import dev.pgworker.job.NamedQueue;
import dev.pgworker.job.Rescheduling;
import dev.pgworker.job.Task;
import dev.pgworker.limit.JobLimits;
import dev.pgworker.limit.Limit;
import dev.pgworker.limit.LimitStatus;
import dev.pgworker.limit.LimitStatus.Phase;
import dev.pgworker.task.TaskOptions;
import dev.pgworker.task.TaskRegistration;
import dev.pgworker.testing.InterceptedDataSource;
import dev.pgworker.testing.RecordingListener;
import dev.pgworker.testing.TestSchema;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.tuple;

/** Limits as running workers keep to them. */
@Tag("any-postgres")
class LimitsTest {

    private static final Task<Mail> MAIL = Task.of("mail", Mail.class);
    private static final Task<Mail> FAX = Task.of("fax", Mail.class);

    /** How long a job takes that ends with the test at the latest. */
    private static final int UNTIL_RELEASED = -1;

    @RegisterExtension
    final TestSchema db = new TestSchema(60);

    private final RecordingListener events = new RecordingListener();

    /** What runs at the moment and how many have at most, by tenant. */
    private final Map<String, AtomicInteger> running = new ConcurrentHashMap<>();

    private final Map<String, AtomicInteger> most = new ConcurrentHashMap<>();

    private final CountDownLatch release = new CountDownLatch(1);

    record Mail(String tenant, int millis) {}

    @AfterEach
    void release() {
        release.countDown();
    }

    private JobLimits limits() {
        return WorkerClient.jobLimits(db.dataSource(), db.schema());
    }

    private void handle(Mail mail) throws InterruptedException {
        int now = running.computeIfAbsent(mail.tenant, tenant -> new AtomicInteger())
                .incrementAndGet();
        most.computeIfAbsent(mail.tenant, tenant -> new AtomicInteger()).accumulateAndGet(now, Math::max);
        try {
            if (mail.millis == UNTIL_RELEASED) {
                release.await();
            } else {
                TimeUnit.MILLISECONDS.sleep(mail.millis);
            }
        } finally {
            running.get(mail.tenant).decrementAndGet();
        }
    }

    private Worker.Builder worker() {
        return db.worker()
                .settings(WorkerSettings.builder().concurrency(8).build())
                .listener(events)
                .task(MAIL, (mail, context) -> handle(mail))
                .task(FAX, (mail, context) -> handle(mail));
    }

    private void start(int workers, Function<Worker.Builder, Worker.Builder> with) {
        for (int i = 0; i < workers; i++) {
            db.start(with.apply(worker()));
        }
        events.await(ListenerConnected.class, workers);
    }

    private void putInEffect(Limit limit) {
        limits().put(limit);
        awaitInEffect(limit);
    }

    private void awaitInEffect(Limit limit) {
        Awaitility.await()
                .until(() -> limits().find(limit.name())
                        .filter(status -> status.phase() == Phase.ACTIVE && limit.equals(status.limit()))
                        .isPresent());
    }

    private List<Job> add(Task<Mail> task, int count, Mail mail) {
        return db.scheduler()
                .addJobs(IntStream.range(0, count)
                        .mapToObj(i -> JobRequest.of(task, mail))
                        .toList());
    }

    private void awaitAllDone() {
        Awaitility.await().until(() -> db.jobs() == 0);
    }

    @Test
    void noMoreThanAllowedRunAtOnceForEachTenant() {
        Limit limit = Limit.concurrency("per tenant", 3, "mail").per("tenant");
        start(3, worker -> worker.limits(List.of(limit)));
        awaitInEffect(limit);
        for (int i = 0; i < 40; i++) {
            add(MAIL, 3, new Mail("a", 5));
            add(MAIL, 2, new Mail("b", 3));
            add(MAIL, 1, new Mail("c", 1));
        }
        awaitAllDone();
        assertThat(events.await(JobCompleted.class, 240)).hasSize(240);
        assertThat(most.get("a")).hasValue(3);
        assertThat(most.get("b")).hasValueLessThanOrEqualTo(3);
        assertThat(limits().list()).singleElement().matches(totals -> totals.used() == 0 && totals.waiting() == 0);
    }

    @Test
    void aGroupOfTasksSharesOneLimit() {
        Limit limit = Limit.concurrency("partner", 2, "mail", "fax");
        start(2, worker -> worker.limits(List.of(limit)));
        awaitInEffect(limit);
        add(MAIL, 30, new Mail("x", 5));
        add(FAX, 30, new Mail("x", 5));
        awaitAllDone();
        assertThat(most.get("x")).hasValue(2);
    }

    @Test
    void severalLimitsHoldTogether() {
        Limit each = Limit.concurrency("each", 2, "mail").per("tenant");
        Limit all = Limit.concurrency("all", 3, "mail");
        AtomicInteger together = new AtomicInteger();
        AtomicInteger mostTogether = new AtomicInteger();
        db.start(db.worker()
                .settings(WorkerSettings.builder().concurrency(8).build())
                .listener(events)
                .limits(List.of(each, all))
                .task(MAIL, (mail, context) -> {
                    mostTogether.accumulateAndGet(together.incrementAndGet(), Math::max);
                    try {
                        handle(mail);
                    } finally {
                        together.decrementAndGet();
                    }
                }));
        awaitInEffect(each);
        awaitInEffect(all);
        add(MAIL, 20, new Mail("a", 10));
        add(MAIL, 20, new Mail("b", 10));
        awaitAllDone();
        assertThat(most.get("a")).hasValueLessThanOrEqualTo(2);
        assertThat(most.get("b")).hasValueLessThanOrEqualTo(2);
        assertThat(mostTogether).hasValue(3);
    }

    @Test
    @Tag("thorough")
    void aRateHoldsWithTenWorkers() {
        Limit limit = Limit.rate("rate", 100, Duration.ofSeconds(1), "mail").withBurst(10);
        Queue<Long> starts = new ConcurrentLinkedQueue<>();
        for (int i = 0; i < 10; i++) {
            db.start(db.worker()
                    .settings(WorkerSettings.builder().concurrency(8).build())
                    .limits(List.of(limit))
                    .task(MAIL, (mail, context) -> starts.add(System.nanoTime())));
        }
        awaitInEffect(limit);
        long begin = System.nanoTime();
        add(MAIL, 500, new Mail("a", 0));
        awaitAllDone();

        List<Long> times = starts.stream().sorted().toList();
        assertThat(times).hasSize(500);
        // What each may have been late by makes it later, so that no machine is too slow for this.
        for (int n = 0; n < 500; n++) {
            double seconds = (times.get(n) - begin) / 1e9;
            assertThat(n + 1.0).as("starts in %s s", seconds).isLessThanOrEqualTo(limit.burst() + 100 * seconds + 1);
        }
        System.out.printf(
                "500 starts at 100 a second, burst %d, took %.2f s%n",
                limit.burst(), (times.get(499) - times.get(0)) / 1e9);
    }

    /** Handlers that take long from time to time must not have jobs pile up in the worker that start together then. */
    @Test
    @Tag("thorough")
    void noMoreJobsStartInAnyTimeThanTheBurstAndTheRateAllow() {
        Limit limit = Limit.rate("rate", 50, Duration.ofSeconds(1), "mail").withBurst(5);
        Queue<Long> starts = new ConcurrentLinkedQueue<>();
        db.start(db.worker()
                .settings(WorkerSettings.builder().concurrency(1).build())
                .listener(events)
                .limits(List.of(limit))
                .task(MAIL, (mail, context) -> {
                    starts.add(System.nanoTime());
                    TimeUnit.MILLISECONDS.sleep(context.job().id() % 60 == 0 ? 600 : 0);
                }));
        awaitInEffect(limit);
        add(MAIL, 250, new Mail("a", 0));
        awaitAllDone();

        List<Long> times = List.copyOf(starts);
        double most = 0;
        for (int first = 0; first < times.size(); first++) {
            for (int last = first; last < times.size(); last++) {
                double allowed = 5 + 50 * (times.get(last) - times.get(first)) / 1e9;
                most = Math.max(most, last - first + 1 - allowed);
            }
        }
        // What the last moments before a start take may differ, by a third of a second on a busy machine; 30 would pile
        // up.
        assertThat(most).isLessThan(15);
    }

    @Test
    @Tag("thorough")
    void aStrangerWhoHoldsTheLockOfLimitsIsToldOfOnce() throws SQLException {
        Limit limit = Limit.concurrency("held", 1, "mail");
        Worker worker = db.start(worker().limits(List.of(limit)));
        awaitInEffect(limit);
        Logger logger = (Logger) LoggerFactory.getLogger("dev.pgworker.internal");
        ListAppender<ILoggingEvent> log = new ListAppender<>();
        log.start();
        logger.addAppender(log);
        try (Connection stranger = db.dataSource().getConnection();
                Statement lock = stranger.createStatement()) {
            stranger.setAutoCommit(false);
            lock.execute(db.schema().in("lock table {schema}.pgworker_limit_turn in exclusive mode"));
            add(MAIL, 1, new Mail("a", 0));

            Awaitility.await()
                    .until(() -> log.list.stream()
                            .anyMatch(line -> line.getFormattedMessage().contains("pg_blocking_pids")));
            assertThat(log.list)
                    .filteredOn(line -> line.getLevel().isGreaterOrEqual(Level.WARN))
                    .singleElement()
                    .asString()
                    .contains("pg_blocking_pids");
            WorkerStatus status = Objects.requireNonNull(worker.status());
            assertThat(status.heldUp()).singleElement().asString().contains("tables or rows of limits");
            assertThat(status.stall()).isNull();

            stranger.rollback();
            awaitAllDone();
            assertThat(Objects.requireNonNull(worker.status()).heldUp()).isEmpty();
        } finally {
            logger.detachAppender(log);
        }
    }

    @Test
    void jobsOfAQueueThatWaitForALimitAreCounted() {
        Limit limit = Limit.concurrency("queued", 1, "mail");
        start(1, worker -> worker.limits(List.of(limit)));
        awaitInEffect(limit);
        add(MAIL, 1, new Mail("holds", UNTIL_RELEASED));
        Awaitility.await().until(() -> running.containsKey("holds"));
        JobSpec queued = JobSpec.builder().queueName("q").build();
        for (int i = 0; i < 2; i++) {
            Job unused = db.scheduler().addJob(MAIL, new Mail("waits", 0), queued);
        }

        assertThat(db.queries().queues(null, 10))
                .extracting(NamedQueue::name, NamedQueue::waiting)
                .containsExactly(tuple("q", 2L));
        release.countDown();
        awaitAllDone();
    }

    @Test
    void whoChangesALimitIsTold() {
        JobLimits limits = WorkerClient.jobLimits(db.dataSource(), db.schema(), () -> List.of(events))
                .actingAs("ada");

        limits.put(Limit.concurrency("told", 3, "mail").per("tenant"));
        limits.delete("told");
        limits.delete("told before");

        assertThat(events.all(LimitChanged.class))
                .extracting(LimitChanged::limit, LimitChanged::allows, LimitChanged::user)
                .containsExactly(tuple("told", "3 running per tenant", "ada"), tuple("told", null, "ada"));
    }

    @Test
    void aRowThatNobodyUnderstandsHidesNoOtherLimit() {
        limits().put(Limit.concurrency("a", 1, "mail"));
        db.sql("""
                insert into {schema}.pgworker_limits (name, task_identifiers, field, max_running)
                values ('b', '{{mail},{fax}}', '{{x},{y}}', 1)""").update();
        limits().put(Limit.concurrency("c", 1, "mail"));

        assertThat(limits().list())
                .extracting(LimitStatus::name, status -> status.limit() == null)
                .containsExactly(tuple("a", false), tuple("b", true), tuple("c", false));
    }

    @Test
    void nullTasksAndFieldsAreRefusedByName() {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> Limit.concurrency("l", 1, (String[]) null))
                .withMessage("tasks must not be null");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> Limit.rate("l", 1, Duration.ofSeconds(1), (String) null))
                .withMessage("tasks[0] must not be null");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> Limit.concurrency("l", 1, "t").per((List<String>) null))
                .withMessage("per must not be null");
    }

    @Test
    @Tag("thorough")
    void aMissingRightIsToldWithTheRemedy() {
        Limit limit = Limit.concurrency("refused", 1, "mail");
        Worker worker = db.start(worker().limits(List.of(limit)));
        awaitInEffect(limit);
        db.sql("alter function {schema}.pgworker_claim_limited rename to pgworker_claim_limited_away")
                .update();

        Awaitility.await()
                .untilAsserted(
                        () -> assertThat(Objects.requireNonNull(worker.status()).heldUp())
                                .singleElement()
                                .asString()
                                .contains("pgworker_claim_limited", "docs/schema.md"));

        db.sql("alter function {schema}.pgworker_claim_limited_away rename to pgworker_claim_limited")
                .update();
        add(MAIL, 1, new Mail("a", 0));
        awaitAllDone();
        assertThat(Objects.requireNonNull(worker.status()).heldUp()).isEmpty();
    }

    @Test
    void jobsThatWaitForLimitsThatCannotBeReadAreToldOf() {
        Worker worker = db.start(worker());
        putInEffect(Limit.concurrency("unread", 1, "mail"));
        db.sql("alter table {schema}.pgworker_limits rename to pgworker_limits_away")
                .update();
        tellOfLimits();
        add(MAIL, 1, new Mail("a", 0));

        Awaitility.await().untilAsserted(() -> {
            tellOfLimits();
            assertThat(Objects.requireNonNull(worker.status()).heldUp())
                    .singleElement()
                    .asString()
                    .contains("limits cannot be used", "docs/schema.md");
        });

        db.sql("alter table {schema}.pgworker_limits_away rename to pgworker_limits")
                .update();
        tellOfLimits();
        awaitAllDone();
        assertThat(Objects.requireNonNull(worker.status()).heldUp()).isEmpty();
    }

    private void tellOfLimits() {
        db.sql("select 1 from (select pg_notify('pgworker:limits', 's')) told")
                .query()
                .listOfRows();
    }

    @Test
    @Tag("thorough")
    void aLockedTableOfLimitsIsToldOf() throws SQLException {
        Limit limit = Limit.concurrency("locked", 1, "mail");
        try (Connection stranger = db.dataSource().getConnection();
                Statement lock = stranger.createStatement()) {
            stranger.setAutoCommit(false);
            lock.execute(db.schema().in("lock table {schema}.pgworker_limits in access exclusive mode"));
            Worker worker = db.start(worker().limits(List.of(limit)));

            Awaitility.await()
                    .untilAsserted(() -> assertThat(
                                    Objects.requireNonNull(worker.status()).heldUp())
                            .singleElement()
                            .asString()
                            .contains("tables of limits cannot be read or written"));
            stranger.commit();
            awaitInEffect(limit);
            assertThat(Objects.requireNonNull(worker.status()).heldUp()).isEmpty();
        }
    }

    @Test
    @Tag("thorough")
    void jobsOfOtherTenantsAndTasksDoNotWaitBehindManyThrottledOnes() {
        Limit limit = Limit.concurrency("per tenant", 1, "mail").per("tenant");
        start(1, worker -> worker.limits(List.of(limit)));
        awaitInEffect(limit);
        add(MAIL, 1, new Mail("slow", UNTIL_RELEASED));
        db.sql("""
                select count({schema}.add_job('mail', '{"tenant": "slow", "millis": 0}')) from generate_series(1, 100000)
                """).query(Long.class).single();
        runTwenty(MAIL, "other");
        runTwenty(FAX, "other");
        assertThat(most.get("slow")).hasValue(1);
        db.sql("delete from {schema}._private_jobs where locked_at >= '9999-01-01'")
                .update();
    }

    private void runTwenty(Task<Mail> task, String tenant) {
        for (int i = 0; i < 20; i++) {
            long id = add(task, 1, new Mail(tenant, 0)).get(0).id();
            events.await(JobCompleted.class, completed -> completed.job().id() == id);
        }
    }

    @Test
    void aJobThatFailsGivesItsPermitBackAndWaitsForItsRetry() {
        Limit limit = Limit.concurrency("one", 1, "mail");
        AtomicInteger attempts = new AtomicInteger();
        db.start(db.worker()
                .settings(WorkerSettings.builder().concurrency(4).build())
                .listener(events)
                .limits(List.of(limit))
                .tasks(List.of(TaskRegistration.of(MAIL, (mail, context) -> {
                            if (mail.tenant.equals("bad") && attempts.incrementAndGet() < 3) {
                                throw new IllegalStateException("once more");
                            }
                        })
                        .with(TaskOptions.DEFAULT.withRetryDelay((job, failure) -> Duration.ofMillis(100))))));
        awaitInEffect(limit);
        long bad = add(MAIL, 1, new Mail("bad", 0)).get(0).id();
        add(MAIL, 10, new Mail("good", 0));
        awaitAllDone();
        assertThat(attempts).hasValue(3);
        assertThat(events.await(JobFailed.class, 2))
                .allMatch(failed -> failed.job().id() == bad);
    }

    @Test
    void directTasksAndQueuesKeepToLimits() {
        Limit limit = Limit.concurrency("two", 2, "mail");
        db.start(db.worker()
                .settings(WorkerSettings.builder().concurrency(8).build())
                .listener(events)
                .limits(List.of(limit))
                .tasks(List.of(TaskRegistration.of(MAIL, (mail, context) -> handle(mail))
                        .with(TaskOptions.DEFAULT.withDirect(true)))));
        awaitInEffect(limit);
        add(MAIL, 40, new Mail("direct", 2));
        for (int i = 0; i < 20; i++) {
            JobSpec spec = JobSpec.builder().queueName("q" + i % 2).build();
            db.scheduler().addJob(MAIL, new Mail("direct", 2), spec);
        }
        awaitAllDone();
        assertThat(most.get("direct")).hasValueLessThanOrEqualTo(2);
        assertThat(events.await(JobCompleted.class, 60)).hasSize(60);
    }

    @Test
    @Tag("thorough")
    void aLimitIsMadeChangedAndDeletedWhileJobsWait() {
        start(2, worker -> worker);
        add(MAIL, 600, new Mail("a", 20));
        Awaitility.await().until(() -> most.containsKey("a"));
        putInEffect(Limit.concurrency("changing", 1, "mail"));
        // What had been claimed before it took effect has run.
        Awaitility.await()
                .until(() -> db.sql("select count(*) from {schema}._private_jobs where locked_by like 'pgworker-%'")
                                .query(Integer.class)
                                .single()
                        <= 1);
        most.get("a").set(0);
        add(MAIL, 20, new Mail("a", 20));
        Awaitility.await().until(() -> most.get("a").get() == 1);
        putInEffect(Limit.concurrency("changing", 4, "mail"));
        add(MAIL, 40, new Mail("a", 20));
        Awaitility.await().until(() -> most.get("a").get() > 1);
        assertThat(most.get("a")).hasValueLessThanOrEqualTo(4);
        assertThat(limits().delete("changing")).isTrue();
        assertThat(limits().delete("unknown")).isFalse();
        events.await(
                LimitApplied.class,
                applied -> applied.removed() && applied.limit().equals("changing"));
        assertThat(limits().list()).isEmpty();
        awaitAllDone();
    }

    @Test
    void theStateTheReasonAndTheUsageOfAJobThatWaits() {
        Limit limit = Limit.concurrency("per tenant", 1, "mail").per("tenant");
        start(1, worker -> worker.limits(List.of(limit)));
        awaitInEffect(limit);
        long first = add(MAIL, 1, new Mail("a", UNTIL_RELEASED)).get(0).id();
        Awaitility.await().until(() -> running.containsKey("a"));
        long second = add(MAIL, 1, new Mail("a", 0)).get(0).id();
        long third = add(MAIL, 1, new Mail("a", 0)).get(0).id();
        long later = db.scheduler()
                .addJob(
                        MAIL,
                        new Mail("a", 0),
                        JobSpec.builder().runIn(Duration.ofHours(1)).build())
                .id();

        Job waiting = db.queries().find(second).orElseThrow();
        assertThat(waiting.limited()).isTrue();
        assertThat(waiting.lockedAt()).isNull();
        assertThat(waiting.lockedBy()).isNull();
        assertThat(JobState.of(waiting, db.queries().now())).isEqualTo(JobState.LIMITED);
        assertThat(JobState.of(
                        db.queries().find(later).orElseThrow(), db.queries().now()))
                .isEqualTo(JobState.SCHEDULED);
        assertThat(ids(JobState.LIMITED)).containsExactlyInAnyOrder(second, third);
        assertThat(ids(JobState.SCHEDULED)).containsExactly(later);
        assertThat(ids(JobState.RUNNING)).containsExactly(first);
        assertThat(ids(JobState.READY)).isEmpty();
        for (Integer scanLimit : new Integer[] {null, 10}) {
            JobQuery all = JobQuery.builder().scanLimit(scanLimit).build();
            assertThat(db.queries().count(all)).isEqualTo(new JobCounts(0, 1, 0, 2, 1, 0));
        }
        assertThat(db.queries().backlog().limited()).isEqualTo(2);
        assertThat(db.queries().waitOf(second).orElseThrow())
                .isEqualTo(new JobWait(
                        JobWait.Reason.LIMIT,
                        null,
                        0,
                        "Waits for limit \"per tenant\", which allows 1 running per tenant, and 1 are."));
        assertThat(db.queries().waitOf(third).orElseThrow().text()).endsWith(" 1 job of its kind starts before it.");
        assertThat(db.queries().waitOf(later).orElseThrow().reason()).isEqualTo(JobWait.Reason.TIME);
        assertThat(limits().usage("per tenant", null, 10)).singleElement().satisfies(usage -> {
            assertThat(usage.value()).isEqualTo("a");
            assertThat(usage.used()).isEqualTo(1);
            assertThat(usage.waiting()).isGreaterThanOrEqualTo(2);
        });

        assertThat(db.changes().remove(List.of(second))).hasSize(1);
        assertThat(db.changes()
                        .reschedule(
                                List.of(third),
                                Rescheduling.builder()
                                        .runIn(Duration.ofHours(1))
                                        .build()))
                .singleElement()
                .matches(job -> job.limited());
        assertThat(ids(JobState.LIMITED)).isEmpty();
        assertThat(db.changes().runNow(List.of(third, later))).hasSize(2);
        assertThat(ids(JobState.LIMITED)).containsExactlyInAnyOrder(third, later);
    }

    private List<Long> ids(JobState state) {
        return db.queries().list(JobQuery.builder().state(state).scanLimit(100).build()).jobs().stream()
                .map(Job::id)
                .toList();
    }

    @Test
    void fairSharesAreKeptInTheDatabaseAsTheyWerePut() {
        Limit share = Limit.fairShare("turns", "mail", "fax")
                .per(List.of("customer", "a.b"))
                .withWeights(Map.of("acme", 3.0, "x=y, \"z\"", 0.25, "", 2.0));
        assertThat(limits().put(share).limit()).isEqualTo(share);
        assertThat(limits().find("turns").orElseThrow().limit()).isEqualTo(share);
        Limit plain = Limit.fairShare("turns", "mail").per("tenant");
        assertThat(limits().put(plain).limit()).isEqualTo(plain);
        assertThat(limits().list())
                .singleElement()
                .satisfies(status -> assertThat(status.limit()).isEqualTo(plain));
        assertThatIllegalArgumentException()
                .isThrownBy(() -> limits().put(Limit.fairShare("x", "mail")))
                .withMessageStartingWith("per must be set");
        db.sql("update {schema}.pgworker_limits set weights = '[1]'").update();
        assertThat(limits().find("turns").orElseThrow().limit())
                .as("what is no object counts as no weights")
                .isEqualTo(plain);
    }

    /** One handler, so that the order of the starts is that of the claims. */
    @Test
    void valuesTakeTurnsByTheirWeight() throws InterruptedException {
        limits().put(Limit.fairShare("turns", "mail").per("tenant").withWeights(Map.of("big", 3.0)));
        Queue<String> started = new ConcurrentLinkedQueue<>();
        Worker worker = db.worker()
                .settings(WorkerSettings.builder().concurrency(1).build())
                .task(MAIL, (mail, context) -> started.add(mail.tenant))
                .build();
        add(MAIL, 60, new Mail("big", 0));
        add(MAIL, 20, new Mail("small", 0));

        assertThat(db.queries()
                        .waitOf(db.queries()
                                .list(JobQuery.builder().build())
                                .jobs()
                                .get(0)
                                .id())
                        .orElseThrow()
                        .text())
                .contains("limit \"turns\", which is being put into effect");
        assertThat(worker.runOnce()).isEqualTo(80);

        List<String> order = List.copyOf(started);
        assertThat(order.subList(0, 40)).filteredOn("small"::equals).hasSizeBetween(8, 12);
        add(MAIL, 1, new Mail("small", 0));
        assertThat(db.queries()
                        .waitOf(db.queries()
                                .list(JobQuery.builder().build())
                                .jobs()
                                .get(0)
                                .id())
                        .orElseThrow()
                        .text())
                .startsWith("Waits for its turn by limit \"turns\", which shares fairly per tenant.");
    }

    @Test
    void runOnceRunsAllThatLimitsAllow() throws InterruptedException {
        Limit limit = Limit.concurrency("two", 2, "mail");
        Worker worker = worker().limits(List.of(limit)).build();
        add(MAIL, 30, new Mail("a", 1));
        assertThat(worker.runOnce()).isEqualTo(30);
        assertThat(most.get("a")).hasValue(2);
        assertThat(worker.runOnce()).isZero();
        assertThat(Set.copyOf(worker.jobLimits().list()))
                .singleElement()
                .matches(status -> status.declared() && limit.equals(status.limit()));
    }

    /** Whoever has not been allowed to claim yet does not know what is left. */
    @Test
    void aPassDoesNotEndBeforeTheWorkerIsRegisteredAndHasLooked() throws Exception {
        add(FAX, 5, new Mail("a", 0));
        try (Connection holder = db.dataSource().getConnection()) {
            holder.setAutoCommit(false);
            holder.createStatement().execute(db.schema().in("lock table {schema}._private_workers in share mode"));
            // It is registered between its first look and its first claim.
            InterceptedDataSource intercepted = new InterceptedDataSource(db.dataSource(), (call, proceed) -> {
                Object answer = proceed.proceed();
                if (call.is("executeQuery", "pgworker_apply_limits")) {
                    holder.commit();
                    Awaitility.await()
                            .until(() -> db.sql("select count(*) from {schema}._private_workers")
                                            .query(Integer.class)
                                            .single()
                                    == 1);
                    TimeUnit.MILLISECONDS.sleep(50); // until the worker knows
                }
                return answer;
            });
            Worker worker = Worker.builder(intercepted)
                    .schema(db.schema())
                    .limits(List.of(Limit.concurrency("two", 2, "mail")))
                    .task(MAIL, (mail, context) -> {})
                    .task(FAX, (mail, context) -> {})
                    .build();

            assertThat(worker.runOnce()).isEqualTo(5);
        }
    }
}
