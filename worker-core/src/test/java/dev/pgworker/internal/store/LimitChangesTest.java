package dev.pgworker.internal.store;

import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;

import org.awaitility.Awaitility;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

import dev.pgworker.testing.TestSchema;

import static org.assertj.core.api.Assertions.assertThat;

/** Limits that change, or a clock that does, while jobs wait, run or are held by somebody. */
@Tag("thorough")
class LimitChangesTest {

    @RegisterExtension
    final TestSchema db = new TestSchema();

    private LimitedJobs jobs;

    @BeforeEach
    void make() {
        jobs = new LimitedJobs(db);
    }

    private interface Holding {
        void run() throws SQLException;
    }

    /** Does something while somebody has locked these rows of jobs. */
    private void whileHeld(String condition, Holding meanwhile) throws SQLException {
        try (Connection connection = db.dataSource().getConnection();
                Statement statement = connection.createStatement()) {
            connection.setAutoCommit(false);
            statement.execute(db.schema()
                    .in("select from {schema}._private_jobs where " + condition + " order by id for update"));
            meanwhile.run();
            connection.rollback();
            connection.setAutoCommit(true);
        }
    }

    private String step() {
        return jobs.sql("select note from {schema}.pgworker_apply_limits()")
                .query((row, number) -> row.getString(1) == null ? "none" : row.getString(1))
                .optional()
                .orElse("nothing");
    }

    private void put(String arguments) {
        jobs.sql("select name from {schema}.pgworker_put_limit(" + arguments + ")")
                .query(String.class)
                .single();
    }

    private void delete(String name) {
        assertThat(jobs.sql("select {schema}.pgworker_delete_limit(?)")
                        .param(name)
                        .query(Boolean.class)
                        .single())
                .isTrue();
    }

    private void check() {
        jobs.sql("select {schema}.pgworker_check_permits()").query().listOfRows();
    }

    private long parked() {
        return jobs.sql("select count(*) from {schema}._private_jobs where {schema}.pgworker_parked(locked_at)")
                .query(Long.class)
                .single();
    }

    private double firstWait() {
        return jobs.sql(
                        "select waits[1] from {schema}.pgworker_admit(array(select id from {schema}._private_tasks), null, null, true,"
                                + " null, 10)")
                .query(Double.class)
                .single();
    }

    @Test
    void aRateThatWasALimitOfConcurrencyMeanwhileOwesNothing() {
        jobs.rate("l", "{t,u}", null, 1, "1 hour", 2);
        jobs.addMany(500);
        for (int i = 0; i < 10; i++) {
            jobs.add("u", "{}");
        }
        assertThat(jobs.admitAndClaim("w")).hasSize(2);
        jobs.limit("l", "{t,u}", null, 300);
        assertThat(jobs.admitAndClaim("w")).hasSize(298);

        jobs.rate("l", "{t,u}", null, 2, "1 second", 10);

        assertThat(jobs.sql("select tokens from {schema}.pgworker_limit_buckets")
                        .query(Double.class)
                        .single())
                .isNotNegative();
        Awaitility.await().until(() -> jobs.admit() > 0);
    }

    @Test
    void aLimitOfConcurrencyCountsNothingThatOnlyGrows() {
        jobs.limit("l", "{t,u}", null, 1000);
        for (int i = 0; i < 3; i++) {
            jobs.add("t", "{}");
            jobs.add("u", "{}");
            assertThat(jobs.admitAndClaim("w")).hasSize(2);
        }
        jobs.sql("update {schema}.pgworker_limit_buckets set unstarted = 2147483647")
                .update();
        jobs.add("t", "{}");
        jobs.add("u", "{}");

        assertThat(jobs.admit()).isEqualTo(2);
        assertThat(jobs.sql("select unstarted from {schema}.pgworker_limit_buckets")
                        .query(Integer.class)
                        .single())
                .isZero();
    }

    @Test
    void aJobThatSomebodyHoldsWhileTheLastLimitGoesIsLetGo() throws SQLException {
        jobs.limit("l", "{t}", null, 1);
        long held = jobs.add("t", "{}");
        long other = jobs.add("t", "{}");
        delete("l");
        whileHeld("id = " + held, () -> {
            assertThat(step()).isEqualTo("none");
            assertThat(step()).isEqualTo("waiting");
            assertThat(jobs.state(other)).isEqualTo("available");
            jobs.sql("update {schema}.pgworker_limits set looked_at = looked_at - interval '11 s'")
                    .update();
            assertThat(step()).as("no longer").isEqualTo("none");
            assertThat(jobs.sql("select count(*) from {schema}.pgworker_limits")
                            .query(Long.class)
                            .single())
                    .isZero();
            assertThat(step()).as("triggers cannot be dropped").isEqualTo("busy");
        });
        assertThat(jobs.state(held)).isEqualTo("parked");

        jobs.apply();

        assertThat(jobs.state(held)).isEqualTo("available");
    }

    @Test
    void whatWaitsForALimitThatDoesNotExistIsLetGo() throws SQLException {
        long lost = jobs.add("t", "{}");
        jobs.sql(
                        "update {schema}._private_jobs set locked_at = '9999-01-01 00:00:00+00', locked_by = 'pgworker-limit:lost'")
                .update();

        whileHeld("true", () -> assertThat(step()).isEqualTo("later"));

        assertThat(step()).isEqualTo("none");
        assertThat(jobs.state(lost)).isEqualTo("available");
        assertThat(step()).isEqualTo("nothing");
    }

    @Test
    void jobsThatSomebodyHeldWhileALimitWasPutAreSubjectToIt() throws SQLException {
        jobs.limit("l", "{t}", null, 100);
        for (int i = 0; i < 20; i++) {
            jobs.add("t", "{}");
        }
        assertThat(jobs.admit()).isEqualTo(20);
        for (int i = 0; i < 20; i++) {
            jobs.add("t", "{}");
        }
        put("'m', '{t}', max_running => 1");

        whileHeld("true", () -> {
            assertThat(step()).isEqualTo("none");
            assertThat(step()).as("permits are forgotten").isEqualTo("none");
            assertThat(step()).isEqualTo("waiting");
        });
        jobs.apply();

        assertThat(jobs.admitAndClaim("w")).hasSize(1);
    }

    @Test
    void jobsThatSomebodyHeldForTooLongAreSubjectToTheLimitWhenTheyStart() throws SQLException {
        jobs.limit("l", "{t}", null, 100);
        jobs.add("t", "{}");
        assertThat(jobs.admitAndClaim("w")).hasSize(1);
        for (int i = 0; i < 20; i++) {
            jobs.add("t", "{}");
        }
        put("'m', '{t}', max_running => 2");

        whileHeld("{schema}.pgworker_parked(locked_at)", () -> {
            assertThat(step()).isEqualTo("none");
            jobs.sql("update {schema}.pgworker_limits set looked_at = looked_at - interval '11 s'")
                    .update();
            jobs.apply();
            assertThat(jobs.admit()).isZero();
        });

        assertThat(jobs.admit()).as("they find their place").isZero();
        assertThat(jobs.admitAndClaim("w")).hasSize(1);
    }

    @Test
    void jobsThatARateFoundAdmittedUseUpItsBurst() {
        jobs.limit("l", "{t,u}", null, 10);
        for (int i = 0; i < 10; i++) {
            jobs.add("t", "{}");
        }
        assertThat(jobs.admit()).isEqualTo(10);
        jobs.rate("l", "{t,u}", null, 1, "1 hour", 10);
        for (int i = 0; i < 30; i++) {
            jobs.add("u", "{}");
        }

        assertThat(jobs.admit()).isZero();
        jobs.age(Duration.ofSeconds(6));
        check();

        assertThat(jobs.admit() + jobs.admit()).isEqualTo(10);
    }

    @Test
    void aLimitOfOtherTasksLeavesWhatHasBeenAdmittedAlone() {
        jobs.rate("r", "{t}", null, 1, "1 hour", 1);
        long admitted = jobs.add("t", "{}");
        assertThat(jobs.admit()).isOne();

        jobs.limit("other", "{u}", null, 1);
        assertThat(jobs.state(admitted)).isEqualTo("available");
        delete("other");
        jobs.apply();

        assertThat(jobs.state(admitted)).isEqualTo("available");
    }

    @Test
    void whoHasAChangeOfALimitOpenHoldsUpNoGate() throws SQLException {
        jobs.limit("l", "{t}", null, 1);
        jobs.add("t", "{}");
        jobs.sql("drop trigger zz_pgworker_limits_kept on {schema}._private_tasks")
                .update();
        try (Connection connection = db.dataSource().getConnection();
                Statement statement = connection.createStatement()) {
            connection.setAutoCommit(false);
            statement.execute(db.schema().in("select {schema}.pgworker_put_limit('l', '{t}', max_running => 2)"));

            jobs.sql("select set_config('lock_timeout', '3s', true), {schema}.pgworker_check_permits()")
                    .query()
                    .listOfRows();

            assertThat(jobs.admit()).isOne();
            connection.rollback();
            connection.setAutoCommit(true);
        }
        check();
        assertThat(jobs.sql("select settled from {schema}.pgworker_limits")
                        .query(Boolean.class)
                        .single())
                .isFalse();
    }

    @Test
    void aSlowRateLooksAgainSoonAfterItHasAdmittedAllItMay() {
        jobs.rate("r", "{t}", null, 10, "1 second", 1);
        for (int i = 0; i < 3; i++) {
            jobs.add("t", "{}");
        }

        assertThat(firstWait()).as("one was admitted").isBetween(0.001, 0.01);
        assertThat(firstWait()).as("it has not started").isBetween(0.01, 0.03);
        assertThat(jobs.claim("w", 10)).hasSize(1);
        assertThat(firstWait()).as("time counts again").isBetween(0.03, 0.1);
    }

    @Test
    void manyHoldersAreLookedAtAfterTheClockWasSetBack() {
        jobs.limit("l", "{t}", null, 1000);
        jobs.addMany(2000);
        assertThat(jobs.admitAndClaim("w")).hasSize(1000);
        jobs.sql("update {schema}.pgworker_limit_buckets set looked_at = now() + interval '1 day', unstarted = 5000")
                .update();
        jobs.sql("delete from {schema}._private_jobs where locked_by = 'w' and id % 10 = 0")
                .update();

        assertThat(jobs.admit()).isEqualTo(100);
    }

    @Test
    void floorsAreCheckedAfterTheClockWasSetBack() {
        jobs.limit("l", "{t}", null, 1);
        jobs.add("t", "{}");
        jobs.add("t", "{}");
        assertThat(jobs.admitAndClaim("w")).hasSize(1);
        jobs.complete("w", jobs.permits().get(0));
        jobs.sql(
                        "update {schema}.pgworker_limit_lanes set floor_priority = 0, floor_run_at = now() + interval '1 day', floor_id = 0,"
                                + " floor_until = now() + interval '1 day'")
                .update();
        assertThat(jobs.admitUntold()).isZero();

        check();

        assertThat(jobs.admitUntold()).isOne();
        assertThat(parked()).isZero();
    }
}
