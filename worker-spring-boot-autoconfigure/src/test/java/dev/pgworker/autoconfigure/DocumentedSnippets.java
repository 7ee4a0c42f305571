package dev.pgworker.autoconfigure;

import java.io.IOException;
import java.nio.file.AccessDeniedException;
import java.time.Duration;
import java.time.Instant;
import java.time.YearMonth;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.Stream;

import com.fasterxml.jackson.annotation.JsonProperty;
import io.micrometer.core.instrument.config.MeterFilter;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.context.annotation.Bean;
import org.springframework.core.ParameterizedTypeReference;
import org.springframework.jdbc.core.simple.JdbcClient;

import dev.pgworker.crontab.CronItem;
import dev.pgworker.crontab.CronJob;
import dev.pgworker.job.ActiveWorker;
import dev.pgworker.job.BulkResult;
import dev.pgworker.job.CleanupResult;
import dev.pgworker.job.CleanupTask;
import dev.pgworker.job.Job;
import dev.pgworker.job.JobChange;
import dev.pgworker.job.JobChanges;
import dev.pgworker.job.JobCounts;
import dev.pgworker.job.JobKeyMode;
import dev.pgworker.job.JobPage;
import dev.pgworker.job.JobQueries;
import dev.pgworker.job.JobQuery;
import dev.pgworker.job.JobRequest;
import dev.pgworker.job.JobScheduler;
import dev.pgworker.job.JobSelection;
import dev.pgworker.job.JobSpec;
import dev.pgworker.job.JobState;
import dev.pgworker.job.JobWait;
import dev.pgworker.job.Task;
import dev.pgworker.job.WorkerOperations;
import dev.pgworker.schedule.RecurringJob;
import dev.pgworker.schedule.RecurringJobs;
import dev.pgworker.schedule.RecurringQuery;
import dev.pgworker.statistics.JobStatistics;
import dev.pgworker.statistics.StatisticsPoint;
import dev.pgworker.statistics.TaskStatistics;
import dev.pgworker.task.BatchResult;
import dev.pgworker.task.ForbiddenFlags;
import dev.pgworker.task.JobContext;
import dev.pgworker.task.JobControlException;
import dev.pgworker.task.JobHandler;
import dev.pgworker.task.RetryDelay;
import dev.pgworker.task.TaskOptions;
import dev.pgworker.task.TaskRegistration;

/** Code that the guide shows and no sample has: it stands here so that it compiles. */
class DocumentedSnippets {

    private static final Logger log = LoggerFactory.getLogger(DocumentedSnippets.class);

    static final Task<Reminder> REMINDER = Task.of("reminder", Reminder.class);

    record Reminder(int order) {}

    void schedule(JobScheduler jobs) {
        JobSpec spec = JobSpec.builder()
                .runIn(Duration.ofMinutes(10))
                .queueName("mail")
                .priority(-5)
                .maxAttempts(3)
                .jobKey("reminder-42")
                .build();
        jobs.addJob(REMINDER, new Reminder(42), spec);
    }

    @JobHandler("reminder")
    void remind(Reminder reminder, JobContext context) {
        log.info("{}: order {}", context, reminder.order());
    }

    static class Functions {

        @Bean
        TaskRegistration remind() {
            return TaskRegistration.of(REMINDER, (reminder, context) -> log.info("Order {}", reminder.order()));
        }
    }

    static final Task<Reminder> REPORT = Task.of("report", Reminder.class);

    static class FunctionsWithOptions {

        @Bean
        TaskRegistration report() {
            return TaskRegistration.of(REPORT, (report, context) -> log.info("Report {}", report.order()))
                    .with(TaskOptions.DEFAULT
                            .withMaxAttempts(5)
                            .withTimeout(Duration.ofMinutes(2))
                            .withRetryDelay(RetryDelay.exponential(Duration.ofSeconds(1), 2, Duration.ofMinutes(5))));
        }
    }

    static class Meters {

        @Bean
        MeterFilter withoutObservationsOfJobs() {
            return MeterFilter.denyNameStartsWith("pgworker.job.process");
        }
    }

    static final Task<List<Address>> NEWSLETTER =
            Task.of("newsletter", new ParameterizedTypeReference<List<Address>>() {});

    record Address(String email) {}

    interface Mailer {
        void send(String email);
    }

    static class Batches {

        private final Mailer mailer = email -> {};

        @JobHandler("newsletter")
        BatchResult send(List<Address> addresses) {
            return BatchResult.forEach(addresses, address -> mailer.send(address.email()));
        }
    }

    void addBatches(JobScheduler jobs, List<Address> addresses) {
        jobs.addBatchJob(NEWSLETTER, addresses);

        jobs.addBatchJob(
                NEWSLETTER,
                addresses,
                JobSpec.builder()
                        .jobKey("newsletter")
                        .jobKeyMode(JobKeyMode.PRESERVE_RUN_AT)
                        .runIn(Duration.ofSeconds(10))
                        .build());
    }

    void addMany(JobScheduler jobs, List<Reminder> reminders, Stream<Reminder> allReminders) {
        jobs.addJobs(REMINDER, reminders);

        jobs.addJobs(List.of(
                JobRequest.of(REMINDER, new Reminder(1)),
                JobRequest.of(
                        "hello",
                        Map.of("name", "Ada"),
                        JobSpec.builder().priority(5).build())));

        long added = jobs.addJobs(allReminders.map(reminder -> JobRequest.of(REMINDER, reminder)));
        log.info("{} jobs added", added);
    }

    static class Imports {

        @JobHandler("import_orders")
        void importOrders(List<Reminder> orders, JobContext context) {
            for (int i = 0; i < orders.size(); i++) {
                context.progress(i, orders.size(), "order " + orders.get(i).order());
                importOrder(orders.get(i));
            }
        }

        private void importOrder(Reminder order) {
            log.info("Order {}", order.order());
        }
    }

    static class Decisions {

        @JobHandler("sync")
        void sync(Reminder reminder) {
            if (reminder.order() < 0) {
                throw JobControlException.failPermanently("There is no order " + reminder.order());
            }
            if (isMaintenance()) {
                throw JobControlException.snoozeFor(Duration.ofMinutes(15));
            }
            if (isBusy()) {
                throw JobControlException.retryIn(Duration.ofSeconds(30), "The partner is busy", null);
            }
        }

        private boolean isMaintenance() {
            return false;
        }

        private boolean isBusy() {
            return false;
        }
    }

    static class Options {

        @JobHandler(
                value = "export",
                noRetryFor = {IllegalArgumentException.class, AccessDeniedException.class},
                retryFor = NumberFormatException.class)
        void export(Export export) throws IOException {}

        record Export(String table) {}

        @JobHandler(value = "report", maxAttempts = 5, timeout = "2m", retryDelay = EveryMinute.class)
        void report(Reminder reminder) {}

        static class EveryMinute implements RetryDelay {

            @Override
            public Duration delay(Job job, Throwable error) {
                return Duration.ofMinutes(1);
            }
        }
    }

    static class Payments {

        private final JdbcClient jdbc;

        Payments(JdbcClient jdbc) {
            this.jdbc = jdbc;
        }

        @JobHandler(value = "book", transactional = true)
        void book(Reminder reminder) {
            jdbc.sql("insert into booking (order_id) values (?)")
                    .param(reminder.order())
                    .update();
        }
    }

    record Document(int id) {}

    static class Index {

        private final JdbcClient jdbc;

        Index(JdbcClient jdbc) {
            this.jdbc = jdbc;
        }

        @JobHandler(value = "index", direct = true)
        void index(Document document) {
            jdbc.sql("update document set indexed = true where id = ?")
                    .param(document.id())
                    .update();
        }
    }

    static class Flags {

        private final AtomicBoolean partnerDown = new AtomicBoolean();

        @Bean
        ForbiddenFlags forbiddenFlags() {
            return () -> partnerDown.get() ? Set.of("partner") : Set.of();
        }
    }

    static class Recurring {

        @Bean
        CronItem dailyReminder() {
            return CronItem.of(REMINDER)
                    .dailyAt(8, 30)
                    .zone(ZoneId.of("Europe/Berlin"))
                    .fill(Duration.ofDays(2))
                    .payload(new Reminder(4711))
                    .build();
        }
    }

    record Rollup(int depth, @JsonProperty("_cron") Execution execution) {

        record Execution(Instant ts, boolean backfilled) {}
    }

    static class Nightly {

        @JobHandler("rollup")
        @CronJob(value = "15 3 * * *", zone = "Europe/Berlin", fill = "2d", payload = "{depth: 3}")
        void rollup(Map<String, Object> options) {
            log.info("Rolling up with {}", options);
        }

        @JobHandler("bill")
        @CronJob(value = "0 2 1 * *", fill = "5d")
        void bill(JobContext context) {
            YearMonth month = context.scheduledRun()
                    .map(run -> YearMonth.from(run.scheduledAt().atZone(ZoneOffset.UTC)))
                    .orElseGet(() -> YearMonth.now(ZoneOffset.UTC)); // added by hand
            log.info("Billing {}", month);
        }
    }

    List<Object> lookBack(JobQueries queries) {
        JobStatistics statistics = queries.statistics();
        List<StatisticsPoint> day = statistics.series(Duration.ofHours(24), 144); // ten minutes each, the oldest first
        List<TaskStatistics> tasks = statistics.tasks(Duration.ofHours(1)); // by name
        return List.of(day, tasks);
    }

    List<Object> manageRecurringJobs(RecurringJobs recurring) {
        List<RecurringJob> all = recurring.list(RecurringQuery.ALL); // next and last run, paused since when
        Job job = recurring.trigger("rollup"); // one job, at once
        boolean paused = recurring.pause("send_weekly_email"); // false if it was paused already
        boolean resumed = recurring.resume("send_weekly_email");
        boolean forgotten = recurring.delete("old_report"); // false if there was none
        return List.of(all, job, paused, resumed, forgotten);
    }

    List<Object> administerManyJobs(JobQueries queries, JobChanges changes) {
        JobQuery bounded = JobQuery.builder()
                .state(JobState.READY)
                .queueName("invoices")
                .scanLimit(10_000)
                .payloadLimit(1_000)
                .build();
        JobPage some =
                queries.list(bounded); // some.limited(): others may be missing; some.next(): where to go on, if at all
        JobCounts atLeast = queries.count(bounded); // atLeast.complete(): whether that is all
        JobQuery failedMails = JobQuery.builder()
                .state(JobState.FAILED)
                .taskIdentifier("send_mail")
                .build();
        JobSelection selection = queries.select(failedMails, 100_000); // ids at this moment, at most 100,000
        BulkResult changed = changes.change(selection, new JobChange.RunNow(), (done, soFar, total) -> {
            log.info("{} of {}", done, total);
            return true; // false stops
        });
        List<Job> given = changes.actingAs("kim").permanentlyFail(List.of(4711L), "wrong address");
        Optional<JobWait> wait = queries.waitOf(4711);
        return List.of(some, atLeast, changed, given, wait);
    }

    List<Object> administer(JobQueries queries, WorkerOperations operations) {
        JobQuery failed = JobQuery.builder()
                .state(JobState.FAILED)
                .taskIdentifier("send_mail")
                .search("timeout")
                .build();
        JobPage page = queries.list(failed); // newest first, 50 jobs, with payloads
        JobPage following = queries.list(failed.after(page.next())); // page.next() is null on the last page
        JobCounts counts = queries.count(JobQuery.ALL); // ready, scheduled, retrying, running, failed
        Optional<Job> job = queries.find(4711);
        List<ActiveWorker> workers = queries.activeWorkers();

        CleanupResult result = operations.cleanup(EnumSet.allOf(CleanupTask.class));
        return List.of(following, counts, job, workers, result);
    }
}
