package dev.pgworker.internal.store;

import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.List;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.postgresql.util.PSQLException;

import dev.pgworker.testing.TestSchema;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

/** What the functions that write jobs refuse, and that there are two of them. */
class AddFunctionsTest {

    @RegisterExtension
    final TestSchema db = new TestSchema();

    private static final String ADD_JOBS = "pgworker_add_jobs(array['t', %s], array['\"secret\"', '\"secret\"'],"
            + " array[null, %s], null, array[1, %s], array[0, %s], null)";
    private static final String SPECS =
            "add_jobs(array[('t', '\"secret\"', null, null, null, %s, null, null)::{schema}.job_spec,"
                    + " (%s, '\"secret\"', %s, null, %s, %s, %s, null)::{schema}.job_spec])";

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '`',
            value = {
                "null | null | 1 | 'k' | 0 | 23502 | Task identifier must not be null.",
                "repeat('t', 129) | null | 1 | 'k' | 0 | 23514 | Task identifier is too long (max length: 128).",
                "'t' | repeat('q', 129) | 1 | 'k' | 0 | 23514 | Job queue name is too long (max length: 128).",
                "'t' | null | 0 | 'k' | 0 | 23514 | Job maximum attempts must be at least 1.",
                "'t' | null | 1 | '' | 0 | 23514 | Job key must not be empty.",
                "'t' | null | 1 | repeat('k', 513) | 0 | 23514 | Job key is too long (max length: 512)."
            })
    void whatDoesNotFitIsRefusedByAll(
            String identifier, String queue, String attempts, String key, String priority, String state, String message)
            throws SQLException {
        boolean keyless = key.equals("'k'");
        assertRefused(SPECS.formatted("'other'", identifier, queue, attempts, key, priority), state, message);
        assertRefused(
                "add_job(%s, '\"secret\"', %s, null, %s, %s, %s)".formatted(identifier, queue, attempts, key, priority),
                state,
                message);
        if (keyless) {
            assertRefused(SPECS.formatted("null", identifier, queue, attempts, "null", priority), state, message);
            assertRefused(ADD_JOBS.formatted(identifier, queue, attempts, priority), state, message);
        }
        for (String ids : List.of("null", "array[1, 2]")) {
            assertRefused(
                    ("pgworker_put_all(" + ids
                                    + ", array['t', %s], array['\"secret\"', '\"secret\"']::json[], array[null, %s],"
                                    + " null, array[1, %s], array[null, %s], array[0, %s], null)")
                            .formatted(identifier, queue, attempts, key, priority),
                    state,
                    message);
        }
        assertThat(db.jobs()).isZero();
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '`',
            value = {
                "1 | 32768 | 22003 | Job priority must be between -32768 and 32767.",
                "32768 | 0 | 22003 | Job maximum attempts must be at most 32767."
            })
    void numbersOutOfRangeAreRefused(String attempts, String priority, String state, String message)
            throws SQLException {
        assertRefused(ADD_JOBS.formatted("'t'", "null", attempts, priority), state, message);
    }

    @Test
    void aPayloadThatIsNotJsonIsNotQuoted() throws SQLException {
        assertRefused(
                "pgworker_add_jobs(array['t', 't'], array['1', '{\"password\": secret}'], null, null, null, null, null)",
                "22P02",
                "payloads[2] is not JSON");
        assertRefused(
                "pgworker_release('w', array[row(1, now(), 'retry', null, null, null, null, null, 'secret', null, null, null)::{schema}.pgworker_outcome])",
                "22P02",
                "payloads[1] is not JSON");
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '`',
            value = {
                "add_job('t', '\"secret\"', flags => array['a', null])",
                "add_job('t', '\"secret\"', job_key => 'k', flags => array[null])",
                "add_jobs(array[('t', '\"secret\"', null, null, null, null, null, array[null])::{schema}.job_spec])",
                "pgworker_add_jobs(array['t'], array['\"secret\"'], null, null, null, null, array['{a,null}'])"
            })
    void noFlagMayBeNull(String call) throws SQLException {
        assertRefused(call, "22004", "flags must not contain null");
    }

    @Test
    void aTriggerThatKeepsARowOutKeepsNoAddRunningForEver() throws SQLException {
        db.sql("create function {schema}.refuse() returns trigger language plpgsql as 'begin return null; end'")
                .update();
        db.sql(
                        "create trigger refuse before insert on {schema}._private_jobs for each row execute function {schema}.refuse()")
                .update();

        assertRefused(
                "add_job('t', '\"secret\"', job_key => 'k')",
                "27000",
                "The job cannot be added under its key: a trigger keeps the row out.");
    }

    @Test
    void anIdentifierThatIsMissingIsRefused() throws SQLException {
        assertRefused(
                "pgworker_add_jobs(array['t'], array['1', '\"secret\"'], null, null, null, null, null)",
                "23502",
                "Task identifier must not be null.");
    }

    /** With all that the server tells its client: the details and the context as well. */
    private void assertRefused(String call, String state, String message) throws SQLException {
        try (Connection connection = db.dataSource().getConnection()) {
            PSQLException refused = catchThrowableOfType(
                    PSQLException.class,
                    () -> connection.createStatement().execute(db.schema().in("select * from {schema}." + call)));
            assertThat(refused != null).as(call).isTrue();
            assertThat(String.valueOf(refused.getServerErrorMessage()))
                    .as(call)
                    .contains(message)
                    .doesNotContain("secret");
            assertThat(refused.getSQLState()).as(call).isEqualTo(state);
        }
    }

    @Test
    void twoFunctionsWriteRowsOfJobs() {
        assertThat(db.sql("""
                        select proname from pg_proc
                        where pronamespace = ?::regnamespace and prosrc ~ 'insert\\s+into\\s+[^ ]*_private_jobs\\M'
                        order by proname""").param(db.schema().name()).query(String.class).list())
                .containsExactly("pgworker_put", "pgworker_put_all");
    }

    @Test
    void aTriggerMayKeepARowOut() throws SQLException {
        db.sql("""
                create function {schema}.none() returns trigger language plpgsql as 'begin return null; end';
                create trigger none before insert on {schema}._private_jobs for each row execute function {schema}.none()
                """).update();
        try (Connection connection = db.dataSource().getConnection();
                Statement statement = connection.createStatement()) {
            statement.execute("set statement_timeout = '60s'");
            statement.execute(db.schema().in("select {schema}.add_job('t')"));
            statement.execute("reset statement_timeout");
        }
        assertThat(db.jobs()).isZero();
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '`',
            value = {
                "add_job('t', job_key => 'k')",
                "add_job('t', job_key => 'k', job_key_mode => 'unsafe_dedupe')",
                "add_jobs(array[('t', null, null, null, null, 'k', null, null)::{schema}.job_spec])"
            })
    void theRevisionAfterTheGreatestIsOne(String call) {
        db.sql("select {schema}.add_job('t', job_key => 'k')").query().singleRow();
        for (int next : new int[] {2_147_483_647, 1}) {
            int before = next == 1 ? 2_147_483_647 : next - 1;
            db.sql("""
                    with jobs as (update {schema}._private_jobs set revision = ?, last_error = 'x' returning id, revision)
                    insert into {schema}.pgworker_recoveries select id, revision, 2 from jobs
                    on conflict (job_id) do update set revision = excluded.revision""").param(before).update();

            db.sql("select * from {schema}." + call).query().singleRow();

            assertThat(value("select revision from {schema}._private_jobs")).isEqualTo(next);
            assertThat(value("select revision from {schema}.pgworker_recoveries"))
                    .as("taken along by unsafe_dedupe only")
                    .isEqualTo(call.contains("unsafe") ? next : before);
        }
        assertThat(db.jobs()).isOne();
    }

    private int value(String query) {
        return db.sql(query).query(Integer.class).single();
    }
}
