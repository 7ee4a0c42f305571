package dev.pgworker.cli;

import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.Statement;
import java.util.Map;
import java.util.Properties;

import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.postgresql.Driver;

import dev.pgworker.testsupport.TestPostgres;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

/** How the database is found, and what is said where it cannot be used. */
class ConnectionTest {

    private static String url;
    private static String server;
    private static String database;
    private static String user;

    /** That of the URL, so that its roles log in with it wherever the server asks for one. */
    private static String password;

    private final TestTerminal terminal = new TestTerminal(url);

    @BeforeAll
    static void install() throws Exception {
        url = TestPostgres.newDatabase("cli");
        Properties parts = Driver.parseURL(url, null);
        server = parts.getProperty("PGHOST") + ":" + parts.getProperty("PGPORT");
        database = parts.getProperty("PGDBNAME");
        user = parts.getProperty("user");
        password = parts.getProperty("password", "x");
        assertThat(new TestTerminal(url).run("migrate")).isZero();
        try (Connection connection = DriverManager.getConnection(url);
                Statement statement = connection.createStatement()) {
            String nobody = database + "_nobody";
            String reader = database + "_reader";
            statement.execute("create role " + nobody + " login password '" + password
                    + "'; grant usage on schema graphile_worker to " + nobody);
            statement.execute("create role " + reader + " superuser login password '" + password + "'; alter role "
                    + reader + " set default_transaction_read_only = on");
            statement.execute("create schema old; create table old.migrations(id int, ts timestamptz, breaking bool);"
                    + " insert into old.migrations values (5, now(), true)");
            statement.execute(
                    "create schema newer; create table newer.migrations(id int, ts timestamptz, breaking bool);"
                            + " insert into newer.migrations values (99, now(), true)");
        }
    }

    private static Properties resolve(String url, Map<String, String> environment) {
        return new ConnectionProperties(environment).resolve(url, null, null, null);
    }

    @Test
    void readsAddressesOfNodeAndLibpq() {
        Properties all = resolve(
                "postgresql://us%40er@h1,[::1]:5433/d%2Fb?sslmode=no-verify&target_session_attrs=read-write&ssl=1",
                Map.of());
        assertThat(all)
                .containsEntry("user", "us@er")
                .containsEntry("PGHOST", "h1,[::1]")
                .containsEntry("PGPORT", "5432,5433")
                .containsEntry("PGDBNAME", "d/b")
                .containsEntry("sslmode", "require")
                .containsEntry("targetServerType", "primary")
                .containsEntry("ssl", "true")
                .containsEntry("ApplicationName", "worker-cli");
        assertThat(DatabaseAddress.url(all)).isEqualTo("jdbc:postgresql://h1:5432,[::1]:5433/d%2Fb");
        assertThat(DatabaseAddress.url(resolve("my_db", Map.of("PGHOST", "db", "PGPORT", "6000"))))
                .isEqualTo("jdbc:postgresql://db:6000/my_db");
        assertThat(DatabaseAddress.url(resolve("postgres:///my_db", Map.of())))
                .isEqualTo("jdbc:postgresql://localhost:5432/my_db");
        assertThat(DatabaseAddress.url(resolve("jdbc:postgresql://h:1/d?user=u", Map.of("PGUSER", "other"))))
                .isEqualTo("jdbc:postgresql://h:1/d");
    }

    @Test
    void readsVariablesInTheirOrder() {
        Map<String, String> spring = Map.of(
                "SPRING_DATASOURCE_URL", "jdbc:postgresql://spring/d",
                "SPRING_DATASOURCE_USERNAME", "app",
                "SPRING_DATASOURCE_PASSWORD", "geheim",
                "PGPASSWORD", "other");
        assertThat(resolve(null, spring))
                .containsEntry("PGHOST", "spring")
                .containsEntry("user", "app")
                .containsEntry("password", "geheim");
        assertThat(resolve(
                        null,
                        Map.of(
                                "DATABASE_URL",
                                "postgres://node/d",
                                "PGWORKER_URL",
                                "postgres://ours/d",
                                "PGHOST",
                                "pg")))
                .containsEntry("PGHOST", "ours");
        assertThat(resolve("postgres://option/d", Map.of("PGWORKER_URL", "postgres://ours:pw@h/d")))
                .containsEntry("PGHOST", "option")
                .doesNotContainKey("password");
        assertThat(resolve(null, Map.of("PGDATABASE", "d", "PGUSER", "u", "PGPASSWORD", "p", "PGSSLMODE", "require")))
                .containsEntry("PGDBNAME", "d")
                .containsEntry("user", "u")
                .containsEntry("password", "p")
                .containsEntry("sslmode", "require");
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "postgres://u:geheim@h/d",
                "postgres://u@h/d?password=geheim",
                "jdbc:postgresql://h/d?user=u&password=geheim",
                "jdbc:postgresql://h/d?sslpassword=geheim",
                "jdbc:mysql://h/geheim?x",
                "postgres://u:gehei%zm@geheim/d",
                "host=h password=geheim",
                "postgres://u@h:99999/d",
                "postgres://u@h/d?nonsense=geheim",
                "postgres://h/d?host=/tmp",
                "jdbc:postgresql://h:77777/d"
            })
    void refusesAddressesWithoutQuotingThem(String address) {
        assertThat(terminal.run("stats", "--url", address)).isEqualTo(ExitStatus.USAGE);
        assertThat(terminal.errors())
                .startsWith("Error: ")
                .doesNotContain("geheim")
                .doesNotContain("\tat ");
    }

    @Test
    void theDatabaseOfTheAddressIsUsed() {
        terminal.environment.clear();
        terminal.environment.put("PGPASSWORD", password);
        assertThat(terminal.run("validate", "-U", user, "-c", "postgres://" + server + "/" + database))
                .isZero();
        assertThat(terminal.run("validate", "-U", user, "-c", "postgres://" + server + "/nothing_there"))
                .isEqualTo(ExitStatus.CONNECTION);
        assertThat(terminal.errors()).contains("\"nothing_there\" does not exist");
    }

    @Test
    void takesThePasswordFromFileOrTerminal(@TempDir Path directory) throws Exception {
        ConnectionProperties properties = new ConnectionProperties(Map.of("PGPASSWORD", "variable"));
        Path file = Files.writeString(directory.resolve("password"), "file\n");
        assertThat(properties.resolve("d", "u", null, file))
                .containsEntry("password", "file")
                .containsEntry("user", "u");
        assertThat(properties.resolve("d", null, "asked".toCharArray(), file)).containsEntry("password", "asked");
        assertThatThrownBy(() -> properties.resolve("d", null, null, directory.resolve("none")))
                .hasMessageContaining("no such file");
        Path empty = Files.writeString(directory.resolve("empty"), "\n");
        assertThatThrownBy(() -> properties.resolve("d", null, null, empty)).hasMessageContaining("first line");

        assertThat(terminal.run("stats", "-W")).isEqualTo(ExitStatus.USAGE);
        assertThat(terminal.errors()).contains("--password needs a terminal");
        terminal.interactive = true;
        terminal.answers.add(password);
        assertThat(terminal.run("stats", "-W")).isZero();
        assertThat(terminal.questions).containsExactly("Password: ");
    }

    @Test
    void saysThatThereIsNoDatabase() {
        terminal.environment.clear();
        assertThat(terminal.run("stats")).isEqualTo(ExitStatus.USAGE);
        assertThat(terminal.errors()).contains("PGWORKER_URL");
        assertThat(terminal.run("stats", "-c", "postgres://u@localhost:1/d")).isEqualTo(ExitStatus.CONNECTION);
        assertThat(terminal.errors())
                .startsWith("Error: PostgreSQL cannot be reached. Connection to localhost:1 refused");
        assertThat(terminal.run("migrate", "-c", "postgres://u@localhost:1/d")).isEqualTo(ExitStatus.CONNECTION);
        assertThat(terminal.run("stats", "--verbose", "-c", "postgres://u@localhost:1/d"))
                .isEqualTo(ExitStatus.CONNECTION);
        assertThat(terminal.errors()).contains("\tat ");
        assertThat(terminal.run()).isEqualTo(ExitStatus.USAGE);
    }

    @Test
    void saysThatTheLoginWasRefused() {
        assertThat(terminal.run("stats", "-U", database + "_unknown")).isEqualTo(ExitStatus.CONNECTION);
        assertThat(terminal.errors()).contains("refused the login").contains("PGPASSWORD");
    }

    @Test
    void saysWhichPrivilegeIsMissing() {
        for (String command : new String[] {
            "stats",
            "list",
            "show 1",
            "add x",
            "retry 1",
            "complete 1 -y",
            "cleanup gc_job_queues -y",
            "validate",
            "workers",
            "queues",
            "recurring list",
            "sweep -y"
        }) {
            String[] args = (command + " --user " + database + "_nobody").split(" ");
            assertThat(terminal.run(args)).as(command).isEqualTo(ExitStatus.FAILED);
            assertThat(terminal.errors())
                    .as(command)
                    .startsWith("Error: A privilege is missing")
                    .contains("permission denied");
        }
    }

    @Test
    void saysThatTheServerIsReadOnly() {
        assertThat(terminal.run("add", "x", "-U", database + "_reader")).isEqualTo(ExitStatus.FAILED);
        assertThat(terminal.errors())
                .contains("is a standby, or this user's transactions are read-only (default_transaction_read_only)")
                .contains("target_session_attrs=read-write")
                .contains("targetServerType=primary")
                .contains("reset default_transaction_read_only");
        assertThat(terminal.run("list", "-U", database + "_reader")).isZero();
    }

    @Test
    void saysInOneLineWhatTheServerSaid() throws Exception {
        try (Connection connection = DriverManager.getConnection(url);
                Statement statement = connection.createStatement()) {
            statement.execute(
                    "insert into graphile_worker._private_workers values ('dead', now() - interval '1 hour')");
        }
        assertThat(terminal.run("sweep", "-y", "-U", database + "_reader")).isEqualTo(ExitStatus.FAILED);
        assertThat(terminal.errors()).contains("ERROR: cannot execute").doesNotContain("Where:", "SQL statement");
        assertThat(terminal.errors().lines()).as(terminal.errors()).hasSize(2);
        assertThat(terminal.run("sweep", "-y", "--verbose", "-U", database + "_reader"))
                .isEqualTo(ExitStatus.FAILED);
        assertThat(terminal.errors()).contains("Where: ", "SQL statement", "\tat ");
    }

    @Test
    void saysThatTheSchemaIsOfAnotherKind() {
        for (String command : new String[] {
            "stats", "list", "show 1", "add x", "retry 1", "cleanup gc_job_queues -y", "workers", "queues"
        }) {
            for (String schema : new String[] {"nothing", "old"}) {
                String[] args = (command + " -s " + schema).split(" ");
                assertThat(terminal.run(args)).as(command).isEqualTo(ExitStatus.SCHEMA);
                assertThat(terminal.errors())
                        .as(command)
                        .contains("not installed")
                        .contains("migrate")
                        .doesNotContain("pgworker.schema");
            }
        }
        for (String schema : new String[] {"old", "newer"}) {
            assertThat(terminal.run("migrate", "-s", schema)).isEqualTo(ExitStatus.SCHEMA);
            assertThat(terminal.errors()).contains("--schema").doesNotContain("pgworker.schema");
        }
        terminal.environment.put("GRAPHILE_WORKER_SCHEMA", "newer");
        assertThat(terminal.run("validate")).isEqualTo(ExitStatus.SCHEMA);
        terminal.environment.put("PGWORKER_SCHEMA", "graphile_worker");
        assertThat(terminal.run("validate")).isZero();
    }
}
