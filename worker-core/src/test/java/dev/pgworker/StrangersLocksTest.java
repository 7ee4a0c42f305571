package dev.pgworker;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.regex.Pattern;
import java.util.stream.Stream;

import org.awaitility.Awaitility;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

import dev.pgworker.event.WorkerEvent.JobCompleted;
import dev.pgworker.event.WorkerEvent.LimitApplied;
import dev.pgworker.event.WorkerEvent.WorkersRecovered;
import dev.pgworker.job.Job;
import dev.pgworker.job.JobSpec;
import dev.pgworker.job.Task;
import dev.pgworker.limit.Limit;
import dev.pgworker.recovery.RecoverySettings;
import dev.pgworker.testing.ClaimSql;
import dev.pgworker.testing.RecordingListener;
import dev.pgworker.testing.TestSchema;

import static org.assertj.core.api.Assertions.assertThat;

/** Locks of roles that may connect, add jobs or look, and no more, do not hold up workers. */
class StrangersLocksTest {

    private static final Pattern ADVISORY_LOCK = Pattern.compile("\\bpg_(try_)?advisory_\\w*lock\\w*");

    /** Whoever may connect can take any of them. */
    private static final Set<String> ADVISORY_LOCKS = Set.of(
            // Nobody waits for it; workers of Rust do not sweep without it.
            "R__32_sweep.sql pg_try_advisory_xact_lock",
            // Before the migration there is no table to lock.
            "MigrationLock.java pg_try_advisory_xact_lock");

    private static final Task<Integer> WORK = Task.of("work", Integer.class);

    @RegisterExtension
    final TestSchema db = new TestSchema();

    private final List<String> roles = new ArrayList<>();

    @AfterEach
    void drop() {
        for (String role : roles) {
            db.sql("drop owned by " + role).update();
            db.sql("drop role " + role).update();
        }
    }

    private String role(String inGuide) throws IOException, SQLException {
        String name = GuideRoles.create(db.dataSource(), db.schema(), inGuide);
        roles.add(name);
        return name;
    }

    @Test
    void thereAreNoOtherAdvisoryLocks() throws IOException {
        List<String> found = new ArrayList<>();
        try (Stream<Path> modules = Files.list(Path.of("..").toAbsolutePath().normalize())) {
            for (Path sources : modules.map(module -> module.resolve("src/main"))
                    .filter(Files::isDirectory)
                    .toList()) {
                try (Stream<Path> files = Files.walk(sources)) {
                    for (Path file : files.filter(path -> path.toString().endsWith(".sql")
                                    || path.toString().endsWith(".java"))
                            .toList()) {
                        ADVISORY_LOCK
                                .matcher(Files.readString(file))
                                .results()
                                .forEach(lock -> found.add(file.getFileName() + " " + lock.group()));
                    }
                }
            }
        }

        assertThat(found).isNotEmpty().isSubsetOf(ADVISORY_LOCKS);
    }

    /** Returns what these roles are allowed of the statement, with the name of each table in the place of {@code %s}. */
    private List<String> allowed(String statement, String... names) throws IOException, SQLException {
        List<String> tables = db.sql(
                        "select relname from pg_class where relnamespace = '{schema}'::regnamespace and relkind in ('r', 'p')")
                .query(String.class)
                .list();
        List<String> allowed = new ArrayList<>();
        try (Connection connection = db.dataSource().getConnection();
                Statement session = connection.createStatement()) {
            connection.setAutoCommit(false);
            for (String name : names) {
                session.execute("set role " + role(name));
                connection.commit();
                for (String table : tables) {
                    try {
                        session.execute(db.schema().in(statement.formatted("{schema}." + table)));
                        allowed.add(name + " " + table);
                    } catch (SQLException e) {
                        assertThat(e.getSQLState()).isEqualTo("42501");
                    }
                    connection.rollback();
                }
                session.execute("reset role");
                connection.commit();
            }
        }
        return allowed;
    }

    @Test
    void whoAddsOrLooksLocksNoTable() throws Exception {
        // Every lock that conflicts with a change, or with another of its kind, takes the same right.
        assertThat(allowed("lock table %s in share update exclusive mode", "adder", "viewer"))
                .isEmpty();
    }

    @Test
    void whoAddsOrLooksLocksNoRowsButThoseOfJobsWithKeys() throws Exception {
        db.scheduler().addJob(WORK, 1);
        // Nobody waits for a cancellation.
        assertThat(allowed("select from %s for key share", "adder", "viewer"))
                .containsExactlyInAnyOrder("adder _private_jobs", "adder pgworker_cancellations");
        try (Connection connection = db.dataSource().getConnection();
                Statement session = connection.createStatement()) {
            connection.setAutoCommit(false);
            session.execute("set local role " + roles.get(0));
            assertThat(session.executeQuery(db.schema().in("select from {schema}._private_jobs"))
                            .next())
                    .isTrue();
            assertThat(session.executeQuery(db.schema().in("select from {schema}._private_jobs for key share"))
                            .next())
                    .isFalse();
            connection.rollback();
        }
    }

    @Test
    void advisoryLocksOfStrangersHoldNothingUp() throws Exception {
        Job lost =
                db.scheduler().addJob(WORK, 1, JobSpec.builder().queueName("q").build());
        db.sql("select {schema}.worker_heartbeat('dead')").query().listOfRows();
        db.sql("update {schema}._private_workers set last_heartbeat_at = now() - interval '1 day'")
                .update();
        db.sql("select from " + ClaimSql.claim("'dead'", "1") + " c").query().listOfRows();
        RecordingListener events = new RecordingListener();
        try (Connection stranger = db.dataSource().getConnection();
                Statement session = stranger.createStatement()) {
            // All that were ever used, and that of Rust workers.
            for (String name : List.of("claims", "limits", "apply_limits", "limit_floors", "sample")) {
                session.execute("select pg_advisory_lock(hashtextextended('pgworker_" + name + " "
                        + db.schema().name() + "', 0))");
            }
            session.execute("select pg_advisory_lock(1196905043, 1398228304)");

            db.start(db.worker()
                    .listener(events)
                    .limits(List.of(Limit.concurrency("limit", 1, "work")))
                    .settings(WorkerSettings.builder()
                            .statistics(true)
                            .recovery(RecoverySettings.builder()
                                    .recoveryDelay(Duration.ZERO)
                                    .build())
                            .build())
                    .task(WORK, (number, context) -> {}));
            for (int i = 2; i <= 200; i++) {
                db.scheduler().addJob(WORK, i);
            }

            events.await(LimitApplied.class);
            events.await(WorkersRecovered.class);
            events.await(JobCompleted.class, done -> done.job().id() == lost.id());
            events.await(JobCompleted.class, 200);
            Awaitility.await()
                    .until(() -> db.sql("select count(*) from {schema}.pgworker_samples")
                                    .query(Long.class)
                                    .single()
                            > 0);
        }
    }
}
