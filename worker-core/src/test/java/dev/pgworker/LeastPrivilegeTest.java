package dev.pgworker;

import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

import dev.pgworker.event.WorkerEvent.JobCompleted;
import dev.pgworker.job.Task;
import dev.pgworker.testing.RecordingListener;
import dev.pgworker.testing.TestSchema;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

/** A database role without any privilege on the schema adds jobs of one kind, through the function made for it. */
class LeastPrivilegeTest {

    @RegisterExtension
    final TestSchema db = new TestSchema();

    private String role;

    record Mail(String address) {}

    @BeforeEach
    void createRoleAndWrapper() {
        role = db.schema().name() + "_web";
        for (String statement : """
                create role %1$s;
                create schema %1$s_api;
                create function %1$s_api.send_mail(address text) returns bigint
                language sql volatile security definer
                set search_path = pg_catalog, pg_temp
                as $$
                  select id from {schema}.add_job('mail', json_build_object('address', address), queue_name => 'mail')
                $$;
                revoke all on function %1$s_api.send_mail(text) from public;
                grant usage on schema %1$s_api to %1$s;
                grant execute on function %1$s_api.send_mail(text) to %1$s;
                """.formatted(role).split(";\n")) {
            if (!statement.isBlank()) {
                db.sql(statement).update();
            }
        }
    }

    @AfterEach
    void dropRole() {
        db.sql("drop schema " + role + "_api cascade").update();
        db.sql("drop role " + role).update();
    }

    @Test
    void theJobOfAnUnprivilegedRoleRuns() throws Exception {
        RecordingListener events = new RecordingListener();
        db.start(db.worker().listener(events).task(Task.of("mail", Mail.class), (mail, context) -> {}));

        asRole("select " + role + "_api.send_mail('ada@example.org')");

        assertThat(events.await(JobCompleted.class).job().payload()).contains("ada@example.org");
    }

    @Test
    void theRoleCanDoNothingElse() {
        for (String statement : new String[] {
            "select {schema}.add_job('mail')",
            "select * from {schema}.jobs",
            "select * from {schema}._private_jobs",
            "delete from {schema}._private_tasks"
        }) {
            assertThatThrownBy(() -> asRole(statement))
                    .isInstanceOf(SQLException.class)
                    .hasMessageContaining("permission denied");
        }
    }

    @Test
    void objectsOfTheCallerCannotTakeThePlaceOfThoseTheWrapperMeans() throws Exception {
        asRole(
                "create temp table _private_tasks (id int, identifier text)",
                "create temp table jobs (id int)",
                "set search_path = pg_temp, pg_catalog",
                "select " + role + "_api.send_mail('ada@example.org')");

        assertThat(db.jobs()).isEqualTo(1);
    }

    private void asRole(String... statements) throws SQLException {
        try (Connection connection = db.dataSource().getConnection();
                Statement statement = connection.createStatement()) {
            statement.execute("set role " + role);
            try {
                for (String text : statements) {
                    statement.execute(db.schema().in(text));
                }
            } finally {
                statement.execute("reset role");
                statement.execute("discard all");
            }
        }
    }
}
