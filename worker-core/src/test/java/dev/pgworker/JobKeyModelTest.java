package dev.pgworker;

import java.time.Instant;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Random;
import java.util.TreeMap;
import java.util.stream.Stream;

import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import dev.pgworker.job.Job;
import dev.pgworker.job.JobKeyMode;
import dev.pgworker.job.JobRequest;
import dev.pgworker.job.JobSpec;
import dev.pgworker.testing.ClaimSql;
import dev.pgworker.testing.TestSchema;

import static org.assertj.core.api.Assertions.assertThat;

/** Random operations on few keys and queues, checked row by row against a model after each of them. */
@Tag("thorough")
@Tag("any-postgres")
class JobKeyModelTest {

    private static final int OPERATIONS = 500;
    private static final List<String> KEYS = List.of("a", "b", "c", "d");
    private static final List<String> QUEUES = List.of("p", "q");
    private static final List<String> TASKS = List.of("s", "t", "u");
    private static final List<String> WORKERS = List.of("v", "w");
    private static final Instant PAST = Instant.parse("2020-01-01T00:00:00Z");
    private static final Instant FUTURE = Instant.parse("2200-01-01T00:00:00Z");
    private static final String SUPERSEDED = "Superseded by a newer job with the same key while running";
    private static final String REMOVED = "Removed by its key while running";
    private static final String CANCELLED = "Cancelled while running";

    @RegisterExtension
    final TestSchema db = new TestSchema();

    private final Map<Long, Row> rows = new TreeMap<>();
    private final Map<String, String> queueLocks = new HashMap<>();

    /** What has become of jobs that were cancelled while they ran; "marked" while they do. */
    private final Map<Long, String> cancellations = new TreeMap<>();

    private final List<String> log = new ArrayList<>();
    private long lastId;
    private Random random = new Random(0);

    /** One row of the model. A null run_at stands for the time of the operation that wrote it. */
    private static final class Row {
        long id;
        String task = "";

        @Nullable String queue;

        Object payload = Map.of();
        int priority;

        @Nullable Instant runAt;

        int attempts;
        int maxAttempts = 25;

        @Nullable String error;

        @Nullable String key;

        @Nullable String lockedBy;

        /** What became of a running job whose key was taken. */
        @Nullable String retired;

        boolean oldLock;
        int revision;
        Instant updatedAt = Instant.EPOCH;
        boolean touched;

        /** What the worker knew of the job when it claimed it. */
        int claimedAttempts;

        @Nullable String claimedKey;

        boolean available() {
            return lockedBy == null && attempts < maxAttempts;
        }

        boolean protectedByLock() {
            return lockedBy != null && !oldLock;
        }

        boolean due() {
            return available() && !Objects.equals(runAt, FUTURE);
        }

        boolean cancelled() {
            return CANCELLED.equals(retired);
        }

        boolean retired() {
            return key == null && attempts >= maxAttempts && retired != null;
        }

        @Override
        public String toString() {
            return String.join(
                    " ",
                    Stream.<@Nullable Object>of(
                                    id,
                                    task,
                                    queue,
                                    payload,
                                    priority,
                                    runAt,
                                    attempts,
                                    maxAttempts,
                                    error,
                                    key,
                                    lockedBy,
                                    revision)
                            .map(String::valueOf)
                            .toList());
        }
    }

    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3, 4})
    void everyRowIsAsTheModelSays(long seed) {
        random = new Random(seed);
        db.sql("select count(*) from {schema}.pgworker_task_ids(?)")
                .param(TASKS.toArray(String[]::new))
                .query()
                .singleRow();
        // As often as they stand here.
        List<Runnable> operations = Stream.of(
                        Collections.<Runnable>nCopies(10, this::add),
                        Collections.<Runnable>nCopies(3, this::addBatch),
                        Collections.<Runnable>nCopies(2, this::remove),
                        Collections.<Runnable>nCopies(5, this::claim),
                        Collections.<Runnable>nCopies(4, this::complete),
                        Collections.<Runnable>nCopies(4, this::release),
                        Collections.<Runnable>nCopies(3, this::cancel),
                        List.<Runnable>of(
                                this::reschedule, this::permanentlyFail, this::completeByHand, this::age, this::tend))
                .flatMap(List::stream)
                .toList();
        for (int i = 0; i < OPERATIONS; i++) {
            rows.values().forEach(r -> r.touched = false);
            any(operations).run();
            compare(seed);
        }
    }

    // Operations

    private void add() {
        JobSpec spec = spec(pick(KEYS, 0.1), pick(List.of(JobKeyMode.values()), 0.2));
        String task = any(TASKS);
        Object payload = payload();
        log.add("add " + task + " " + payload + " " + spec);
        Job job = db.scheduler().addJob(task, payload, spec);
        put(task, payload, spec, job.id());
    }

    private void addBatch() {
        JobKeyMode mode = random.nextBoolean() ? JobKeyMode.REPLACE : JobKeyMode.PRESERVE_RUN_AT;
        List<String> keys = new ArrayList<>(KEYS);
        Collections.shuffle(keys, random);
        List<JobRequest> requests = new ArrayList<>();
        for (int i = 0; i <= random.nextInt(4); i++) {
            requests.add(JobRequest.of(any(TASKS), payload(), spec(random.nextInt(4) == 0 ? null : keys.get(i), mode)));
        }
        log.add("add " + requests);
        List<Job> jobs = db.scheduler().addJobs(requests);
        assertThat(jobs).hasSameSizeAs(requests);
        for (int i = 0; i < jobs.size(); i++) {
            JobRequest r = requests.get(i);
            put(
                    r.identifier(),
                    Objects.requireNonNull(r.payload()),
                    r.spec(),
                    jobs.get(i).id());
        }
    }

    /** The algorithm of the documentation. */
    private void put(String task, Object payload, JobSpec spec, long id) {
        Row existing = spec.jobKey() == null ? null : byKey(spec.jobKey());
        boolean preserve = spec.jobKeyMode() == JobKeyMode.PRESERVE_RUN_AT;
        if (existing != null && spec.jobKeyMode() == JobKeyMode.UNSAFE_DEDUPE) {
            assertThat(id).isEqualTo(existing.id);
            existing.revision++;
            existing.touched = true;
            return;
        }
        Row row;
        if (existing != null && existing.available()) {
            assertThat(id).isEqualTo(existing.id);
            row = existing;
            row.revision++;
            if (!preserve || row.attempts > 0) {
                row.runAt = spec.runAt();
            }
            row.payload = row.payload instanceof List<?> old && payload instanceof List<?> added
                    ? Stream.concat(old.stream(), added.stream()).toList()
                    : payload;
        } else {
            if (existing != null) {
                existing.key = null;
                existing.attempts = existing.maxAttempts;
                boolean cancels = spec.jobKeyMode() == JobKeyMode.REPLACE_AND_CANCEL;
                existing.retired = existing.lockedBy == null ? null : cancels ? CANCELLED : SUPERSEDED;
                noteCancelled(existing);
                existing.touched = true;
            }
            assertThat(id).isGreaterThan(lastId);
            lastId = id;
            row = new Row();
            row.id = id;
            row.runAt = spec.runAt();
            row.payload = payload;
            rows.put(id, row);
        }
        row.task = task;
        row.queue = spec.queueName();
        row.priority = spec.priority() == null ? 0 : spec.priority();
        row.attempts = 0;
        row.maxAttempts = spec.maxAttempts() == null ? 25 : spec.maxAttempts();
        row.error = null;
        row.key = spec.jobKey();
        row.touched = true;
    }

    private void remove() {
        String key = any(KEYS);
        log.add("remove " + key);
        Long id = db.sql("select coalesce((r).id, -1) from {schema}.remove_job(?) r")
                .param(key)
                .query(Long.class)
                .single();
        Row row = byKey(key);
        assertThat(id).isEqualTo(row == null ? -1 : row.id);
        if (row != null && row.protectedByLock()) {
            row.key = null;
            row.attempts = row.maxAttempts;
            row.retired = REMOVED;
            row.touched = true;
        } else if (row != null) {
            unlock(row);
            rows.remove(row.id);
        }
    }

    private void cancel() {
        Row row = anyOf(r -> true);
        if (row == null) {
            return;
        }
        log.add("cancel " + row.id);
        String answer = db.sql("select outcome from {schema}.pgworker_cancel_jobs(array[?::bigint])")
                .param(row.id)
                .query(String.class)
                .single();
        if (!row.protectedByLock()) {
            assertThat(answer).isEqualTo("removed");
            endCancelled(row, "cancelled");
            unlock(row);
            rows.remove(row.id);
            return;
        }
        assertThat(answer).isEqualTo("marked");
        row.touched |= row.key != null || row.attempts < row.maxAttempts;
        row.key = null;
        row.attempts = row.maxAttempts;
        row.retired = CANCELLED;
        noteCancelled(row);
    }

    private void noteCancelled(Row row) {
        if (row.cancelled()) {
            // A worker that is not PgWorker's may take an attempt off when it gives the job back.
            row.maxAttempts = Math.min(row.maxAttempts, 32_766);
            row.attempts = row.maxAttempts + 1;
            cancellations.put(row.id, "marked");
        }
    }

    private void endCancelled(Row row, String end) {
        cancellations.computeIfPresent(row.id, (id, state) -> state.equals("marked") ? end : state);
    }

    /** Deletes cancelled jobs that nobody holds any more. */
    private void tend() {
        log.add("tend");
        db.sql("select {schema}.pgworker_tend_cancellations()").query().singleRow();
        rows.values().removeIf(row -> row.lockedBy == null && row.cancelled() && !row.available());
    }

    private void claim() {
        String worker = any(WORKERS);
        int wanted = 1 + random.nextInt(3);
        log.add("claim " + worker + " " + wanted);
        List<Long> claimed = db.sql("select id from " + ClaimSql.claim("?", "?") + " c order by priority, run_at, id")
                .params(worker, wanted)
                .query(Long.class)
                .list();
        List<Row> candidates = new ArrayList<>(
                rows.values().stream().filter(r -> r.queue == null && r.due()).toList());
        for (String queue : QUEUES) {
            if (!queueLocks.containsKey(queue)) {
                first(queue, candidates);
            }
        }
        List<Row> expected = candidates.stream().sorted(order()).limit(wanted).toList();
        expected.forEach(r -> lock(r, worker));
        assertThat(claimed).isEqualTo(expected.stream().map(r -> r.id).toList());
    }

    private void complete() {
        Row row = anyOf(r -> r.lockedBy != null);
        if (row == null) {
            return;
        }
        String worker = random.nextInt(8) == 0 ? any(WORKERS) : Objects.requireNonNull(row.lockedBy);
        log.add("complete " + row.id + " by " + worker);
        List<String> answer =
                db.sql("""
                        select outcome || ' ' || id
                        from {schema}.pgworker_complete(?, array[?::bigint],
                          array(select coalesce(locked_at, now()) from {schema}._private_jobs where id = ?), array[1])""").params(worker, row.id, row.id).query(String.class).list();
        List<String> expected = new ArrayList<>();
        if (!worker.equals(row.lockedBy)) {
            expected.add("lost " + row.id);
        } else {
            rows.remove(row.id);
            endCancelled(row, "completed");
            unlock(row);
            freeQueues(worker, row);
        }
        assertThat(answer).isEqualTo(expected);
    }

    private void freeQueues(String worker, Row row) {
        db.sql(
                        "select {schema}.pgworker_free_queues(array(select id from {schema}._private_job_queues where queue_name = ?),"
                                + " array[?])")
                .params(row.queue, worker)
                .query()
                .listOfRows();
    }

    private void release() {
        Row row = anyOf(r -> r.lockedBy != null);
        if (row == null) {
            return;
        }
        String worker = Objects.requireNonNull(row.lockedBy);
        String action = any(List.of("retry", "retry", "back", "fail"));
        String error = action.equals("back") ? null : "error " + random.nextInt(1000);
        Instant at = random.nextInt(4) == 0 ? FUTURE : past();
        log.add("release " + row.id + " " + action + " at " + at);
        List<String> answer = db.sql("""
                        select outcome from {schema}.pgworker_release(?, array[row(?::bigint,
                          (select locked_at from {schema}._private_jobs where id = ?), ?, null, ?::timestamptz, ?::text, ?::text,
                          ?::int, null, null, null, null)::{schema}.pgworker_outcome])""")
                .params(worker, row.id, row.id, action, at.toString(), error, row.claimedKey, row.claimedAttempts)
                .query(String.class)
                .list();
        freeQueues(worker, row);
        boolean ended = row.retired() || !Objects.equals(row.claimedKey, row.key);
        if (error != null) {
            row.error = error;
        } else if (ended) {
            row.error = row.retired;
        }
        if (ended && row.retired() && row.cancelled()) {
            assertThat(answer).containsExactly("cancelled");
            endCancelled(row, "cancelled");
            rows.remove(row.id);
        } else if (ended) {
            assertThat(answer).containsExactly("superseded");
            row.attempts = row.maxAttempts;
        } else if (action.equals("fail")) {
            assertThat(answer).containsExactly("failed");
            row.attempts = row.claimedAttempts;
            row.maxAttempts = row.claimedAttempts;
        } else {
            row.attempts = action.equals("back") ? row.claimedAttempts - 1 : row.claimedAttempts;
            row.runAt = at;
        }
        unlock(row);
        row.touched = true;
    }

    private void reschedule() {
        Row row = anyOf(r -> true);
        if (row == null) {
            return;
        }
        Instant at = random.nextBoolean() ? null : past();
        Integer priority = random.nextBoolean() ? null : random.nextInt(3);
        Integer attempts = random.nextBoolean() ? null : random.nextInt(3);
        Integer maxAttempts = random.nextBoolean() ? null : 1 + random.nextInt(3);
        log.add("reschedule " + row.id + " " + at + " " + priority + " " + attempts + " " + maxAttempts);
        administer(
                row,
                "reschedule_jobs(array[?::bigint], ?::timestamptz, ?::int, ?::int, ?::int)",
                row.id,
                at == null ? null : at.toString(),
                priority,
                attempts,
                maxAttempts);
        if (!row.protectedByLock()) {
            row.runAt = at == null ? row.runAt : at;
            row.priority = priority == null ? row.priority : priority;
            row.attempts = attempts == null ? row.attempts : attempts;
            row.maxAttempts = maxAttempts == null ? row.maxAttempts : maxAttempts;
            endCancelled(row, "cancelled");
            unlock(row);
            row.touched = true;
            if (row.available()) {
                row.retired = null;
                cancellations.remove(row.id);
            }
        }
    }

    private void permanentlyFail() {
        Row row = anyOf(r -> true);
        if (row == null) {
            return;
        }
        String error = random.nextBoolean() ? null : "enough";
        log.add("fail " + row.id + " " + error);
        administer(row, "permanently_fail_jobs(array[?::bigint], ?::text)", row.id, error);
        if (!row.protectedByLock()) {
            row.attempts = row.maxAttempts;
            row.error = error == null ? "Manually marked as failed" : error;
            endCancelled(row, "cancelled");
            unlock(row);
            row.touched = true;
        }
    }

    private void completeByHand() {
        Row row = anyOf(r -> true);
        if (row == null) {
            return;
        }
        log.add("complete by hand " + row.id);
        administer(row, "complete_jobs(array[?::bigint])", row.id);
        if (!row.protectedByLock()) {
            endCancelled(row, "completed");
            unlock(row);
            rows.remove(row.id);
        }
    }

    private void administer(Row row, String call, @Nullable Object... arguments) {
        List<Long> changed = db.sql("select id from {schema}." + call)
                .params(java.util.Arrays.asList(arguments))
                .query(Long.class)
                .list();
        assertThat(changed).isEqualTo(row.protectedByLock() ? List.of() : List.of(row.id));
    }

    /** Makes a lock so old that it protects its job no more. */
    private void age() {
        Row row = anyOf(r -> r.lockedBy != null);
        if (row != null) {
            log.add("age " + row.id);
            db.sql("update {schema}._private_jobs set locked_at = now() - interval '4 hours' where id = ?")
                    .param(row.id)
                    .update();
            row.oldLock = true;
        }
    }

    // The model

    private @Nullable Row byKey(String key) {
        return rows.values().stream().filter(r -> key.equals(r.key)).findFirst().orElse(null);
    }

    private static Comparator<Row> order() {
        return Comparator.<Row>comparingInt(r -> r.priority)
                .thenComparing(r -> Objects.requireNonNull(r.runAt))
                .thenComparingLong(r -> r.id);
    }

    private void first(String queue, List<Row> target) {
        rows.values().stream()
                .filter(r -> queue.equals(r.queue) && r.due())
                .min(order())
                .ifPresent(target::add);
    }

    private void lock(Row row, String worker) {
        row.claimedKey = row.key;
        row.attempts++;
        row.claimedAttempts = row.attempts;
        row.lockedBy = worker;
        row.oldLock = false;
        if (row.queue != null) {
            queueLocks.put(row.queue, worker);
        }
    }

    private void unlock(Row row) {
        if (row.lockedBy != null && row.queue != null) {
            queueLocks.remove(row.queue);
        }
        row.lockedBy = null;
    }

    private void compare(long seed) {
        String last = "seed " + seed + ", operation " + log.size() + ", after\n  "
                + String.join("\n  ", log.subList(Math.max(0, log.size() - 12), log.size()));
        List<Row> actual = db.sql("""
                        select v.*, j.payload::jsonb::text as payload
                        from {schema}.jobs v join {schema}._private_jobs j on j.id = v.id order by v.id""")
                .query((r, n) -> {
                    Row row = new Row();
                    row.id = r.getLong("id");
                    row.task = r.getString("task_identifier");
                    row.queue = r.getString("queue_name");
                    row.payload = r.getString("payload").replace(" ", "").replace("\"", "");
                    row.priority = r.getInt("priority");
                    row.runAt = r.getObject("run_at", java.time.OffsetDateTime.class)
                            .toInstant();
                    row.attempts = r.getInt("attempts");
                    row.maxAttempts = r.getInt("max_attempts");
                    row.error = r.getString("last_error");
                    row.key = r.getString("key");
                    row.lockedBy = r.getString("locked_by");
                    row.revision = r.getInt("revision");
                    row.updatedAt = r.getObject("updated_at", java.time.OffsetDateTime.class)
                            .toInstant();
                    return row;
                })
                .list();
        assertThat(actual.stream().map(r -> r.id).toList()).as(last).isEqualTo(List.copyOf(rows.keySet()));
        for (Row row : actual) {
            Row expected = Objects.requireNonNull(rows.get(row.id));
            if (expected.touched) {
                assertThat(row.updatedAt).as(last).isAfter(expected.updatedAt);
                expected.updatedAt = row.updatedAt;
                if (expected.runAt == null) {
                    expected.runAt = row.updatedAt;
                }
            }
            assertThat(row.updatedAt).as(last).isEqualTo(expected.updatedAt);
            assertThat(row.toString()).as(last).isEqualTo(text(expected));
        }
        Map<String, String> locks = new HashMap<>();
        db.sql("select queue_name, locked_by from {schema}._private_job_queues where locked_by is not null")
                .query(r -> {
                    locks.put(r.getString(1), r.getString(2));
                });
        assertThat(locks).as(last).isEqualTo(queueLocks);
        Map<Long, String> states = new TreeMap<>();
        db.sql("""
                        select s.id, s.outcome
                        from {schema}.pgworker_cancel_states(array(select job_id from {schema}.pgworker_cancellations)) s""").query(r -> {
            states.put(r.getLong(1), r.getString(2));
        });
        assertThat(states).as(last).isEqualTo(cancellations);
    }

    private static String text(Row row) {
        Object payload = row.payload;
        row.payload = payload.toString().replace(" ", "").replace("=", ":");
        String text = row.toString();
        row.payload = payload;
        return text;
    }

    // Choices

    private JobSpec spec(@Nullable String key, @Nullable JobKeyMode mode) {
        return JobSpec.builder()
                .jobKey(key)
                .jobKeyMode(key == null ? null : mode)
                .queueName(pick(QUEUES, 0.5))
                .runAt(random.nextInt(3) == 0 ? null : random.nextInt(4) == 0 ? FUTURE : past())
                .priority(random.nextBoolean() ? null : random.nextInt(3))
                .maxAttempts(random.nextBoolean() ? null : 1 + random.nextInt(2))
                .build();
    }

    private Object payload() {
        int n = random.nextInt(1000);
        return random.nextBoolean() ? List.of(n) : Map.of("n", n);
    }

    private Instant past() {
        return PAST.plusSeconds(random.nextInt(5));
    }

    private <T> T any(List<T> list) {
        return list.get(random.nextInt(list.size()));
    }

    private <T> @Nullable T pick(List<T> list, double none) {
        return random.nextDouble() < none ? null : any(list);
    }

    private @Nullable Row anyOf(java.util.function.Predicate<Row> condition) {
        List<Row> list = rows.values().stream().filter(condition).toList();
        return list.isEmpty() ? null : any(list);
    }
}
