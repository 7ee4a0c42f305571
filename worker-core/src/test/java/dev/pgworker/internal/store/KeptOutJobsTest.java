package dev.pgworker.internal.store;

import java.sql.SQLException;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import java.util.stream.Stream;

import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.springframework.dao.DataIntegrityViolationException;
import org.springframework.jdbc.support.JdbcTransactionManager;
import org.springframework.transaction.support.TransactionTemplate;

import dev.pgworker.internal.store.CrontabStore.Execution;
import dev.pgworker.job.JobKeyMode;
import dev.pgworker.job.JobRequest;
import dev.pgworker.job.JobScheduler;
import dev.pgworker.job.JobSpec;
import dev.pgworker.testing.TestSchema;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

/** A trigger that keeps jobs out without a word makes every add fail as a whole, and the failure names it. */
@Tag("thorough")
class KeptOutJobsTest {

    private static final JobSpec QUEUED = JobSpec.builder().queueName("q").build();

    @RegisterExtension
    final TestSchema db = new TestSchema();

    /** Keeps batch jobs out, and others by the numbers that are their payloads, and every change of one under its key. */
    @BeforeEach
    void keepOut() {
        db.scheduler().addJob("t", 1, keyed("taken"));
        db.sql("""
                create function {schema}.keep_out() returns trigger language plpgsql as $$
                begin
                  if tg_op = 'UPDATE' or new.payload::text like '[%' or new.payload::text::int % 3 = 0 then return null; end if;
                  return new;
                end $$;
                create trigger keep_out before insert or update on {schema}._private_jobs
                  for each row execute function {schema}.keep_out()
                """).update();
    }

    @ParameterizedTest
    @CsvSource({
        "one, 1, 1",
        "one in a queue, 1, 1",
        "one with a key, 1, 1",
        "one whose key is taken, 1, 1",
        "one whose key is to be kept, 1, 1",
        "batch job, 1, 1",
        "alike, 2, 6",
        "alike and all, 4, 4",
        "in queues, 2, 6",
        "in queues and all, 4, 4",
        "some with keys, 2, 6",
        "keys that are taken, 1, 2",
        "stream, 1000, 3000",
        "stream whose second chunk has one, 1, 1000",
        "stream with keys, 1, 2"
    })
    void anAddFailsAsAWhole(String how, int keptOut, int of) {
        JobScheduler scheduler = db.scheduler();
        TransactionTemplate transaction = new TransactionTemplate(new JdbcTransactionManager(db.dataSource()));
        Consumer<JobScheduler> add = add(how);
        String message = "keeps " + keptOut + " of " + of + " jobs out";
        if (how.equals("one with a key")) {
            message = "a trigger keeps the row out";
        }

        assertThatThrownBy(() -> add.accept(scheduler))
                .isInstanceOf(DataIntegrityViolationException.class)
                .hasMessageContaining("trigger")
                .hasMessageContaining(message)
                .rootCause()
                .isInstanceOfSatisfying(
                        SQLException.class, e -> assertThat(e.getSQLState()).isEqualTo("27000"));
        assertThat(db.jobs()).isOne();

        assertThatThrownBy(() -> transaction.executeWithoutResult(status -> {
                    scheduler.addJob("t", 1);
                    add.accept(scheduler);
                }))
                .isInstanceOf(DataIntegrityViolationException.class);
        assertThat(db.jobs()).isOne();
    }

    private static Consumer<JobScheduler> add(String how) {
        return switch (how) {
            case "one" -> scheduler -> scheduler.addJob("t", 0);
            case "one in a queue" -> scheduler -> scheduler.addJob("t", 0, QUEUED);
            case "one with a key" -> scheduler -> scheduler.addJob("t", 0, keyed("k"));
            case "one whose key is taken" -> scheduler -> scheduler.addJob("t", 1, keyed("taken"));
            case "one whose key is to be kept" ->
                scheduler -> scheduler.addJob(
                        "t",
                        1,
                        JobSpec.builder()
                                .jobKey("taken")
                                .jobKeyMode(JobKeyMode.UNSAFE_DEDUPE)
                                .build());
            case "batch job" -> scheduler -> scheduler.addBatchJob("t", List.of(1, 2), JobSpec.DEFAULT);
            case "alike" -> scheduler -> scheduler.addJobs(requests(JobSpec.DEFAULT, 1, 2, 3, 4, 5, 6));
            case "alike and all" -> scheduler -> scheduler.addJobs(requests(JobSpec.DEFAULT, 3, 6, 9, 12));
            case "in queues" -> scheduler -> scheduler.addJobs(requests(QUEUED, 1, 2, 3, 4, 5, 6));
            case "in queues and all" -> scheduler -> scheduler.addJobs(requests(QUEUED, 3, 6, 9, 12));
            case "some with keys" ->
                scheduler -> {
                    List<JobRequest> requests = new ArrayList<>(requests(JobSpec.DEFAULT, 1, 2, 3, 5, 6));
                    requests.add(JobRequest.of("t", 7, keyed("k")));
                    scheduler.addJobs(requests);
                };
            case "keys that are taken" ->
                scheduler -> scheduler.addJobs(
                        List.of(JobRequest.of("t", 1, keyed("taken")), JobRequest.of("t", 2, keyed("k"))));
            case "stream" -> scheduler -> scheduler.addJobs(numbers(3_000).stream());
            case "stream whose second chunk has one" ->
                scheduler -> {
                    List<JobRequest> requests = new ArrayList<>();
                    for (int i = 0; i < 6_000; i++) {
                        requests.add(JobRequest.of("t", i == 5_500 ? 3 : 1));
                    }
                    scheduler.addJobs(requests.stream());
                };
            case "stream with keys" ->
                scheduler -> scheduler.addJobs(
                        Stream.of(JobRequest.of("t", 1, keyed("taken")), JobRequest.of("t", 2, keyed("k"))));
            default -> throw new IllegalArgumentException(how);
        };
    }

    @Test
    void anItemOfTheCrontabFailsAloneAndIsNoPausedOne() throws SQLException {
        Instant tick = Instant.parse("2026-03-01T04:30:00Z");
        CrontabStore store = new CrontabStore(db.dataSource(), db.schema());
        Execution bad = new Execution("bad", tick, "t", "3", JobSpec.DEFAULT);
        Execution good = new Execution("good", tick, "t", "4", JobSpec.DEFAULT);

        CrontabStore.Result result = store.execute(List.of(bad, good), CrontabStore.Adding.IN_TIME);

        assertThat(result.failed()).containsOnlyKeys("bad");
        assertThat((Throwable) result.failed().get("bad")).hasMessageContaining("keeps 1 of 1 jobs out");
        assertThat(result.paused()).isEmpty();
        assertThat(result.added()).containsOnlyKeys(good);
        db.sql("drop trigger keep_out on {schema}._private_jobs").update();
        assertThat(store.execute(List.of(bad), CrontabStore.Adding.IN_TIME).added())
                .as("tried again")
                .containsOnlyKeys(bad);
    }

    @Test
    void othersAreAddedAsEver() {
        assertThat(db.scheduler().addJobs(requests(JobSpec.DEFAULT, 1, 2, 4))).hasSize(3);
        assertThat(db.scheduler().addJobs(requests(keyed("k"), 5))).hasSize(1);
        assertThat(db.scheduler().addJob("t", 1, QUEUED).id()).isPositive();
        assertThat(db.jobs()).isEqualTo(6);
    }

    private static JobSpec keyed(String key) {
        return JobSpec.builder().jobKey(key).build();
    }

    private static List<JobRequest> numbers(int count) {
        List<JobRequest> requests = new ArrayList<>();
        for (int i = 1; i <= count; i++) {
            requests.add(JobRequest.of("t", i));
        }
        return requests;
    }

    private static List<JobRequest> requests(JobSpec spec, int... payloads) {
        List<JobRequest> requests = new ArrayList<>();
        for (int payload : payloads) {
            requests.add(JobRequest.of("t", payload, spec));
        }
        return requests;
    }
}
