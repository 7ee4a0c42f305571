package dev.pgworker;

import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

import dev.pgworker.testing.ClaimSql;
import dev.pgworker.testing.OwnThread;
import dev.pgworker.testing.TestSchema;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

/**
 * A job is replaced, and goes to a queue that somebody else has, between the moment a statement has seen it and that at which it locks
 * it. Row-level security brings the statement to a halt there. Servers of 2026 leave such a row out by themselves, those of 12 do not.
 */
class MovedJobTest {

    /** What only the context of the statement that locks says. */
    private static final String CLAIM = "j.ctid = any(tids)";

    @RegisterExtension
    final TestSchema db = new TestSchema(4).installedAnew();

    private String role;

    @BeforeEach
    void createRoleThatIsHalted() {
        role = db.schema().name() + "_halted";
        for (String statement : """
                create function {schema}.halt(job_key text) returns boolean language plpgsql volatile set lock_timeout = 0 as $$
                declare
                  stack text;
                begin
                  if job_key = 'moved' and current_setting('halt.at', true) <> '' then
                    get diagnostics stack = pg_context;
                    if position(current_setting('halt.at') in stack) > 0 then
                      perform set_config('halt.at', '', false);
                      perform pg_advisory_lock_shared(4711);
                      perform pg_advisory_unlock_shared(4711);
                    end if;
                  end if;
                  return true;
                end $$;
                alter table {schema}._private_jobs enable row level security;
                create policy halts on {schema}._private_jobs using ({schema}.halt(key));
                create policy tasks on {schema}._private_tasks using (true);
                create policy queues on {schema}._private_job_queues using (true);
                create role %1$s;
                grant usage on schema {schema} to %1$s;
                grant all on all tables in schema {schema} to %1$s;
                grant all on all sequences in schema {schema} to %1$s;
                grant execute on all functions in schema {schema} to %1$s;
                select {schema}.add_job('t', queue_name => 'theirs');
                update {schema}._private_jobs set attempts = 1, locked_at = now(), locked_by = 'other';
                update {schema}._private_job_queues set locked_at = now(), locked_by = 'other'
                """.formatted(role).split(";\n(?=[acgsu])")) {
            run(statement);
        }
    }

    @AfterEach
    void dropRole() {
        run("drop owned by " + role);
        run("drop role " + role);
    }

    private void run(String sql) {
        try (Connection connection = db.dataSource().getConnection();
                Statement statement = connection.createStatement()) {
            statement.execute(db.schema().in(sql));
        } catch (SQLException e) {
            throw new IllegalStateException(sql, e);
        }
    }

    private void addJobs(String... keys) {
        for (String key : keys) {
            run("select {schema}.add_job('t', queue_name => 'ours', job_key => '" + key + "')");
        }
    }

    /** Executes a query as the role, up to the place if one is given; meanwhile the job is moved. Returns the ids of its rows. */
    private List<Long> query(String sql, String place) throws SQLException {
        try (Connection holder = db.dataSource().getConnection();
                Statement lock = holder.createStatement()) {
            lock.execute("select pg_advisory_lock(4711)");
            CompletableFuture<List<Long>> answer =
                    CompletableFuture.supplyAsync(() -> halted(sql, place), OwnThread.EACH);
            await().until(() -> answer.isDone()
                    || db.sql("select exists (select from pg_locks where locktype = 'advisory' and not granted)")
                            .query(Boolean.class)
                            .single());
            assertThat(answer).as("statement that is to be halted").isNotDone();
            run(
                    "select {schema}.add_job('t', queue_name => 'theirs', job_key => 'moved', job_key_mode => 'preserve_run_at')");
            lock.execute("select pg_advisory_unlock(4711)");
            return answer.join();
        }
    }

    private List<Long> halted(String sql, String place) {
        try (Connection connection = db.dataSource().getConnection();
                Statement statement = connection.createStatement()) {
            statement.execute("set role " + role);
            statement.execute("select set_config('halt.at', '" + place + "', false)");
            List<Long> ids = new ArrayList<>();
            try (ResultSet rows = statement.executeQuery(db.schema().in(sql))) {
                while (rows.next()) {
                    if (rows.getObject("id") != null) {
                        ids.add(rows.getLong("id"));
                    }
                }
            }
            statement.execute("reset role");
            return ids;
        } catch (SQLException e) {
            throw new IllegalStateException(e);
        }
    }

    private long id(String key) {
        return db.sql("select id from {schema}._private_jobs where key = ?")
                .param(key)
                .query(Long.class)
                .single();
    }

    private static String claim(int wanted) {
        return "select id from " + ClaimSql.claim("'w'", String.valueOf(wanted), "null", "10") + " c";
    }

    @Test
    void isNotClaimed() throws SQLException {
        addJobs("first", "moved", "next");

        assertThat(query(claim(10), CLAIM)).doesNotContain(id("moved"));
        assertThat(lockedBy("moved")).isNull();
    }

    private String lockedBy(String key) {
        return db.sql("select locked_by from {schema}._private_jobs where key = ?")
                .param(key)
                .query(String.class)
                .optional()
                .orElse(null);
    }
}
