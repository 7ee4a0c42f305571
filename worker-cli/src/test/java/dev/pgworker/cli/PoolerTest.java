package dev.pgworker.cli;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import dev.pgworker.testsupport.ForeignApplication;
import dev.pgworker.testsupport.PgBouncer;
import dev.pgworker.testsupport.TestPostgres;

import static org.assertj.core.api.Assertions.assertThat;

/** All commands behind PgBouncer, which gives the same sessions of the server to another application. */
@Tag("thorough")
class PoolerTest {

    private static final int SESSIONS = 6;

    private static final List<String> COMMANDS = List.of(
            "validate",
            "add mail --payload {} --queue q --key a",
            "add mail --payload {} --run-in 1h --key b",
            "add mail --payload {}",
            "add mail --payload {}",
            "add mail --payload {}",
            "list",
            "show 1",
            "stats",
            "stats --exact",
            "queues",
            "workers",
            "history",
            "watch --count 12 -i 100ms",
            "pause --task mail --reason tests",
            "pauses",
            "resume --task mail",
            "fail 3 -y",
            "retry 3",
            "reschedule 3 --run-in 2h -y",
            "complete 3 -y",
            "cancel --id 4 -y",
            "remove a -y",
            "remove --task mail -y",
            "limits put few --task mail --max-running 2",
            "add mail --payload {}",
            "limits show few",
            "limits list",
            "limits delete few --yes",
            "recurring list",
            "recurring pause daily",
            "recurring resume daily",
            "recurring delete daily --yes",
            "cleanup gc_job_queues -y",
            "sweep --threshold 30m -y",
            "force-unlock nobody -y");

    private final List<AutoCloseable> closed = new ArrayList<>();
    private final String url = TestPostgres.newDatabase("pooled");

    @AfterEach
    void close() throws Exception {
        for (int i = closed.size() - 1; i >= 0; i--) {
            closed.get(i).close();
        }
    }

    private String behind(String mode) throws IOException {
        PgBouncer bouncer = PgBouncer.start(port(), "cli-" + mode, mode, mode.equals("session") ? 40 : SESSIONS);
        Assumptions.assumeTrue(bouncer != null, "PgBouncer is not installed");
        closed.add(bouncer);
        return bouncer.behind(url);
    }

    private int port() {
        return Integer.parseInt(url.replaceFirst(".*?:(\\d+)/.*", "$1"));
    }

    @ParameterizedTest
    @ValueSource(strings = {"session", "transaction"})
    void commandsWorkAndLeaveNothing(String mode) throws Exception {
        String pooled = behind(mode);
        ForeignApplication foreign = ForeignApplication.start(url, pooled, 3);
        closed.add(foreign);
        TestTerminal terminal = new TestTerminal(pooled);
        assertThat(terminal.run("migrate")).as(terminal.errors()).isZero();
        for (String command : COMMANDS) {
            assertThat(terminal.run(command.split(" ")))
                    .as(command + "\n" + terminal.errors())
                    .isIn(0, ExitStatus.NOT_FOUND);
        }
        if (mode.equals("transaction")) {
            foreign.lookAtSessions(SESSIONS);
        }
        assertThat(foreign.seen()).isEmpty();
    }

    @Test
    void whatNeedsATransactionNamesTheRemedyWhereThereIsNone() throws Exception {
        String pooled = behind("statement");
        ForeignApplication foreign = ForeignApplication.start(url, pooled, 2);
        closed.add(foreign);
        assertThat(new TestTerminal(url).run("migrate")).isZero();
        TestTerminal terminal = new TestTerminal(pooled);
        List<String> commands = new ArrayList<>(COMMANDS);
        commands.add("migrate");
        for (String command : commands) {
            int status = terminal.run(command.split(" "));
            if (status != 0 && status != ExitStatus.NOT_FOUND) {
                assertThat(terminal.errors()).as(command).contains("pool_mode=transaction");
            }
        }
        assertThat(terminal.run("migrate")).isNotZero();
        assertThat(foreign.seen()).isEmpty();
    }
}
