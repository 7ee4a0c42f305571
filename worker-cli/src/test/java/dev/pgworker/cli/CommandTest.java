package dev.pgworker.cli;

import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

import dev.pgworker.testsupport.TestPostgres;

import static org.assertj.core.api.Assertions.assertThat;

/** Every command on a real database, as its user sees it: what it writes, and with what status it ends. */
class CommandTest {

    private static String url;

    private final TestTerminal terminal = new TestTerminal(url);

    @TempDir
    Path directory;

    @BeforeAll
    static void install() {
        url = TestPostgres.newDatabase("cli");
        assertThat(new TestTerminal(url).run("migrate")).isZero();
    }

    @BeforeEach
    void empty() throws SQLException {
        sql("""
            truncate graphile_worker._private_jobs, graphile_worker._private_job_queues, graphile_worker._private_tasks,
              graphile_worker._private_workers, graphile_worker._private_known_crontabs,
              graphile_worker.pgworker_paused_crontabs, graphile_worker.pgworker_schedules,
              graphile_worker.pgworker_pauses restart identity
            """);
    }

    private static void sql(String sql) throws SQLException {
        try (Connection connection = DriverManager.getConnection(url);
                Statement statement = connection.createStatement()) {
            statement.execute(sql);
        }
    }

    private static String value(String sql) throws SQLException {
        try (Connection connection = DriverManager.getConnection(url);
                Statement statement = connection.createStatement();
                ResultSet row = statement.executeQuery(sql)) {
            row.next();
            return row.getString(1);
        }
    }

    private JsonNode json() {
        return new JsonMapper().readTree(terminal.output());
    }

    /** Adds a job and returns its id. */
    private String add(String... more) {
        String[] args = new String[more.length + 1];
        args[0] = "add";
        System.arraycopy(more, 0, args, 1, more.length);
        assertThat(terminal.run(args)).as(terminal.errors()).isZero();
        return terminal.output().strip();
    }

    @Test
    void migratesAndValidates() {
        assertThat(terminal.run("migrate", "-s", "fresh", "--peer-indexes", "always"))
                .isZero();
        assertThat(terminal.output()).startsWith("Schema fresh is up to date (version 1)");
        assertThat(terminal.run("--schema-only", "-s", "fresh")).isZero();
        assertThat(terminal.run("validate", "-s", "fresh", "-o", "json")).isZero();
        assertThat(json().get("schema").asString()).isEqualTo("fresh");
        assertThat(terminal.run("validate", "-s", "nothing")).isEqualTo(ExitStatus.SCHEMA);
        assertThat(terminal.errors())
                .startsWith("Error: Schema \"nothing\" is not installed.\nRun the command migrate");
    }

    @Test
    void addsAJobWithEverything() {
        String id = add(
                "mail",
                "--payload",
                "{\"n\": 1.10}",
                "--queue",
                "post",
                "--run-at",
                "2099-01-31T08:30+01:00",
                "--max-attempts",
                "3",
                "--priority",
                "-5",
                "--key",
                "k",
                "--key-mode",
                "preserve-run-at",
                "--flag",
                "a",
                "--flag",
                "b,c");

        assertThat(terminal.run("show", id, "-o", "json")).isZero();

        JsonNode job = json().get("jobs").get(0);
        assertThat(terminal.output()).contains("{\"n\": 1.10}");
        assertThat(job.get("task").asString()).isEqualTo("mail");
        assertThat(job.get("state").asString()).isEqualTo("scheduled");
        assertThat(job.get("queue").asString()).isEqualTo("post");
        assertThat(job.get("runAt").asString()).isEqualTo("2099-01-31T07:30:00Z");
        assertThat(job.get("maxAttempts").asInt()).isEqualTo(3);
        assertThat(job.get("priority").asInt()).isEqualTo(-5);
        assertThat(job.get("key").asString()).isEqualTo("k");
        assertThat(job.get("flags").toString()).isEqualTo("[\"a\",\"b,c\"]");
        assertThat(terminal.run("show", id)).isZero();
        assertThat(terminal.output()).contains("Queue:      post\n").contains("Flags:      a, b,c\n");
    }

    @Test
    void readsPayloadsFromFileAndStandardInput() throws Exception {
        Path file = Files.writeString(directory.resolve("payload"), "\ufeff{\"ä\": [1]}\n");
        add("mail", "--payload-file", file.toString());
        terminal.input("\"漢字\"");
        add("mail", "--payload-file", "-");
        terminal.input("1\n\n 2\r\n\"drei\"");
        assertThat(terminal.run("add", "lines", "--payload-file", "-", "--lines", "-o", "json"))
                .isZero();
        assertThat(json().get("count").asInt()).isEqualTo(3);
        assertThat(
                        value(
                                "select string_agg(btrim(payload::text, E' \\n\\r'), ',' order by id) from graphile_worker._private_jobs"))
                .isEqualTo("{\"ä\": [1]},\"漢字\",1,2,\"drei\"");

        assertThat(terminal.input("{}\n{\n{}").run("add", "lines", "--payload-file", "-", "--lines"))
                .isEqualTo(ExitStatus.USAGE);
        assertThat(terminal.errors()).contains("line 2, must be JSON");
        terminal.input = "\"\u00fc\"".getBytes(StandardCharsets.ISO_8859_1);
        assertThat(terminal.run("add", "lines", "--payload-file", "-")).isEqualTo(ExitStatus.USAGE);
        assertThat(terminal.run("add", "lines", "--payload-file", "-", "--lines"))
                .isEqualTo(ExitStatus.USAGE);
        assertThat(terminal.errors()).contains("not UTF-8");
        assertThat(value("select count(*) from graphile_worker._private_jobs")).isEqualTo("5");
    }

    @Test
    void listsPageByPage() {
        add("mail");
        add("mail", "--run-in", "1h");
        add("other");

        assertThat(terminal.run("list", "--task", "mail", "-n", "1")).isZero();
        assertThat(terminal.output()).startsWith("ID  TASK  STATE").contains(" 2  mail  scheduled");
        assertThat(terminal.errors()).contains("--after 2");
        assertThat(terminal.run("list", "--task", "mail", "--after", "2", "--ids"))
                .isZero();
        assertThat(terminal.output()).isEqualTo("1\n");
        assertThat(terminal.run("list", "--state", "READY", "-o", "json")).isZero();
        assertThat(json().get("jobs")).hasSize(2);
        assertThat(terminal.run("list", "--queue", "none", "--search", "none")).isZero();
        assertThat(terminal.output().lines()).hasSize(1);
    }

    @Test
    void changesJobsByTheirIds() throws Exception {
        String first = add("mail");
        String second = add("mail");

        assertThat(terminal.run("fail", first, "--reason", "wrong address", "-y"))
                .isZero();
        assertThat(value("select last_error from graphile_worker.jobs where attempts >= max_attempts"))
                .isEqualTo("wrong address");
        assertThat(terminal.run("retry", first, first)).isZero();
        assertThat(terminal.errors()).isEqualTo("Retried 1 job.\n");
        assertThat(terminal.run("retry", "--all", "-y")).isZero();
        assertThat(terminal.errors()).isEqualTo("Retried 0 jobs.\n");
        assertThat(terminal.run(
                        "reschedule",
                        second,
                        "--run-at",
                        "2099-01-01T00:00:00Z",
                        "--priority",
                        "-3",
                        "--max-attempts",
                        "7",
                        "--attempts",
                        "2"))
                .isZero();
        assertThat(value("select concat(priority, attempts, max_attempts) from graphile_worker.jobs where id = "
                        + second))
                .isEqualTo("-327");
        assertThat(terminal.run("complete", first, "99", "-y", "-o", "json")).isEqualTo(ExitStatus.NOT_FOUND);
        assertThat(json().toString())
                .isEqualTo("{\"count\":1,\"changed\":[1],\"unchanged\":[{\"id\":99,\"reason\":\"no such job\"}]}");
        sql("update graphile_worker._private_jobs set locked_at = now(), locked_by = 'w'");
        assertThat(terminal.run("complete", second, "-y")).isEqualTo(ExitStatus.NOT_FOUND);
        assertThat(terminal.errors()).contains("Not changed: 2 (running on w)");
    }

    @Test
    void changesManyJobs() throws Exception {
        terminal.input(
                IntStream.rangeClosed(1, 10_001).mapToObj(Integer::toString).collect(Collectors.joining("\n")));
        assertThat(terminal.run("add", "many", "--payload-file", "-", "--lines"))
                .isZero();
        add("other");

        terminal.interactive = true;
        terminal.answers.add("yes");
        assertThat(terminal.run("fail", "-")).isZero();
        assertThat(terminal.questions).containsExactly("Fail 10,001 jobs? [y/N] ");
        assertThat(terminal.errors()).contains("\rFail jobs: [###").endsWith("Failed 10,001 jobs.\n");
        terminal.answers.add("y");
        assertThat(terminal.run("retry", "--task", "many")).isZero();
        assertThat(terminal.questions).last().isEqualTo("Retry 10,001 jobs in state failed of task many? [y/N] ");
        terminal.interactive = false;
        assertThat(terminal.run("complete", "--state", "ready", "--task", "many", "-y", "-o", "json"))
                .isZero();
        assertThat(json().get("count").asInt()).isEqualTo(10_001);
        assertThat(terminal.errors()).isEmpty();
        assertThat(value("select count(*) from graphile_worker.jobs")).isEqualTo("1");
        assertThat(terminal.run("complete", "--task", "many", "-y")).isZero();
        assertThat(terminal.errors()).isEqualTo("Completed 0 jobs.\n");
    }

    @Test
    void removesByKey() {
        add("mail", "--key", "a");
        assertThat(terminal.run("remove", "a", "b", "-y")).isEqualTo(ExitStatus.NOT_FOUND);
        assertThat(terminal.errors()).isEqualTo("Removed job 1 of task mail.\nNo job with key b\n");
        assertThat(terminal.run("remove", "b", "-y", "-o", "json")).isEqualTo(ExitStatus.NOT_FOUND);
        assertThat(json().toString()).isEqualTo("{\"count\":0,\"removed\":[],\"unknown\":[\"b\"]}");
    }

    @Test
    void cancelsByKeyIdAndByWhatJobsAre() throws Exception {
        add("mail", "--key", "a");
        assertThat(terminal.run("cancel", "a", "b", "-y")).isEqualTo(ExitStatus.NOT_FOUND);
        assertThat(terminal.errors()).isEqualTo("1 job was waiting, and is removed.\nNo job with key b\n");
        String running = add("mail");
        value(
                "update graphile_worker._private_jobs set locked_at = now(), locked_by = 'pool-1', attempts = 1 returning id");

        assertThat(terminal.run("cancel", "--id", running + ",99", "-y", "-o", "json"))
                .isEqualTo(ExitStatus.NOT_FOUND);
        assertThat(json().get("count").asInt()).isEqualTo(1);
        assertThat(json().get("cancellations").get(0).get("state").asString()).isEqualTo("marked");
        assertThat(json().get("cancellations").get(1).get("state").asString()).isEqualTo("gone");
        assertThat(terminal.run("cancel", "--id", running, "--wait", "50ms", "-y"))
                .isEqualTo(ExitStatus.FAILED);
        value("delete from graphile_worker._private_jobs where id = " + running + " returning id");
        String waiting = add("mail", "--run-at", "2099-01-01T00:00:00Z");
        terminal.interactive = true;
        terminal.answers.add("yes");
        assertThat(terminal.run("cancel", "--task", "mail", "--wait", "1s")).isZero();
        assertThat(terminal.questions).containsExactly("Cancel 1 job of task mail? [y/N] ");
        assertThat(terminal.run("show", waiting)).isEqualTo(ExitStatus.NOT_FOUND);
        assertThat(terminal.run("cancel", "--task", "mail", "-y")).isZero();
        assertThat(terminal.errors()).isEqualTo("No job matches.\n");
    }

    @Test
    void removesByIdAndByWhatJobsAre() throws Exception {
        String first = add("mail", "--flag", "old");
        String second = add("mail", "--run-at", "2099-01-01T00:00:00Z");
        String third = add("mail");

        assertThat(terminal.run("remove", "--id", first + "," + "99", "-y")).isEqualTo(ExitStatus.NOT_FOUND);
        assertThat(terminal.errors()).startsWith("Removed 1 job.\nNot changed: 99 (no such job)");
        terminal.interactive = true;
        terminal.answers.add("no");
        assertThat(terminal.run("remove", "--from", "2098-01-01T00:00:00Z")).isEqualTo(ExitStatus.NOT_CONFIRMED);
        assertThat(terminal.questions).containsExactly("Remove 1 job due from 2098-01-01T00:00:00Z? [y/N] ");
        terminal.interactive = false;
        assertThat(terminal.run("remove", "--from", "2098-01-01T00:00:00Z", "-y", "-o", "json"))
                .isZero();
        assertThat(json().toString()).isEqualTo("{\"count\":1}");
        assertThat(value("select string_agg(id::text, ',') from graphile_worker.jobs"))
                .isEqualTo(third);
        assertThat(terminal.run("show", second)).isEqualTo(ExitStatus.NOT_FOUND);
        terminal.input(third);
        assertThat(terminal.run("remove", "--id", "-", "-y")).isZero();
        assertThat(value("select count(*) from graphile_worker.jobs")).isEqualTo("0");
    }

    @Test
    void listsSortedAndBounded() throws Exception {
        add("mail", "--key", "a", "--flag", "vip", "--priority", "5");
        add("mail", "--priority", "-5");

        assertThat(terminal.run("list", "--ids", "--key", "a")).isZero();
        assertThat(terminal.output()).isEqualTo("1\n");
        assertThat(terminal.run("list", "--ids", "--flag", "vip")).isZero();
        assertThat(terminal.output()).isEqualTo("1\n");
        assertThat(terminal.run("list", "--ids", "--search", "{}")).isZero();
        assertThat(terminal.output()).isEqualTo("2\n1\n");
        assertThat(terminal.run("list", "--ids", "--sort", "priority", "-n", "1"))
                .isZero();
        assertThat(terminal.output()).isEqualTo("2\n");
        assertThat(terminal.errors()).isEqualTo("There are more: --after 1\n");
        assertThat(terminal.run("list", "--ids", "--task", "none", "--scan-limit", "1"))
                .isZero();
        assertThat(terminal.errors()).isEqualTo("Read as many jobs as it may; continue with --after 2\n");
        assertThat(terminal.run("list", "--sort", "updated", "--scan-limit", "1", "-o", "json"))
                .isZero();
        assertThat(json().get("limited").asBoolean()).isTrue();
        assertThat(json().get("jobs").get(0).get("payload").toString()).isEqualTo("{}");
    }

    @Test
    void showsWhyAJobWaitsAndHowFarItIs() throws Exception {
        String id = add("mail");
        assertThat(terminal.run("show", id)).isZero();
        assertThat(terminal.output()).contains("Waits:      No live worker serves task \"mail\";");
        sql("update graphile_worker._private_jobs set locked_at = now() - interval '3 min', locked_by = 'w'");
        sql(
                "insert into graphile_worker.pgworker_running (worker_id, job_id, locked_at, started_at, done, total, text, updated_at)"
                        + " select 'w', id, locked_at, locked_at, 3, 10, 'importing', now() from graphile_worker._private_jobs");
        assertThat(terminal.run("show", id)).isZero();
        assertThat(terminal.output())
                .contains("Waits:      Worker w has been running it for 3 min.")
                .contains("Progress:   3 of 10, importing");
        assertThat(terminal.run("show", id, "-o", "json")).isZero();
        assertThat(json().get("jobs").get(0).get("wait").get("reason").asString())
                .isEqualTo("runs");
        assertThat(json().get("jobs").get(0).get("running").get("done").asInt()).isEqualTo(3);
    }

    @Test
    void tellsTheHistory() {
        assertThat(terminal.run("history")).isZero();
        assertThat(terminal.output()).startsWith("JOB  TASK  OUTCOME");
        assertThat(terminal.errors()).contains("No history is kept: set pgworker.history.enabled");
        assertThat(terminal.run("history", "4711", "-o", "json")).isZero();
        assertThat(json().toString()).isEqualTo("{\"entries\":[]}");
        assertThat(terminal.run(
                        "history",
                        "--outcome",
                        "failed",
                        "--task",
                        "mail",
                        "--from",
                        "now",
                        "--to",
                        "now",
                        "--search",
                        "x"))
                .isZero();
    }

    @Test
    void asksBeforeWhatCannotBeTakenBack() throws Exception {
        add("mail", "--key", "a");
        for (String command : new String[] {
            "complete 1",
            "fail 1",
            "remove a",
            "cancel a",
            "cleanup gc_job_queues",
            "force-unlock w",
            "sweep",
            "retry --all --state ready"
        }) {
            terminal.interactive = false;
            assertThat(terminal.run(command.split(" "))).as(command).isEqualTo(ExitStatus.NOT_CONFIRMED);
            assertThat(terminal.errors()).as(command).contains("--yes").contains("Nothing was done");
            terminal.interactive = true;
            terminal.answers.add("no");
            assertThat(terminal.run(command.split(" "))).as(command).isEqualTo(ExitStatus.NOT_CONFIRMED);
            assertThat(terminal.run(command.split(" ")))
                    .as(command + ", end of input")
                    .isEqualTo(ExitStatus.NOT_CONFIRMED);
        }
        assertThat(value("select attempts from graphile_worker.jobs")).isEqualTo("0");
    }

    @Test
    void cleansUp() throws SQLException {
        String id = add("gone", "--queue", "gone");
        terminal.run("fail", id, "-y");
        assertThat(terminal.run("cleanup", "delete-permafailed-jobs,GC_JOB_QUEUES", "-y"))
                .isZero();
        assertThat(terminal.output())
                .contains("delete_permafailed_jobs        1")
                .contains("gc_job_queues                  1");
        assertThat(terminal.run("cleanup", "-y")).isEqualTo(ExitStatus.USAGE);
        assertThat(terminal.errors())
                .contains("TASK is missing; give one or more of gc_task_identifiers, gc_job_queues,");
        assertThat(value("select count(*) from graphile_worker._private_tasks")).isEqualTo("1");
        assertThat(terminal.run("cleanup", "gc_task_identifiers", "-y", "-o", "json"))
                .isZero();
        assertThat(json().get("deleted").get("gc_task_identifiers").asInt()).isEqualTo(1);
        assertThat(terminal.run("cleanup", "rubbish", "-y")).isEqualTo(ExitStatus.USAGE);
        assertThat(terminal.errors()).contains("'rubbish' must be one of gc_task_identifiers");
    }

    @Test
    void cleanupThatIsInTheWayOfOthersFails() throws Exception {
        sql("insert into graphile_worker._private_job_queues (queue_name) values ('unused')");
        try (Connection other = DriverManager.getConnection(url)) {
            other.setAutoCommit(false);
            other.createStatement().execute("lock table graphile_worker._private_job_queues in row exclusive mode");
            assertThat(terminal.run("cleanup", "gc_job_queues", "-y")).isEqualTo(ExitStatus.FAILED);
        }
        assertThat(terminal.errors()).contains("Try again later");
    }

    @Test
    void recoversDeadWorkers() throws Exception {
        add("mail", "--queue", "q");
        sql(
                "insert into graphile_worker._private_workers values ('dead', now() - interval '1 hour', now(), '{\"pid\": 7}')");
        sql(
                "update graphile_worker._private_jobs set locked_at = now() - interval '1 hour', locked_by = 'dead', attempts = 1");

        assertThat(terminal.run("workers")).isZero();
        assertThat(terminal.output()).containsPattern("dead .* 1  stale");
        assertThat(terminal.run("workers", "--stale-after", "2h", "-o", "json")).isZero();
        assertThat(json().get("workers").get(0).get("stale").asBoolean()).isFalse();
        assertThat(json().get("workers").get(0).get("metadata").get("pid").asInt())
                .isEqualTo(7);
        assertThat(terminal.run("sweep", "--dry-run")).isZero();
        assertThat(terminal.output()).isEqualTo("dead\n");
        assertThat(terminal.run("sweep", "--threshold", "30m", "--recovery-delay", "0s", "-y", "-o", "json"))
                .isZero();
        assertThat(json().get("recoveredJobs").asInt()).isEqualTo(1);
    }

    @Test
    void sweepLeavesWorkersAloneThatHaveJustSentAHeartbeat() throws Exception {
        sql("insert into graphile_worker._private_workers values ('alive', now() - interval '10 seconds', now())");
        assertThat(terminal.run("sweep", "--threshold", "1ms", "--yes")).isEqualTo(ExitStatus.USAGE);
        assertThat(terminal.run("sweep", "--threshold", "1m", "--yes")).isZero();
        assertThat(value("select count(*) from graphile_worker._private_workers"))
                .isEqualTo("1");
    }

    @Test
    void sweepTellsItsResultOnce() throws Exception {
        sql("insert into graphile_worker._private_workers values ('dead', now() - interval '1 hour', now())");
        ByteArrayOutputStream log = new ByteArrayOutputStream();
        PrintStream before = System.err;
        System.setErr(new PrintStream(log, true, StandardCharsets.UTF_8));
        try {
            assertThat(terminal.run("sweep", "--yes")).isZero();
        } finally {
            System.setErr(before);
        }
        assertThat(terminal.output()).isEqualTo("dead\n");
        assertThat(terminal.errors()).isEqualTo("1 dead worker, 0 jobs recovered.\n");
        assertThat(log.toString(StandardCharsets.UTF_8)).doesNotContain("are dead");
    }

    @Test
    void unlocksWhatWorkersHold() throws Exception {
        add("mail", "--queue", "q");
        add("mail");
        sql("update graphile_worker._private_jobs set locked_at = now(), locked_by = 'node', attempts = 1");
        sql("update graphile_worker._private_job_queues set locked_at = now(), locked_by = 'node'");
        sql(
                "insert into graphile_worker._private_job_queues (queue_name, locked_at, locked_by) values ('r', now(), 'idle')");
        sql("insert into graphile_worker._private_workers values ('registered', now(), now())");

        assertThat(terminal.run("force-unlock", "node", "node", "-y")).isZero();
        assertThat(terminal.errors()).isEqualTo("Unlocked what 1 worker held: 2 jobs, 1 queue.\n");
        assertThat(value("select count(*) from graphile_worker.jobs where locked_by is not null"))
                .isEqualTo("0");
        assertThat(terminal.run("force-unlock", "registered", "-y")).isZero();
        assertThat(terminal.errors()).isEqualTo("Unlocked what 1 worker held: 0 jobs, 0 queues.\n");
        assertThat(terminal.run("force-unlock", "typo", "-y")).isEqualTo(ExitStatus.NOT_FOUND);
        assertThat(terminal.errors())
                .isEqualTo("No job or queue is held by typo, and no worker of that id is registered\n");
        assertThat(terminal.run("force-unlock", "idle", "typo", "-y", "-o", "json"))
                .isEqualTo(ExitStatus.NOT_FOUND);
        assertThat(json().toString())
                .isEqualTo("{\"unlocked\":[\"idle\"],\"jobs\":0,\"queues\":1,\"unknown\":[\"typo\"]}");
        assertThat(value("select count(*) from graphile_worker._private_job_queues where locked_by is not null"))
                .isEqualTo("0");
    }

    @Test
    void tellsHowManyJobsThereAre() {
        add("mail", "--queue", "q1");
        add("mail", "--queue", "q2");
        add("mail", "--run-in", "1d");

        assertThat(terminal.run("stats")).isZero();
        assertThat(terminal.output()).startsWith("READY  SCHEDULED").containsPattern("\n    2          1 +0");
        assertThat(terminal.run("stats", "-o", "json")).isZero();
        assertThat(json().get("oldestDueSeconds").asDouble()).isPositive();
        assertThat(terminal.run("stats", "--queue", "q1", "-o", "json")).isZero();
        assertThat(json().get("total").asInt()).isEqualTo(1);
        assertThat(terminal.run("stats", "--exact")).isZero();
        assertThat(terminal.output()).contains("RUNNING");
        assertThat(terminal.run("queues", "-n", "1")).isZero();
        assertThat(terminal.output()).contains("q1           1");
        assertThat(terminal.errors()).contains("--after q1");
        assertThat(terminal.run("queues", "--after", "q1", "-o", "json")).isZero();
        assertThat(json().get("queues").get(0).get("name").asString()).isEqualTo("q2");
    }

    @Test
    void watches() {
        add("mail");
        assertThat(terminal.run("watch", "--count", "2", "-i", "100ms")).isZero();
        assertThat(terminal.output().lines()).hasSize(3);
        assertThat(terminal.run("watch", "--count", "2", "-i", "100ms", "-o", "json"))
                .isZero();
        assertThat(terminal.output().lines()).hasSize(2).allMatch(line -> line.contains("\"ready\":1"));
        terminal.interactive = true;
        terminal.width = 30;
        assertThat(terminal.run("watch", "--count", "2", "-i", "100ms")).isZero();
        assertThat(terminal.output()).contains("\u001b[H").contains("READY");
        assertThat(terminal.output().replaceAll("\u001b\\[.", "").lines()).allMatch(line -> line.length() <= 30);
        assertThat(terminal.run("watch", "-i", "1ms")).isEqualTo(ExitStatus.USAGE);
        assertThat(terminal.run("watch", "--count", "0")).isEqualTo(ExitStatus.USAGE);
        terminal.broken = new CommandFailure(ExitStatus.BROKEN_PIPE, "Broken pipe");
        assertThat(terminal.run("watch", "-i", "100ms")).isEqualTo(ExitStatus.BROKEN_PIPE);
        assertThat(terminal.errors()).isEmpty();
    }

    @Test
    void checksCrontabs() throws Exception {
        Path file = Files.writeString(
                directory.resolve("crontab"), "0 8 * * * remind ?tz=Europe/Berlin\n5 4 29 2 * leap\n");
        terminal.environment.clear();
        assertThat(terminal.run("crontab", "check", file.toString(), "--from", "2026-01-01T00:00:00Z", "--runs", "2"))
                .isZero();
        assertThat(terminal.output()).isEqualTo("""
                ITEM    TASK    SCHEDULE    ZONE           NEXT RUNS
                remind  remind  0 8 * * *   Europe/Berlin  2026-01-01T07:00:00Z
                                                           2026-01-02T07:00:00Z
                leap    leap    5 4 29 2 *  UTC            2028-02-29T04:05:00Z
                                                           2032-02-29T04:05:00Z
                """);
        assertThat(terminal.run("crontab", "check", file.toString(), "--strict"))
                .isEqualTo(ExitStatus.FAILED);
        assertThat(terminal.errors()).contains(":1:19: \"tz=Europe/Berlin\"");
        terminal.input("99 * * * * x\n");
        assertThat(terminal.run("crontab", "check", "-", "-o", "json")).isEqualTo(ExitStatus.FAILED);
        assertThat(json().get("problems").get(0).get("line").asInt()).isEqualTo(1);
        terminal.input("5 4 31 2 * never\n");
        assertThat(terminal.run("crontab", "check", "-")).isEqualTo(ExitStatus.FAILED);
        assertThat(terminal.errors()).contains("standard input:1:5: \"31\": day of month", "never be due");
        terminal.input("* * * * * x\n");
        assertThat(terminal.run("crontab", "check", "-", "-o", "json", "--zone", "Asia/Tokyo"))
                .isZero();
        assertThat(json().get("items").get(0).get("zone").asString()).isEqualTo("Asia/Tokyo");
        assertThat(terminal.run("crontab", "check", "-", "--zone", "Berlin")).isEqualTo(ExitStatus.USAGE);
        assertThat(terminal.run("crontab", "check", "-", "--runs", "-1")).isEqualTo(ExitStatus.USAGE);
        assertThat(terminal.run("crontab", "check", directory.resolve("none").toString()))
                .isEqualTo(ExitStatus.USAGE);
        assertThat(terminal.run("crontab")).isEqualTo(ExitStatus.USAGE);
    }

    @Test
    void pausesRecurringJobs() throws Exception {
        sql("insert into graphile_worker._private_known_crontabs values ('rollup', now(), now())");
        assertThat(terminal.run("recurring", "pause", "rollup", "none")).isEqualTo(ExitStatus.NOT_FOUND);
        assertThat(terminal.errors()).isEqualTo("rollup paused\nNo recurring job none\n");
        assertThat(terminal.run("recurring", "list", "-o", "json")).isZero();
        assertThat(json().get("recurring").get(0).get("pausedSince").asString()).isNotEmpty();
        assertThat(terminal.run("recurring", "resume", "rollup")).isZero();
        assertThat(terminal.run("recurring", "resume", "rollup", "-o", "json")).isZero();
        assertThat(terminal.errors()).isEqualTo("rollup was not paused\n");
        assertThat(terminal.run("recurring", "list")).isZero();
        assertThat(terminal.output()).contains("rollup");
        assertThat(terminal.run("recurring", "trigger", "rollup")).isEqualTo(ExitStatus.USAGE);
        assertThat(terminal.errors()).contains("rollup is an item of a crontab");
        assertThat(terminal.run("recurring", "delete", "rollup", "--yes")).isZero();
        assertThat(terminal.errors()).isEqualTo("rollup deleted\n");
        assertThat(terminal.run("recurring", "delete", "rollup", "--yes")).isEqualTo(ExitStatus.NOT_FOUND);
    }

    @Test
    void pausesAndResumes() throws Exception {
        assertThat(terminal.run("pause", "--task", "a", "--task", "b\nc", "--queue", "q", "--reason", "tests"))
                .isZero();
        assertThat(terminal.errors()).isEqualTo("task \"a\" paused\ntask \"b\\nc\" paused\nqueue \"q\" paused\n");
        assertThat(terminal.run("pause", "--task", "a", "--everything", "-o", "json"))
                .isZero();
        assertThat(json().get("changed").get(0).asString()).isEqualTo("everything");
        assertThat(terminal.errors()).isEqualTo("task \"a\" was paused already\neverything paused\n");
        assertThat(terminal.run("pauses", "-o", "json")).isZero();
        assertThat(json().get("pauses").size()).isEqualTo(4);
        assertThat(json().get("pauses").get(1).get("by").asString()).isEqualTo(System.getProperty("user.name"));
        assertThat(terminal.run("pauses")).isZero();
        assertThat(terminal.output()).contains("queue", "task", "everything", "tests");
        assertThat(terminal.run("queues")).isZero();
        assertThat(terminal.output()).contains("PAUSED SINCE");
        assertThat(terminal.run("resume", "--everything", "--queue", "q", "--queue", "none"))
                .isZero();
        assertThat(terminal.errors())
                .isEqualTo("queue \"q\" resumed\nqueue \"none\" was not paused\neverything resumed\n");
        assertThat(value("select count(*) from graphile_worker.pgworker_pauses"))
                .isEqualTo("2");
        for (String[] wrong :
                new String[][] {{"pause"}, {"resume"}, {"pause", "--task", ""}, {"pause", "--queue", "x".repeat(129)}
                }) {
            assertThat(terminal.run(wrong)).as(String.join(" ", wrong)).isEqualTo(ExitStatus.USAGE);
        }
    }

    @Test
    void administersLimits() throws Exception {
        assertThat(terminal.run(
                        "limits",
                        "put",
                        "mail",
                        "--task",
                        "mail",
                        "--task",
                        "fax",
                        "--max-running",
                        "3",
                        "--per",
                        "tenant"))
                .isZero();
        assertThat(terminal.errors()).isEqualTo("Limit mail: 3 running per tenant, applying\n");
        assertThat(terminal.run(
                        "limits",
                        "put",
                        "calls",
                        "--task",
                        "call",
                        "--max-starts",
                        "600",
                        "--period",
                        "1m",
                        "--burst",
                        "20",
                        "-o",
                        "json"))
                .isZero();
        assertThat(json().get("period").asString()).isEqualTo("PT1M");
        assertThat(terminal.run(
                        "limits",
                        "put",
                        "turns",
                        "--task",
                        "turn",
                        "--per",
                        "tenant",
                        "--weights",
                        "acme=3,globex=0.5"))
                .isZero();
        assertThat(terminal.errors()).isEqualTo("Limit turns: fair shares per tenant, acme 3, globex 0.5, applying\n");
        assertThat(terminal.run("limits", "show", "turns", "-o", "json")).isZero();
        assertThat(json().get("weights").get("acme").asInt()).isEqualTo(3);
        assertThat(terminal.run("limits", "put", "turns", "--task", "turn", "--per", "tenant", "--weights"))
                .isZero();
        assertThat(terminal.errors()).isEqualTo("Limit turns: fair shares per tenant, applying\n");
        assertThat(terminal.run("limits", "list", "-o", "json")).isZero();
        assertThat(json().get("limits").get(1).get("tasks").get(0).asString()).isEqualTo("fax");
        assertThat(terminal.run("limits", "list")).isZero();
        assertThat(terminal.output()).contains("600 starts in PT1M, burst 20", "3 running per tenant");
        assertThat(terminal.run("limits", "show", "mail", "-o", "json")).isZero();
        assertThat(json().get("values").size()).isZero();
        assertThat(terminal.run("limits", "show", "none")).isEqualTo(ExitStatus.NOT_FOUND);
        for (String[] wrong : new String[][] {
            {"limits", "put", "x", "--task", "a"},
            {"limits", "put", "x", "--task", "a", "--max-running", "0"},
            {"limits", "put", "x", "--task", "a", "--max-running", "1", "--period", "1m"},
            {"limits", "put", "x", "--task", "a", "--max-running", "1", "--burst", "1"},
            {"limits", "put", "x", "--task", "a", "--max-starts", "1"},
            {"limits", "put", "x", "--max-running", "1"},
            {"limits", "put", "x", "--task", "a", "--weights", "acme=3"},
            {"limits", "put", "x", "--task", "a", "--per", "t", "--weights", "acme=0"},
            {"limits", "show", "mail", "-n", "0"}
        }) {
            assertThat(terminal.run(wrong)).as(String.join(" ", wrong)).isEqualTo(ExitStatus.USAGE);
        }
        assertThat(terminal.run("limits", "delete", "mail", "none", "--yes")).isEqualTo(ExitStatus.NOT_FOUND);
        assertThat(terminal.errors()).isEqualTo("mail deleted\nNo limit none\n");
        sql("truncate graphile_worker.pgworker_limits, graphile_worker.pgworker_limited_tasks cascade");
    }

    @Test
    void administersSchedules() throws Exception {
        sql(
                "select graphile_worker.pgworker_put_schedule('report/a', 'report', cron => '0 30 4 * * *', zone => 'Asia/Tokyo')");
        sql(
                "select graphile_worker.pgworker_put_schedule('b', 'other', fixed_rate => '90 minutes', origin => '2026-01-01T00:00:00Z', overlap => 'skip')");
        assertThat(terminal.run("recurring", "list", "-o", "json")).isZero();
        assertThat(json().get("recurring").get(0).get("id").asString()).isEqualTo("b");
        assertThat(json().get("recurring").get(0).get("every").asString()).isEqualTo("PT1H30M");
        assertThat(json().get("recurring").get(0).get("origin").asString()).isEqualTo("database");
        assertThat(json().get("recurring").get(0).get("rateOrigin").asString()).isEqualTo("2026-01-01T00:00:00Z");
        assertThat(terminal.run("recurring", "list", "--prefix", "report/")).isZero();
        assertThat(terminal.output()).contains("0 30 4 * * * Asia/Tokyo").doesNotContain("other");
        assertThat(terminal.run("recurring", "list", "-n", "1")).isZero();
        assertThat(terminal.errors()).isEqualTo("There may be more: --after b\n");
        assertThat(terminal.run("recurring", "list", "--origin", "crontab,declared"))
                .isZero();
        assertThat(terminal.output()).doesNotContain("report/a");
        assertThat(terminal.run("recurring", "list", "--origin", "mars")).isEqualTo(ExitStatus.USAGE);
        assertThat(terminal.run("recurring", "list", "-n", "0")).isEqualTo(ExitStatus.USAGE);

        assertThat(terminal.run("recurring", "show", "report/a", "--runs", "3", "-o", "json"))
                .isZero();
        assertThat(json().get("nextRuns").size()).isEqualTo(3);
        assertThat(terminal.run("recurring", "show", "b")).isZero();
        assertThat(terminal.output()).contains("fixed_rate", "nextRuns");
        assertThat(terminal.run("recurring", "show", "none")).isEqualTo(ExitStatus.NOT_FOUND);
        assertThat(terminal.run("recurring", "show", "b", "--runs", "1001")).isEqualTo(ExitStatus.USAGE);

        assertThat(terminal.run("recurring", "pause", "b", "none")).isEqualTo(ExitStatus.NOT_FOUND);
        assertThat(terminal.errors()).isEqualTo("b paused\nNo recurring job none\n");
        assertThat(terminal.run("recurring", "list", "--paused", "-o", "json")).isZero();
        assertThat(json().get("recurring").get(0).get("pausedBy").asString())
                .isEqualTo(System.getProperty("user.name"));
        assertThat(terminal.run("recurring", "list", "--no-paused", "-o", "json"))
                .isZero();
        assertThat(json().get("recurring").get(0).get("id").asString()).isEqualTo("report/a");
        assertThat(terminal.run("recurring", "resume", "b")).isZero();
        assertThat(terminal.run("recurring", "pause", "b", "")).isEqualTo(ExitStatus.USAGE);
        assertThat(terminal.errors()).isEqualTo("Error: id must not be empty\n");
        assertThat(terminal.run("recurring", "resume", "b", "-o", "json")).isZero();
        assertThat(terminal.errors()).isEqualTo("b was not paused\n");

        assertThat(terminal.run("recurring", "trigger", "b", "--payload", "{\"n\": 1.10, \"m\": 1e999}", "-o", "json"))
                .as(terminal.errors())
                .isZero();
        assertThat(json().get("payload").get("n").asInt()).isEqualTo(1);
        assertThat(json().get("payload").get("_cron").get("schedule").asString())
                .isEqualTo("b");
        assertThat(terminal.output()).as("every digit").contains("\"n\":1.10,\"m\":1E+999");
        assertThat(terminal.run("recurring", "trigger", "b", "--payload", "[1]"))
                .isEqualTo(ExitStatus.USAGE);
        assertThat(terminal.run("recurring", "trigger", "none")).isEqualTo(ExitStatus.NOT_FOUND);

        assertThat(terminal.run("recurring", "delete", "b")).isEqualTo(ExitStatus.NOT_CONFIRMED);
        assertThat(terminal.run("recurring", "delete", "b", "--yes")).isZero();
        assertThat(value("select count(*) from graphile_worker.pgworker_schedules"))
                .isEqualTo("1");
        assertThat(terminal.run("recurring")).isEqualTo(ExitStatus.USAGE);
    }

    @Test
    void forgetsRecurringJobs() throws Exception {
        sql("insert into graphile_worker._private_known_crontabs values ('gone', now(), now()), ('kept', now(), null)");
        assertThat(terminal.run("recurring", "delete", "gone", "none", "--yes")).isEqualTo(ExitStatus.NOT_FOUND);
        assertThat(terminal.errors()).isEqualTo("gone deleted\nNo recurring job none\n");
        assertThat(terminal.run("recurring", "list")).isZero();
        assertThat(terminal.output()).contains("kept").doesNotContain("gone");
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '`',
            value = {
                "add | Missing required parameter: 'TASK'",
                "add x --payload | --payload",
                "add x --payload {} --payload-file y | cannot be combined",
                "add x --payload nonsense | --payload must be JSON",
                "add x --payload {}{} | must be one JSON value",
                "add x --payload 1e | --payload must be JSON",
                "add x --payload NaN | --payload must be JSON: Non-standard token 'NaN' (column",
                "add x --payload \"\\u12\" | --payload must be JSON",
                "add x --payload-file /nowhere | there is no such file",
                "add x --lines | --lines needs --payload-file",
                "add x --lines --payload-file - --key k | --key",
                "add x --key-mode replace | --key-mode needs --key",
                "add x --key k --key-mode wrong | must be one of replace, preserve_run_at, unsafe_dedupe",
                "add x --max-attempts 0 | --max-attempts must be between 1 and 32767, but is 0",
                "add x --priority 40000 | --priority must be between -32768 and 32767, but is 40000",
                "add x --priority high | 'high' must be a whole number",
                "add x --run-at tomorrow | with its offset",
                "add x --run-at infinity | with its offset",
                "add x --run-at +999999-01-01T00:00:00Z | The time of --run-at or --run-in must lie between",
                "add x --run-in 5 | duration with units",
                "add x --run-in 99999999999999999999h | duration with units",
                "add x --run-in 5m --run-at now | cannot be combined",
                "add x --quue y | Did you mean: --queue",
                "show 0 | ID must be a whole number from 1 to 9223372036854775807",
                "show 9223372036854775808 | ID must be a whole number",
                "list --state wrong | must be one of ready, scheduled, retrying, limited, running, failed",
                "list --limit 1001 | --limit must be between 1 and 1000",
                "list --after x | Invalid value for option '--after': 'x' must be a whole number from 1 to 9223372036854775807",
                "list --after 0 | Invalid value for option '--after': '0' must be a whole number from 1 to 9223372036854775807",
                "queues --limit 0 | --limit must be between 1 and 1000",
                "retry | ID is missing",
                "retry 1 --all | cannot be combined",
                "remove | Give either KEY, --id, filters (--state,",
                "remove a --all | Give either KEY",
                "remove --id 1 --task x | Give either KEY",
                "remove --id x -y | ID must be a whole number",
                "remove --state running --yes | --state must not be running",
                "cancel | Give either KEY, --id, filters (--state,",
                "cancel a --id 1 | Give either KEY",
                "cancel a --wait 2d | --wait must be at most 1d",
                "cancel a --wait soon | must be a duration with units",
                "list --sort random | must be one of newest, oldest, run_at, updated, priority, attempts",
                "list --scan-limit 0 | --scan-limit must be between 1 and 1000000",
                "list --from yesterday | must be a time with its offset",
                "history x | must be a whole number",
                "history --outcome lost | must be one of succeeded, retried, failed, removed, cancelled, recovered",
                "complete --state running --yes | --state must not be running",
                "reschedule 1 | One of --run-at",
                "sweep --threshold 0s | --threshold must be at least 1m, but is 0s",
                "sweep --threshold 1ms --yes | longer than the heartbeat interval of every worker (30s by default)",
                "sweep --threshold 59999ms --dry-run | --threshold must be at least 1m, but is 59s",
                "migrate --peer-indexes maybe | must be one of auto, always, never",
                "stats --output xml | must be one of table, json",
                "stats --schema pg_x | --schema: schema name",
                "lst | Did you mean: worker-cli list",
                "list --taks x | Did you mean: --task",
                "frobnicate | See: worker-cli --help"
            })
    void saysWhichOptionIsWrong(String command, String message) {
        assertThat(terminal.run(command.split(" "))).as(terminal.errors()).isEqualTo(ExitStatus.USAGE);
        assertThat(terminal.errors())
                .startsWith("Error: ")
                .contains(message)
                .doesNotContain("\tat ", "dev.pgworker", "Exception");
    }

    @Test
    void helpHasTheOptionsOfTheCommandAndConnectionThoseOfAll() {
        assertThat(terminal.run("help", "retry")).isZero();
        assertThat(terminal.output())
                .contains("--task", "--output", "--help", "worker-cli help connection")
                .contains("\nExamples:\n  worker-cli retry 4711\n")
                .doesNotContain("--url", "--password", "--schema", "--verbose", "Exit status");
        assertThat(terminal.run("help", "connection")).isZero();
        assertThat(terminal.output()).contains("--url", "--password-file", "--schema", "--output", "--verbose");
        assertThat(terminal.run("--help")).isZero();
        assertThat(terminal.output())
                .contains("--version", "--schema-only", "Exit status", "worker-cli help connection")
                .doesNotContain("--url", "\n  connection ");
        assertThat(terminal.run("help", "limits")).isZero();
        assertThat(terminal.output()).contains("Examples:\n  worker-cli limits list\n");
    }

    @Test
    void nothingInTheDatabaseSteersTheTerminal() {
        add("mail", "--key", "\u001b[31mred\u202e");
        assertThat(terminal.run("list")).isZero();
        assertThat(terminal.output()).contains("\\u001b[31mred\\u202e").doesNotContain("\u001b");
        assertThat(terminal.run("show", "1")).isZero();
        assertThat(terminal.output()).doesNotContain("\u001b");
    }

    @Test
    void cutsTablesToTheTerminal() {
        add("a_task_with_quite_a_long_identifier", "--key", "漢".repeat(40), "--queue", "q".repeat(60));
        terminal.interactive = true;
        terminal.width = 100;
        assertThat(terminal.run("list")).isZero();
        assertThat(terminal.output()).contains("…").containsPattern("20[0-9-]+T[0-9:]+Z");
        assertThat(terminal.output().lines()).allMatch(line -> Text.columns(line) <= 100);
        terminal.width = 1;
        assertThat(terminal.run("list")).isZero();
        terminal.interactive = false;
        assertThat(terminal.run("list")).isZero();
        assertThat(terminal.output()).contains("漢".repeat(40));
    }

    @Test
    void showsTimesWithoutEnd() throws Exception {
        add("mail");
        sql("update graphile_worker._private_jobs set run_at = 'infinity'");
        assertThat(terminal.run("list")).isZero();
        assertThat(terminal.output()).contains("scheduled").contains("infinity");
        assertThat(terminal.run("list", "-o", "json")).isZero();
        assertThat(json().get("jobs").get(0).get("runAt").asString()).isEqualTo("infinity");
    }
}
