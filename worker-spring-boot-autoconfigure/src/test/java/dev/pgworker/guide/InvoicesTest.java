package dev.pgworker.guide;

import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;

import org.awaitility.Awaitility;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

import dev.pgworker.Worker;
import dev.pgworker.autoconfigure.testing.TestDatabase;
import dev.pgworker.job.JobQueries;
import dev.pgworker.job.JobQuery;
import dev.pgworker.schedule.RecurringJob;
import dev.pgworker.schedule.RecurringJobs;
import dev.pgworker.schedule.RecurringQuery;

import static org.assertj.core.api.Assertions.assertThat;

/** What the pages on moving here show at the end does what they say. */
class InvoicesTest {

    @RegisterExtension
    final TestDatabase db = new TestDatabase().installed();

    private final List<String> sent = new CopyOnWriteArrayList<>();

    private final Mailer mailer = new Mailer() {
        @Override
        public void send(String address, String number) {
            sent.add(number + " to " + address);
        }

        @Override
        public void remindDebtors() {
            sent.add("reminders");
        }
    };

    @Test
    void anInvoiceIsSentUnlessItIsCancelled() {
        db.runner()
                .withBean(Mailer.class, () -> mailer)
                .withBean(InvoiceHandlers.class)
                .withBean(InvoiceService.class)
                .withPropertyValues("pgworker.auto-startup=false")
                .run(context -> {
                    InvoiceService service = context.getBean(InvoiceService.class);
                    JobQueries queries = context.getBean(JobQueries.class);
                    service.issue(new Invoice("1", "ada@example.org"));
                    service.issue(new Invoice("2", "bob@example.org"));
                    service.cancel("2");
                    assertThat(queries.count(JobQuery.ALL).scheduled()).isEqualTo(1);
                    db.sql("select {schema}.reschedule_jobs(array(select id from {schema}.jobs), run_at => now())")
                            .query()
                            .listOfRows();

                    context.getBean(Worker.class).runOnce();

                    assertThat(sent).containsExactly("1 to ada@example.org");
                });
    }

    @Test
    void schedulesThatMovedAreKeptAndRunOnlyIfTheyAreOn() {
        db.runner()
                .withBean(Mailer.class, () -> mailer)
                .withBean(MovedSchedules.Reminders.class)
                .withBean(MovedSchedules.Partner.class)
                .withBean(MovedSchedules.Prices.class)
                .withBean(MovedSchedules.Tenants.class)
                .run(context -> {
                    context.getBean(MovedSchedules.Tenants.class).remindDaily("acme");
                    RecurringJobs schedules = context.getBean(RecurringJobs.class);

                    Awaitility.await()
                            .until(() -> context.getBean(MovedSchedules.Partner.class)
                                            .polls()
                                    > 0);

                    assertThat(schedules.list(RecurringQuery.ALL))
                            .extracting(RecurringJob::id)
                            .containsExactly("poll_partner", "remind_debtors", "reminders/acme");
                });
    }

    @Test
    void aScheduleThatAPropertySwitchesOnTellsItsHandlerTheTime() {
        db.runner()
                .withBean(Mailer.class, () -> mailer)
                .withBean(MovedSchedules.Prices.class)
                .withPropertyValues("prices.cron=* * * * * *")
                .run(context -> Awaitility.await()
                        .untilAsserted(() -> assertThat(sent).first().asString().startsWith("due at")));
    }
}
