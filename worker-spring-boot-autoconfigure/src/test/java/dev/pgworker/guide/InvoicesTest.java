package dev.pgworker.guide;

import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicReference;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

import dev.pgworker.Worker;
import dev.pgworker.autoconfigure.testing.TestDatabase;
import dev.pgworker.job.JobAdmin;
import dev.pgworker.job.JobQuery;
import dev.pgworker.task.JobContext;

import static org.assertj.core.api.Assertions.assertThat;

/** What the pages on moving here show at the end does what they say. */
class InvoicesTest {

    @RegisterExtension
    final TestDatabase db = new TestDatabase();

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
                .withPropertyValues("worker.auto-startup=false")
                .run(context -> {
                    InvoiceService service = context.getBean(InvoiceService.class);
                    JobAdmin admin = context.getBean(JobAdmin.class);
                    service.issue(new Invoice("1", "ada@example.org"));
                    service.issue(new Invoice("2", "bob@example.org"));
                    service.cancel("2");
                    assertThat(admin.count(JobQuery.ALL).scheduled()).isEqualTo(1);
                    db.sql("select {schema}.reschedule_jobs(array(select id from {schema}.jobs), run_at => now())")
                            .query()
                            .listOfRows();

                    context.getBean(Worker.class).runOnce();

                    assertThat(sent).containsExactly("1 to ada@example.org");
                });
    }

    @Test
    void aTaskThatAddsItsSuccessorGoesOn() {
        List<JobContext> runs = new CopyOnWriteArrayList<>();
        db.runner()
                .withBean(Poll.class, () -> new Poll(runs::add))
                .withUserConfiguration(Poll.Start.class)
                .withPropertyValues("worker.auto-startup=false")
                .run(context -> {
                    context.getBean(Poll.Start.class).run(null);

                    context.getBean(Worker.class).runOnce();

                    assertThat(runs).hasSize(1);
                    assertThat(db.jobs()).isEqualTo(1);
                });
    }

    @Test
    void aStartWhileTheTaskRunsLeavesOneSuccessor() {
        AtomicReference<Runnable> start = new AtomicReference<>();
        List<Integer> inQueueDuringRuns = new CopyOnWriteArrayList<>();
        db.runner()
                .withBean(
                        Poll.class,
                        () -> new Poll(job -> {
                            start.get().run();
                            inQueueDuringRuns.add(
                                    db.sql("select count(*) from {schema}.jobs where queue_name = 'poll_partner'")
                                            .query(Integer.class)
                                            .single());
                        }))
                .withUserConfiguration(Poll.Start.class)
                .withPropertyValues("worker.auto-startup=false")
                .run(context -> {
                    start.set(() -> context.getBean(Poll.Start.class).run(null));
                    start.get().run();

                    context.getBean(Worker.class).runOnce();

                    assertThat(inQueueDuringRuns).containsExactly(2);
                    assertThat(db.jobs()).isEqualTo(1);
                });
    }
}
