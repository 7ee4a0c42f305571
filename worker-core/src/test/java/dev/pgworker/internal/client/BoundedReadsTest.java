package dev.pgworker.internal.client;

import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.stream.Stream;

import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

import dev.pgworker.job.Job;
import dev.pgworker.job.JobCounts;
import dev.pgworker.job.JobPage;
import dev.pgworker.job.JobQueries;
import dev.pgworker.job.JobQuery;
import dev.pgworker.job.JobSelection;
import dev.pgworker.job.JobSort;
import dev.pgworker.job.JobSpec;
import dev.pgworker.job.JobState;
import dev.pgworker.testing.TestSchema;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

/** Lists, counts and selections that read a bounded number of jobs, compared with all jobs. */
class BoundedReadsTest {

    private static Comparator<Job> order(JobSort sort) {
        return switch (sort) {
            case NEWEST -> Comparator.comparing(Job::id).reversed();
            case OLDEST -> Comparator.comparing(Job::id);
            case RUN_AT -> Comparator.comparing(Job::runAt).thenComparing(Job::id);
            case UPDATED ->
                Comparator.comparing(Job::updatedAt).thenComparing(Job::id).reversed();
            case PRIORITY ->
                Comparator.comparing(Job::priority).thenComparing(Job::runAt).thenComparing(Job::id);
            case ATTEMPTS ->
                Comparator.comparing(Job::attempts).thenComparing(Job::id).reversed();
        };
    }

    @RegisterExtension
    final TestSchema db = new TestSchema();

    @Test
    @Tag("thorough")
    void aLimitThatIsNotReachedChangesNothing() {
        fill(400);
        List<Job> all = everything();
        Instant now = now();
        for (JobQuery filter : filters(all)) {
            List<Job> expected =
                    all.stream().filter(job -> matches(filter, job, now)).toList();
            JobQuery bounded = filter.toBuilder().scanLimit(400).pageSize(1000).build();
            for (JobSort sort : JobSort.values()) {
                for (JobQuery query : List.of(filter.toBuilder().pageSize(1000).build(), bounded)) {
                    JobPage page =
                            db.queries().list(query.toBuilder().sort(sort).build());
                    assertThat(page.jobs())
                            .as("%s by %s", query, sort)
                            .containsExactlyElementsOf(
                                    expected.stream().sorted(order(sort)).toList());
                    assertThat(page.next()).isNull();
                    assertThat(page.limited()).as("%s by %s", query, sort).isFalse();
                }
            }
            assertThat(db.queries().count(bounded)).as("%s", filter).isEqualTo(counts(expected, now));
            assertThat(db.queries().select(bounded, 1000))
                    .isEqualTo(new JobSelection(
                            expected.stream().map(Job::id).sorted().toList(), true));
        }
    }

    @Test
    @Tag("thorough")
    void pagesGoOnWhereReadingHasEnded() {
        fill(400);
        List<Job> all = everything();
        Instant now = now();
        for (JobQuery filter : filters(all)) {
            if (filter.queueName() == null) {
                for (JobSort sort : List.of(JobSort.NEWEST, JobSort.OLDEST)) {
                    JobQuery query = filter.toBuilder()
                            .scanLimit(30)
                            .pageSize(7)
                            .sort(sort)
                            .build();
                    assertThat(allPages(query))
                            .as("%s", query)
                            .containsExactlyElementsOf(all.stream()
                                    .filter(job -> matches(filter, job, now))
                                    .sorted(order(sort))
                                    .map(Job::id)
                                    .toList());
                }
            }
        }
    }

    private List<Long> allPages(JobQuery first) {
        List<Long> seen = new ArrayList<>();
        JobQuery query = first;
        while (true) {
            JobPage page = db.queries().list(query);
            page.jobs().forEach(job -> seen.add(job.id()));
            if (page.next() == null) {
                assertThat(page.limited()).isFalse();
                return seen;
            }
            assertThat(page.limited() || page.jobs().size() == query.pageSize()).isTrue();
            query = query.after(page.next());
        }
    }

    @Test
    @Tag("thorough")
    void whatIsLeftOutIsSaid() {
        fill(400);
        for (JobQuery filter : filters(everything())) {
            for (JobSort sort : JobSort.values()) {
                JobQuery query = filter.toBuilder().pageSize(5).sort(sort).build();
                JobPage page = db.queries().list(query.toBuilder().scanLimit(20).build());
                assertThat(page.limited()
                                || page.next() != null
                                || page.jobs().equals(db.queries().list(query).jobs()))
                        .as("%s", query)
                        .isTrue();
            }
            JobCounts counts =
                    db.queries().count(filter.toBuilder().scanLimit(20).build());
            JobSelection selection =
                    db.queries().select(filter.toBuilder().scanLimit(20).build(), 1000);
            assertThat(counts.complete() && !counts.equals(db.queries().count(filter)))
                    .as("%s", filter)
                    .isFalse();
            assertThat(selection.complete() && !selection.equals(db.queries().select(filter, 1000)))
                    .as("%s", filter)
                    .isFalse();
        }
    }

    @Test
    void pagesOfOtherOrdersCountTheJobsBefore() {
        fill(100);
        JobQuery query = JobQuery.builder()
                .sort(JobSort.PRIORITY)
                .pageSize(30)
                .scanLimit(1000)
                .build();

        List<Long> seen = allPages(query, 30);

        assertThat(seen)
                .containsExactlyElementsOf(everything().stream()
                        .sorted(order(JobSort.PRIORITY))
                        .map(Job::id)
                        .toList());
        assertThatIllegalArgumentException()
                .isThrownBy(() -> query.after(-1L))
                .withMessage("after must not be negative, but is -1");
    }

    private List<Long> allPages(JobQuery first, long step) {
        List<Long> seen = new ArrayList<>();
        for (JobQuery query = first; query != null; ) {
            JobPage page = db.queries().list(query);
            page.jobs().forEach(job -> seen.add(job.id()));
            assertThat(page.next()).isIn(null, (long) seen.size());
            assertThat(page.jobs().size()).isLessThanOrEqualTo((int) step);
            query = page.next() == null ? null : query.after(page.next());
        }
        return seen;
    }

    @Test
    void whatWaitsIsFoundBesideMoreThatDoesNot() {
        db.sql("insert into {schema}._private_tasks (identifier) values ('mail')")
                .update();
        db.sql("insert into {schema}._private_job_queues (queue_name) values ('lane')")
                .update();
        insert("run_at, priority", "now() - interval '1 s', 3");
        insert("run_at, job_queue_id", "now() - interval '1 s', 1");
        insert("run_at, priority", "now() + interval '1 day', g % 5 from generate_series(1, 200) g");
        insert("run_at, job_queue_id", "now() + interval '1 day', 1 from generate_series(1, 200) g");
        JobQuery ready = JobQuery.builder().state(JobState.READY).scanLimit(10).build();

        assertThat(db.queries().list(ready)).satisfies(page -> {
            assertThat(page.jobs()).extracting(Job::id).containsExactly(2L, 1L);
            assertThat(page.limited()).isFalse();
        });
        assertThat(db.queries()
                        .list(ready.toBuilder().queueName("lane").build())
                        .jobs())
                .extracting(Job::id)
                .containsExactly(2L);
        assertThat(db.queries().count(ready)).isEqualTo(new JobCounts(2, 0, 0, 0, 0, 0, true));
        JobQuery later = ready.toBuilder().state(JobState.SCHEDULED).build();
        assertThat(db.queries().count(later)).isEqualTo(new JobCounts(0, 10, 0, 0, 0, 0, false));
        assertThat(db.queries()
                        .list(later.toBuilder().queueName("lane").pageSize(20).build()))
                .satisfies(page -> {
                    assertThat(page.jobs()).hasSize(10);
                    assertThat(page.limited()).isTrue();
                    assertThat(page.next()).isNull();
                });
    }

    @Test
    void payloadsAreCutAndLargeOnesLeftOut() {
        long small = add("ab");
        long large = add("x".repeat(100_000));
        // Not compressible, so that the table has it as it is.
        StringBuilder noise = new StringBuilder();
        new Random(1).ints(1_500_000, 'a', 'z').forEach(c -> noise.append((char) c));
        long huge = add(noise.toString());
        long wide = add("\uD83D\uDE00".repeat(10));
        JobQueries queries = db.queries();

        assertThat(queries.list(JobQuery.builder().payloadLimit(4).build()).jobs())
                .extracting(Job::payload)
                .containsExactly("\"\uD83D\uDE00\uD83D\uDE00\uD83D\uDE00…", "…", "\"xxx…", "\"ab\"");
        assertThat(queries.list(JobQuery.builder().payloadLimit(0).build()).jobs())
                .extracting(Job::payload)
                .containsOnly("");
        assertThat(queries.find(List.of(huge), 4))
                .extracting(Job::payload)
                .containsExactly("\"" + noise.substring(0, 3) + "…");
        assertThat(queries.find(List.of(large, 999L, small, huge, large), 4))
                .extracting(Job::payload)
                .containsExactly("\"xxx…", "\"ab\"", "…");
        assertThat(queries.find(List.of(), 4)).isEmpty();
        assertThat(queries.find(large).orElseThrow().payload()).hasSize(100_002);
        assertThat(queries.find(wide).orElseThrow().payload()).hasSize(22);
        assertThatIllegalArgumentException()
                .isThrownBy(() -> queries.find(List.of(1L), -1))
                .withMessageContaining("payloadLimit must be between 0 and 1000000");
    }

    @Test
    void aSearchEndsWhenItHasReadManyBytes() {
        StringBuilder noise = new StringBuilder();
        new Random(1).ints(3_000_000, 'a', 'z').forEach(c -> noise.append((char) c));
        long oldest = add("needle");
        for (int i = 0; i < 5; i++) {
            add(noise.toString());
        }
        JobQuery query = JobQuery.builder().search("needle").scanLimit(1000).build();

        JobPage first = db.queries().list(query);
        assertThat(first.jobs()).isEmpty();
        assertThat(first.limited()).isTrue();
        assertThat(first.next()).isEqualTo(oldest + 5);
        assertThat(allPages(query)).containsExactly(oldest);

        // Keys and errors are short.
        JobPage withoutPayloads =
                db.queries().list(query.toBuilder().payloadLimit(0).build());
        assertThat(withoutPayloads.jobs()).isEmpty();
        assertThat(withoutPayloads.limited()).isFalse();
    }

    private long add(String payload) {
        return db.scheduler().addJob("mail", payload).id();
    }

    /** Inserts jobs of the first task, as a script of a user might. */
    private void insert(String columns, String values) {
        db.sql("insert into {schema}._private_jobs (task_id, " + columns + ") select 1, " + values)
                .update();
    }

    /** Adds jobs of all kinds, at random, but the same each time. */
    private void fill(int jobs) {
        Random random = new Random(7);
        for (int i = 0; i < 3; i++) {
            db.scheduler()
                    .addJob(
                            "task" + i,
                            "x",
                            JobSpec.builder().queueName("queue" + i).build());
        }
        db.sql("delete from {schema}._private_jobs").update();
        for (int i = 0; i < jobs; i++) {
            int attempts = random.nextInt(3);
            boolean failed = random.nextInt(4) == 0;
            boolean locked = random.nextInt(10) == 0;
            insert(
                    "job_queue_id, payload, priority, run_at, attempts, max_attempts, last_error, updated_at, key, flags, locked_at,"
                            + " locked_by",
                    (random.nextBoolean() ? "null" : 1 + random.nextInt(3)) + "::int, '{\"text\": \""
                            + (char) ('a' + i % 5) + "\"}', "
                            + (random.nextInt(5) - 2) + ", now() + interval '" + (random.nextInt(20) - 10) + " hours', "
                            + attempts + ", " + (failed ? Math.max(1, attempts) : 5) + ", "
                            + (failed ? "'broken " + i % 3 + "'" : "null") + ", now() - interval '" + random.nextInt(50)
                            + " min', "
                            + (i % 7 == 0 ? "'key" + i + "'" : "null") + ", "
                            + (i % 11 == 0 ? "'{\"vip\": true}'::jsonb" : "null") + ", "
                            + (locked ? "now(), 'w'" : "null, null"));
        }
        db.sql("update {schema}._private_jobs set task_id = 1 + id % 3").update();
        db.sql(
                        "update {schema}._private_job_queues q set locked_at = now(), locked_by = 'w' where exists"
                                + " (select from {schema}._private_jobs j where j.job_queue_id = q.id and j.locked_at is not null)")
                .update();
    }

    private List<Job> everything() {
        return db.queries().list(JobQuery.builder().pageSize(1000).build()).jobs();
    }

    private Instant now() {
        return db.sql("select now()")
                .query(java.time.OffsetDateTime.class)
                .single()
                .toInstant();
    }

    private static List<JobQuery> filters(List<Job> all) {
        List<JobQuery> filters = new ArrayList<>();
        for (JobState state : Stream.concat(Stream.of((JobState) null), Stream.of(JobState.values()))
                .toList()) {
            for (String queue : Stream.of(null, "queue1", "none").toList()) {
                JobQuery.Builder query = JobQuery.builder().state(state).queueName(queue);
                filters.add(query.build());
                filters.add(query.taskIdentifier("task1").build());
                filters.add(query.taskIdentifier(null).search("broken 1").build());
                filters.add(query.search("\"c\"").build());
                filters.add(query.search(null).flag("vip").build());
                filters.add(query.flag(null)
                        .from(all.get(0).createdAt().minus(Duration.ofMinutes(90)))
                        .to(all.get(0).createdAt().plus(Duration.ofHours(3)))
                        .build());
                filters.add(query.from(null).to(null).key("key77").build());
            }
        }
        return filters;
    }

    @Test
    void runningJobsAreFoundHoweverOldTheyAre() {
        List<Long> ids = new ArrayList<>();
        for (int i = 0; i < 50; i++) {
            ids.add(db.scheduler()
                    .addJob("mail", i, JobSpec.builder().queueName("q" + i % 2).build())
                    .id());
        }
        for (int i : List.of(0, 1, 3, 49)) {
            db.sql("update {schema}._private_jobs set locked_at = now(), locked_by = 'w' where id = ?")
                    .param(ids.get(i))
                    .update();
        }
        JobQuery running =
                JobQuery.builder().state(JobState.RUNNING).scanLimit(10).build();
        JobQuery queued = running.toBuilder().queueName("q1").build();
        assertThat(db.queries()
                        .count(queued.toBuilder().queueName("q0").build())
                        .complete())
                .as("the queue is not locked, but its job")
                .isFalse();
        db.sql(
                        "insert into {schema}.pgworker_running (worker_id, job_id, locked_at, started_at)"
                                + " select j.locked_by, j.id, j.locked_at, now() from {schema}._private_jobs j where j.id in (?, ?, ?)")
                .params(ids.get(1), ids.get(3), ids.get(49))
                .update();
        db.sql("update {schema}.pgworker_running set locked_at = '-infinity' where job_id = ?")
                .param(ids.get(3))
                .update();

        for (JobSort sort : JobSort.values()) {
            for (JobQuery query : List.of(running, queued)) {
                JobPage page = db.queries().list(query.toBuilder().sort(sort).build());
                List<Long> expected = sort == JobSort.OLDEST
                        ? (query.equals(queued) ? List.of(1, 3, 49) : List.of(0, 1, 3, 49))
                                .stream().map(ids::get).toList()
                        : List.of(ids.get(1), ids.get(49));
                assertThat(page.jobs())
                        .as("%s", sort)
                        .extracting(Job::id)
                        .containsExactlyInAnyOrderElementsOf(expected);
                assertThat(page.limited()).isTrue();
            }
        }
        JobCounts counts = db.queries().count(running);
        assertThat(counts.running()).isEqualTo(2);
        assertThat(counts.complete()).isFalse();
        JobPage first = db.queries().list(running.toBuilder().pageSize(1).build());
        assertThat(first.jobs()).extracting(Job::id).containsExactly(ids.get(49));
        assertThat(db.queries()
                        .list(running.toBuilder()
                                .pageSize(1)
                                .after(first.next())
                                .build())
                        .jobs())
                .extracting(Job::id)
                .containsExactly(ids.get(1));
    }

    private static boolean matches(JobQuery filter, Job job, Instant now) {
        return (filter.state() == null || filter.state() == JobState.of(job, now))
                && isOrAny(filter.queueName(), job.queueName())
                && isOrAny(filter.taskIdentifier(), job.taskIdentifier())
                && isOrAny(filter.key(), job.key())
                && (filter.flag() == null || job.flags().contains(filter.flag()))
                && (filter.from() == null || !job.runAt().isBefore(filter.from()))
                && (filter.to() == null || job.runAt().isBefore(filter.to()))
                && (filter.search() == null
                        || Stream.of(job.payload(), "" + job.key(), "" + job.lastError())
                                .anyMatch(text -> text.contains(filter.search())));
    }

    private static boolean isOrAny(@Nullable String wanted, @Nullable String given) {
        return wanted == null || wanted.equals(given);
    }

    private static JobCounts counts(List<Job> jobs, Instant now) {
        Map<JobState, Long> counts = new EnumMap<>(JobState.class);
        Arrays.stream(JobState.values()).forEach(state -> counts.put(state, 0L));
        jobs.forEach(job -> counts.merge(JobState.of(job, now), 1L, Long::sum));
        return new JobCounts(
                counts.get(JobState.READY),
                counts.get(JobState.SCHEDULED),
                counts.get(JobState.RETRYING),
                counts.get(JobState.LIMITED),
                counts.get(JobState.RUNNING),
                counts.get(JobState.FAILED));
    }
}
