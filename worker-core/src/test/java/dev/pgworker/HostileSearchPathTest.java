package dev.pgworker;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import javax.sql.DataSource;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import dev.pgworker.schema.SchemaMigrator;
import dev.pgworker.schema.WorkerSchema;
import dev.pgworker.testing.TestSchema;
import dev.pgworker.testsupport.TestPostgres;

import static org.assertj.core.api.Assertions.assertThat;

/**
 * Somebody has planted objects with the names of all that our SQL uses: in {@code public}, in a schema that stands before it in
 * the search path, and in {@code pg_temp}. Nothing of the product ever calls one of them.
 *
 * <p>The names are those words and operators of the migration and of the sources that PostgreSQL has a function, an
 * operator, a type or a table for, so that what is added is covered.
 */
@Tag("thorough")
class HostileSearchPathTest {

    private static final WorkerSchema SCHEMA = new WorkerSchema("jobs");

    private static final Pattern NAME = Pattern.compile("[a-z_][a-z0-9_]*|[-+*/<>=~!@#%^&|`?]+");

    private static String url;
    private static HikariDataSource owner;
    private static HikariDataSource admin;
    private final List<HikariDataSource> pools = new ArrayList<>();

    @BeforeAll
    static void plant() throws Exception {
        url = TestPostgres.newDatabase("hostile");
        try (Connection connection = DriverManager.getConnection(url);
                Statement statement = connection.createStatement()) {
            statement.execute("drop role if exists hostile_owner");
            statement.execute("create role hostile_owner");
            statement.execute("do $$ begin execute format('grant create on database %I to hostile_owner',"
                    + " current_database()); end $$");
        }
        admin = pool("set search_path = pg_catalog");
        owner = pool("set role hostile_owner; set search_path = pg_catalog");
        new SchemaMigrator(owner, SCHEMA).migrate();
        try (Connection connection = DriverManager.getConnection(url);
                Statement statement = connection.createStatement();
                InputStream script = Objects.requireNonNull(
                        HostileSearchPathTest.class.getResourceAsStream("/dev/pgworker/hostile/traps.sql"))) {
            statement.execute(new String(script.readAllBytes(), StandardCharsets.UTF_8));
            for (String name : names()) {
                statement.execute("insert into trap.named values ('" + name + "')");
            }
            statement.execute("insert into trap.planted (what) select 'type pg_temp.' || typname from pg_type where"
                    + " typnamespace = 'pg_catalog'::regnamespace and typtype = 'b'");
            statement.execute("select trap.plant()");
        }
    }

    private static Set<String> names() throws IOException {
        Set<String> names = new TreeSet<>();
        for (String directory : List.of("src/main/java", "src/main/resources/dev/pgworker/schema/migration")) {
            try (Stream<Path> files = Files.walk(Path.of(directory))) {
                for (Path file : files.filter(Files::isRegularFile).toList()) {
                    NAME.matcher(Files.readString(file)).results().forEach(word -> names.add(word.group()));
                }
            }
        }
        return names;
    }

    private static HikariDataSource pool(String initSql) {
        HikariConfig config = TestSchema.poolConfig(url, 10);
        config.setConnectionInitSql(initSql);
        return new HikariDataSource(config);
    }

    private HikariDataSource hostile(String role) {
        HikariDataSource pool = pool("set role " + role + "; select trap.arm(); set search_path = earlier, public");
        pools.add(pool);
        return pool;
    }

    @BeforeEach
    void reset() throws SQLException {
        try (Connection connection = admin.getConnection();
                Statement statement = connection.createStatement()) {
            statement.execute("select pg_catalog.setval('trap.sprung', 1, false)");
        }
    }

    @AfterEach
    void closePools() {
        pools.forEach(HikariDataSource::close);
    }

    @AfterAll
    static void close() throws SQLException {
        owner.close();
        admin.close();
        try (Connection connection = DriverManager.getConnection(url);
                Statement statement = connection.createStatement()) {
            statement.execute("set search_path = pg_catalog");
            for (String role : List.of(
                    "jobs_adder", "jobs_worker", "jobs_operator", "jobs_viewer", "jobs_scheduler", "hostile_owner")) {
                statement.execute("do $$ begin if to_regrole('" + role + "') is not null then drop owned by " + role
                        + " cascade; drop role " + role + "; end if; end $$");
            }
        }
    }

    private void assertNothingSprung() throws SQLException {
        try (Connection connection = owner.getConnection();
                Statement statement = connection.createStatement();
                ResultSet row = statement.executeQuery(
                        "select p.what from trap.sprung s left join trap.planted p on p.id = s.last_value where s.is_called")) {
            assertThat(row.next() ? row.getString(1) : null)
                    .as("what was called")
                    .isNull();
        }
    }

    @Test
    void thereIsSomethingToStepOn() throws SQLException {
        try (Connection connection = hostile("hostile_owner").getConnection();
                Statement statement = connection.createStatement()) {
            for (String trap : List.of(
                    "select exp(1)",
                    "select cardinality(array[1::bigint])",
                    "select * from unnest('{a}'::pg_catalog.text[])",
                    "select 'a'::pg_catalog.text || 1::bigint",
                    "select 'a'::text",
                    "select '1'::regclass",
                    "select 1 where 'a'::varchar = 'a'::pg_catalog.text")) {
                try {
                    statement.execute(trap);
                    assertThat(trap).as("springs a trap").isNull();
                } catch (SQLException e) {
                    assertThat(e.getSQLState()).as(trap).isEqualTo("TRAPS");
                }
            }
        }
    }

    @Test
    void theOwnerDoesEverything() throws SQLException {
        DataSource armed = hostile("hostile_owner");

        GuideRoles.add(armed, SCHEMA);
        GuideRoles.work(owner, armed, SCHEMA);
        GuideRoles.operate(owner, armed, SCHEMA);
        GuideRoles.schedule(armed, SCHEMA);

        assertNothingSprung();
    }

    @ParameterizedTest
    @ValueSource(strings = {"adder", "worker", "operator", "viewer", "scheduler"})
    void eachRoleDoesWhatItIsFor(String role) throws Exception {
        DataSource armed = hostile(GuideRoles.create(admin, SCHEMA, role));

        switch (role) {
            case "adder" -> GuideRoles.add(armed, SCHEMA);
            case "worker" -> GuideRoles.work(owner, armed, SCHEMA);
            case "operator" -> GuideRoles.operate(owner, armed, SCHEMA);
            case "scheduler" -> GuideRoles.schedule(armed, SCHEMA);
            default -> GuideRoles.view(armed, SCHEMA);
        }

        assertNothingSprung();
    }

    @Test
    void theOwnerInstallsTheSchema() throws SQLException {
        new SchemaMigrator(hostile("hostile_owner"), new WorkerSchema("installed")).migrate();

        assertNothingSprung();
    }

    /** Even where the search path puts other schemas before the system's, which no statement from outside can bear. */
    @Test
    void noFunctionLooksANameUpInTheCallersPath() throws SQLException {
        List<String> calls = calls();
        try (Connection connection = hostile("hostile_owner").getConnection();
                Statement statement = connection.createStatement()) {
            statement.execute("set search_path = pg_temp, earlier, public, pg_catalog");
            for (String call : calls) {
                try {
                    statement.execute(call);
                } catch (SQLException e) {
                    assertThat(e.getSQLState()).as(call + ": " + e.getMessage()).doesNotMatch("TRAPS|42.*");
                }
            }
        }
        assertNothingSprung();
    }

    /** Triggers run in the search path of whoever changes the table by hand, and that of limits with the rights of the owner. */
    @Test
    void noTriggerLooksANameUpInThePathOfWhoAddsAJobByHand() throws SQLException {
        try (Connection connection = owner.getConnection();
                Statement statement = connection.createStatement()) {
            statement.execute("select jobs.pgworker_put_limit('by-hand', '{by-hand}', max_running => 1)");
        }
        try (Connection connection = hostile("hostile_owner").getConnection();
                Statement statement = connection.createStatement()) {
            statement.execute("set search_path = pg_temp, earlier, public, pg_catalog");
            statement.execute("insert into jobs._private_jobs (task_id, payload) select k.task_id, '{}'"
                    + " from jobs.pgworker_limited_tasks k where k.task_identifier operator(pg_catalog.=) 'by-hand'");
            statement.execute("update jobs._private_jobs set run_at = pg_catalog.now()");
        }
        assertNothingSprung();
    }

    private static final Map<String, String> VALUES = Map.ofEntries(
            Map.entry("runs", "{\"(1,,,2020-01-01,2020-01-01,1,0,t,,,,,,,)\"}"),
            Map.entry("outcomes", "{retried}"),
            Map.entry("smallint", "0"),
            Map.entry("regclass", "jobs.pgworker_history_0"),
            Map.entry("actions", "{retry}"),
            Map.entry(
                    "jobs.pgworker_schedules",
                    "(w,cron,@daily,UTC,,,,,00:00:00,w,{},,0,25,,replace,,allow,skip,,f,,,,,,f,,,now,now)"),
            Map.entry("jobs.pgworker_pauses", "(task,t,2020-01-01,,,,,,)"),
            Map.entry("jobs.pgworker_steps", "(1,0,a,wait,w,2020-01-01,1,2020-01-01,,2020-01-01,f,f,,)"),
            Map.entry("identifier", "w"),
            Map.entry("cron", "@daily"),
            Map.entry("crontab", "* * * * *"),
            Map.entry("overlap", "skip"),
            Map.entry("misfire", "skip"),
            Map.entry("payload json", "{}"),
            Map.entry("condition", "is_available"),
            Map.entry("mode", "replace"),
            Map.entry("job_key_mode", "replace"),
            Map.entry("flags text[]", "{\"{}\"}"),
            Map.entry("payloads text[]", "{1}"),
            Map.entry("name", "pgworker_history_0"),
            Map.entry("text", "w"),
            Map.entry("text[]", "{w}"),
            Map.entry("integer", "1"),
            Map.entry("integer[]", "{1}"),
            Map.entry("bigint", "1"),
            Map.entry("bigint[]", "{1}"),
            Map.entry("numeric", "100"),
            Map.entry("double precision", "1"),
            Map.entry("double precision[]", "{1}"),
            Map.entry("boolean", "true"),
            Map.entry("boolean[]", "{true}"),
            Map.entry("json", "[1]"),
            Map.entry("json[]", "{1}"),
            Map.entry("jsonb", "{\"w\": 1}"),
            Map.entry("interval", "1 hour"),
            Map.entry("tid[]", "{\"(0,1)\"}"),
            Map.entry("xid", "1"),
            Map.entry("timestamp with time zone", "2020-01-01"),
            Map.entry("timestamp with time zone[]", "{2020-01-01}"));

    /** Returns a call of every function of the schema, after some that give them rows to work on. */
    private static List<String> calls() throws SQLException {
        List<String> calls = new ArrayList<>();
        for (String mode : List.of("replace", "preserve_run_at", "unsafe_dedupe", "replace_and_cancel", "wrong")) {
            for (String payload : List.of("[1]", "{}")) {
                calls.add("select jobs.add_job('t', '" + payload
                        + "', 'q', job_key => 'k', flags => '{f}', job_key_mode => '" + mode + "')");
                calls.add("select jobs.add_job('t', '" + payload + "')");
            }
        }
        // The triggers of the history run with the rights of the owner.
        calls.add("select jobs.pgworker_keep_history(true, null, null, null)");
        calls.add("select jobs.pgworker_tend_history()");
        calls.add("select jobs.worker_heartbeat('w')");
        for (String when :
                List.of("cron => '@daily'", "fixed_delay => '1 hour'", "fixed_rate => '1 hour', origin => 'epoch'")) {
            calls.add("select jobs.pgworker_put_schedule('pgworker_history_0', 't', " + when + ", flags => '{f}')");
            calls.add("select jobs.pgworker_pause_schedule('pgworker_history_0')");
            calls.add("select jobs.pgworker_resume_schedule('pgworker_history_0')");
            calls.add("select jobs.pgworker_trigger_schedule('pgworker_history_0', '{\"a\": 1}')");
        }
        // Nothing calls the triggers but what happens to jobs.
        calls.add("select * from jobs.permanently_fail_jobs(array(select j.id from jobs.jobs j), 'reason')");
        calls.add("select * from jobs.reschedule_jobs(array(select j.id from jobs.jobs j), attempts => '0')");
        calls.add("select * from jobs.pgworker_claim(" + REQUEST + ", '10', " + FLOORS + ")");
        calls.add("select jobs.add_job('t', '[1]', 'q', job_key => 'k')");
        try (Connection connection = owner.getConnection();
                Statement statement = connection.createStatement();
                ResultSet rows = statement.executeQuery("select p.oid::regprocedure, p.proname,"
                        + " array(select coalesce(p.proargnames[a.place], '') || ' ' || format_type(a.type, null)"
                        + " from unnest(p.proargtypes::oid[]) with ordinality a(type, place) order by place)"
                        + " from pg_proc p where p.pronamespace = 'jobs'::regnamespace"
                        + " and p.prorettype <> 'trigger'::regtype order by 1")) {
            while (rows.next()) {
                List<String> values = new ArrayList<>();
                for (String argument : (String[]) rows.getArray(3).getArray()) {
                    values.add(value(rows.getString(2), argument));
                }
                String function = "jobs." + rows.getString(2);
                calls.add("select * from " + function + "(" + String.join(", ", values) + ")");
                calls.add("select * from " + function + "("
                        + values.stream().map(v -> "null").collect(Collectors.joining(", ")) + ")");
            }
        }
        return calls;
    }

    private static final String REQUEST = "'(w,\"{1,2,3}\",,\"{1,1,1}\",12,t,\"{g}\",)'::jobs.pgworker_request";

    private static final String FLOORS = "'{\"(f,0,-infinity,0)\",\"(t,0,-infinity,0)\"}'::jobs.pgworker_floor[]";

    private static String value(String function, String argument) {
        int space = argument.indexOf(' ');
        String name = argument.substring(0, space);
        String type = argument.substring(space + 1);
        if (function.equals("pgworker_recover") && name.equals("actions")) {
            return "'{default}'";
        }
        if (type.endsWith("job_spec[]")) {
            return "array[('t', '[1]', 'q', null, null, 'k', null, '{f}'), ('t', null, null, null, null, null, null, null)]::"
                    + "jobs.job_spec[]";
        }
        if (type.endsWith("pgworker_request")) {
            return REQUEST;
        } else if (type.endsWith("pgworker_floor[]")) {
            return FLOORS;
        } else if (type.endsWith("pgworker_limits")) {
            return "'(1,l,{t},,1,,,,,f,applying,f,1,2020-01-01,2020-01-01)'::jobs.pgworker_limits";
        } else if (type.endsWith("pgworker_floor")) {
            return "null::jobs.pgworker_floor";
        } else if (type.endsWith("pgworker_outcome[]")) {
            return "'{\"(1,2020-01-01,retry,1,,e,,1,,,,)\"}'::jobs.pgworker_outcome[]";
        }
        String value = VALUES.getOrDefault(argument, VALUES.getOrDefault(name, VALUES.get(type)));
        return "'" + Objects.requireNonNull(value, argument) + "'";
    }
}
