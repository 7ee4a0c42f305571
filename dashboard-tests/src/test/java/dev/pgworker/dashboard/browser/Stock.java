package dev.pgworker.dashboard.browser;

import java.time.Duration;
import java.time.Instant;
import java.time.ZoneId;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

import dev.pgworker.flow.FlowJob;
import dev.pgworker.flow.JobFlow;
import dev.pgworker.flow.OnFailure;
import dev.pgworker.job.Job;
import dev.pgworker.job.JobSpec;
import dev.pgworker.limit.Limit;
import dev.pgworker.schedule.Recurrence;
import dev.pgworker.schedule.Schedule;

/** Jobs in every state that stay there: nobody serves their tasks, or they are not due. */
final class Stock {

    private static final String ERROR = """
            java.lang.IllegalStateException: The payment gateway did not answer for order SO-10481
            Caused by: java.net.SocketTimeoutException: POST https://api.payments.example/v2/charges: Read timed out
            	at com.example.shop.PaymentGateway.read(PaymentGateway.java:41)
            	at com.example.shop.PaymentGateway.charge(PaymentGateway.java:27)
            	at java.base/java.util.concurrent.ThreadPoolExecutor.runWorker(ThreadPoolExecutor.java:1136)
            Wrapped in java.lang.IllegalStateException
            	at com.example.shop.OrderHandlers.charge(OrderHandlers.java:45)
            	at org.springframework.aop.support.AopUtils.invokeJoinpointUsingReflection(AopUtils.java:359)
            """;

    private final Shop shop;

    Stock(Shop shop) {
        this.shop = shop;
    }

    /** Adds a job that nobody runs. */
    Job label(int order) {
        return shop.jobs().addJob("print_label", Map.of("order", "SO-" + order, "kilograms", 1.5));
    }

    Job reminder(String customer) {
        return shop.jobs()
                .addJob(
                        "remind_unpaid",
                        Map.of("customer", customer),
                        JobSpec.builder()
                                .jobKey("reminder:" + customer)
                                .runIn(Duration.ofDays(14))
                                .flags("mail")
                                .build());
    }

    Job flagged() {
        return shop.jobs()
                .addJob(
                        "send_mail",
                        Map.of("to", "ada"),
                        JobSpec.builder().flags("after-hours").build());
    }

    /** Adds a job that waits for its second attempt. */
    Job retrying(String task) {
        return failedBefore(task, 1, Duration.ofHours(1));
    }

    /** Adds a job without attempts left. */
    Job failed(String task) {
        return failedBefore(task, 25, Duration.ZERO);
    }

    List<Job> failed(String task, int count) {
        List<Job> jobs = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            jobs.add(failed(task));
        }
        return jobs;
    }

    private Job failedBefore(String task, int attempts, Duration delay) {
        Job job = shop.jobs()
                .addJob(
                        task,
                        Map.of("order", "SO-10481", "card", "4242 **** **** 4242", "amount", 92.40),
                        JobSpec.builder().runIn(Duration.ofDays(1)).build());
        change(
                "update graphile_worker._private_jobs set attempts = ?, last_error = ?, run_at = now() + ? * interval '1 second' where id = ?",
                attempts,
                ERROR,
                delay.toSeconds(),
                job.id());
        return job;
    }

    /** Adds jobs of one queue, of a task that nobody serves. */
    List<Job> queued(String queue, int count) {
        List<Job> jobs = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            jobs.add(shop.jobs()
                    .addJob(
                            "number_invoice",
                            Map.of("order", "SO-" + i),
                            JobSpec.builder().queueName(queue).build()));
        }
        return jobs;
    }

    /** Registers a worker that has sent its last heartbeat an hour ago, and gives it a job. */
    Job heldBy(String deadWorker) {
        Job job = label(7);
        change(
                "insert into graphile_worker._private_workers (id, last_heartbeat_at, started_at) values (?, now() - interval '1 hour', now() - interval '1 day') on conflict do nothing",
                deadWorker);
        change(
                "update graphile_worker._private_jobs set locked_at = now() - interval '1 hour', locked_by = ?, attempts = 1 where id = ?",
                deadWorker,
                job.id());
        return job;
    }

    /** Adds a job that a worker of Node.js runs, which does not register. */
    Job heldByNode() {
        Job job = label(8);
        hold(job, "pool-1");
        return job;
    }

    void hold(Job job, String worker) {
        change(
                "update graphile_worker._private_jobs set locked_at = now(), locked_by = ?, attempts = 1 where id = ?",
                worker,
                job.id());
    }

    /** Adds a job with a step that has ended, and one that waits for a signal. */
    Job stepped() {
        Job job = label(9);
        String step =
                "insert into graphile_worker.pgworker_steps (job_id, revision, name, kind, signal, claim, attempt, started_at, "
                        + "ended_at, due_at, result_type, result) values (?, 0, ?, ?, ?, now(), 1, now() - interval '3 minutes', ";
        change(
                step + "now() - interval '2 minutes', null, 'Charge', '{\"id\": \"ch_31\"}')",
                job.id(),
                "charge the card",
                "run",
                null);
        change(step + "null, now() + interval '2 days', null, null)", job.id(), "approval", "wait", "approval");
        return job;
    }

    /** Adds jobs that wait for one, one that waits for these, another that runs instead if one fails, and returns the id of this one. */
    long flow(int parts) {
        JobFlow flow = new JobFlow();
        FlowJob orders = flow.add("collect_orders", Map.of());
        List<FlowJob> rendered = new ArrayList<>();
        for (int i = 0; i < parts; i++) {
            rendered.add(flow.add("render_part", Map.of("part", i)).after(orders));
        }
        FlowJob report = flow.add("assemble_report_of_the_month", Map.of()).after(rendered);
        FlowJob unused = flow.add("apologise", Map.of()).after(rendered).onFailure(OnFailure.INSTEAD);
        return shop.flows().add(flow).job(report).id();
    }

    /** Makes a schedule that is due once a year. */
    Schedule.Builder yearly(String name, String task) {
        return Schedule.builder(
                name, Recurrence.cron("0 0 4 1 JAN *", ZoneId.of("Europe/Berlin")), task, Map.of("to", "ada"));
    }

    /** Makes schedules of every kind and in every state. */
    void schedules() {
        shop.schedules().put(yearly("yearly", "send_mail").build());
        shop.schedules()
                .put(Schedule.builder("stock", Recurrence.fixedDelay(Duration.ofHours(1)), "sync_stock", Map.of())
                        .startsAt(Instant.now().plus(Duration.ofDays(1)))
                        .build());
        shop.schedules().put(yearly("resting", "send_mail").build());
        shop.schedules().actingAs("olga").pause("resting");
        shop.schedules().put(yearly("broken", "send_mail").build());
        change(
                "update graphile_worker.pgworker_schedules set problem = 'The queue is too long', next_at = null where name = 'broken'");
    }

    /** Limits a task that nobody serves to one job of each tenant at once, and adds three jobs of one tenant and one of another. */
    void limited() {
        shop.limits().put(Limit.concurrency("mail", 1, "limited_mail").per("tenant"));
        for (String tenant : List.of("acme", "acme", "acme", "bolt")) {
            Job unused = shop.jobs().addJob("limited_mail", Map.of("tenant", tenant));
        }
    }

    void change(String sql, Object... parameters) {
        shop.sql(sql).params(parameters).update();
    }

    boolean exists(Job job) {
        return shop.queries().find(job.id()).isPresent();
    }

    Job now(Job job) {
        return shop.queries().find(job.id()).orElseThrow();
    }

    void clear() {
        change(
                "delete from graphile_worker._private_jobs where locked_at is null or locked_at < now() - interval '10 minutes'");
        change("delete from graphile_worker.pgworker_schedules");
        shop.limits().list().forEach(limit -> shop.limits().delete(limit.name()));
    }
}
