package dev.pgworker.samples.triggers;

import java.util.Optional;

import org.springframework.jdbc.core.simple.JdbcClient;
import org.springframework.stereotype.Component;

import dev.pgworker.task.JobHandler;

/** Runs the jobs that the triggers on {@code users} add. */
@Component
class MailHandlers {

    /** What the triggers put into a job: the row to look up, so that the mail goes to its current address. */
    record UserRow(long id) {}

    record User(String name, String email) {}

    private final JdbcClient jdbc;
    private final Mailer mailer;

    MailHandlers(JdbcClient jdbc, Mailer mailer) {
        this.jdbc = jdbc;
        this.mailer = mailer;
    }

    @JobHandler("welcome_mail")
    void welcome(UserRow row) {
        find(row).ifPresent(user -> mailer.send(user.email(), "Welcome, " + user.name()));
    }

    @JobHandler("confirm_address")
    void confirmAddress(UserRow row) {
        find(row).ifPresent(user -> mailer.send(user.email(), "Is this your address, " + user.name() + "?"));
    }

    /** Finds nobody if the user has been deleted since. */
    private Optional<User> find(UserRow row) {
        return jdbc.sql("select name, email from users where id = ?")
                .param(row.id())
                .query(User.class)
                .optional();
    }
}
