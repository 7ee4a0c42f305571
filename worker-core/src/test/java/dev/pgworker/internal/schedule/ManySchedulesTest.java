package dev.pgworker.internal.schedule;

import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.sql.DataSource;

import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

import dev.pgworker.internal.client.ScheduleControl;
import dev.pgworker.internal.event.WorkerEvents;
import dev.pgworker.internal.failure.Outage;
import dev.pgworker.internal.store.ScheduleStore;
import dev.pgworker.testing.InterceptedDataSource;
import dev.pgworker.testing.TestSchema;

import static org.assertj.core.api.Assertions.assertThat;

/** What 100,000 schedules cost: what is due, and nothing else. */
@Tag("thorough")
@Tag("any-postgres")
class ManySchedulesTest {

    private static final int MANY = 100_000;

    /** Enough for a root, a leaf and a row of each that is due, in each index. */
    private static final int FEW_PAGES = 400;

    @RegisterExtension
    final TestSchema db = new TestSchema();

    /** The plans of the statements by what they begin with. */
    private final Map<String, String> plans = new LinkedHashMap<>();

    private final Map<String, List<InterceptedDataSource.Call>> parameters = new LinkedHashMap<>();

    private void create(String nextAt) {
        create(nextAt, "false");
    }

    /** All in one insert: what an update left behind stays where a snapshot of somebody's keeps it from a vacuum. */
    private void create(String nextAt, String declared) {
        db.sql(
                        "insert into {schema}.pgworker_schedules (name, kind, expression, zone, task_identifier, misfire, next_at,"
                                + " declared)"
                                // However late, as it takes more than a minute on a slow machine.
                                + " select 'schedule-' || i, 'cron', '0 0 4 * * *', 'Europe/Berlin', 'task-' || i % 50, 'run_once', "
                                + nextAt
                                + ", "
                                + declared
                                + " from generate_series(1, " + MANY + ") i")
                .update();
        db.sql("vacuum analyze {schema}.pgworker_schedules").update();
    }

    @Test
    void tenThatAreDueCostWhatTenCost() throws Exception {
        create(
                "case when i <= 10 then now() - interval '1 second' else now() + interval '1 day' + i * interval '1 second' end");
        ScheduleService service = service(new InterceptedDataSource(db.dataSource(), this::explain));

        run(service);

        assertThat(db.jobs()).isEqualTo(10);
        plans.forEach((statement, plan) -> System.out.println("--- " + statement + "\n" + plan));
        assertThat(plans).hasSizeGreaterThanOrEqualTo(3);
        plans.forEach((statement, plan) ->
                assertThat(pages(plan)).as(statement + "\n" + plan).isLessThan(FEW_PAGES));

        db.sql(
                        "update {schema}.pgworker_schedules set next_at = now() - interval '1 second' where name in ('schedule-3', 'schedule-77')")
                .update();
        ScheduleService plain = service(db.dataSource());
        run(plain);
        List<Long> nanos = new ArrayList<>();
        for (int i = 0; i < 20; i++) {
            db.sql("update {schema}.pgworker_schedules set next_at = now() - interval '1 second'"
                            + " where name = any(array(select 'schedule-' || n from generate_series(1, 10) n))")
                    .update();
            long begin = System.nanoTime();
            plain.work();
            nanos.add(System.nanoTime() - begin);
        }
        nanos.sort(null);
        System.out.println("Ten of 100,000 schedules: " + nanos.get(10) / 1_000 + " us (median), "
                + nanos.get(19) / 1_000 + " us at most");
    }

    @Test
    void allOfThemAtOnce() throws Exception {
        create("now() - interval '1 second'");
        ScheduleService service = service(db.dataSource());
        long begin = System.nanoTime();

        run(service);

        double seconds = (System.nanoTime() - begin) / 1e9;
        System.out.printf("100,000 schedules at once: %.1f s, %.0f jobs/s%n", seconds, MANY / seconds);
        assertThat(db.jobs()).isEqualTo(MANY);
        assertThat(db.sql(
                                "select count(*) from {schema}.pgworker_schedules where next_at > now() and last_job_id is not null")
                        .query(Integer.class)
                        .single())
                .isEqualTo(MANY);
    }

    @Test
    void thoseThatOthersDeclareAreNotInTheWay() throws Exception {
        create("now() - interval '1 second'", "i <> 500");
        ScheduleService service = service(new InterceptedDataSource(db.dataSource(), this::explain));

        run(service);

        assertThat(db.jobs()).isEqualTo(1);
        plans.forEach((statement, plan) ->
                assertThat(pages(plan)).as(statement + "\n" + plan).isLessThan(FEW_PAGES));
    }

    @Test
    void aHundredThousandDelaysCostALookAtSome() throws Exception {
        db.sql("insert into {schema}._private_jobs (task_id, payload) select"
                        + " (select {schema}.pgworker_task_id('t')), '{}' from generate_series(1, " + MANY + ")")
                .update();
        db.sql(
                        "insert into {schema}.pgworker_schedules (name, kind, every, task_identifier, next_at, awaits_end, last_job_id, last_at)"
                                + " select 'schedule-' || j.id, 'delay', '1 hour', 't', null, true, j.id, now() from {schema}._private_jobs j")
                .update();
        db.sql("vacuum analyze {schema}._private_jobs").update();
        db.sql("vacuum analyze {schema}.pgworker_schedules").update();
        ScheduleService service = service(new InterceptedDataSource(db.dataSource(), this::explain));
        long begin = System.nanoTime();
        service.work();
        System.out.println("A look at 2,000 delays with EXPLAIN: " + (System.nanoTime() - begin) / 1_000 + " us");

        plans.forEach((statement, plan) -> System.out.println("--- " + statement + "\n" + plan));
        plans.forEach((statement, plan) ->
                assertThat(pages(plan)).as(statement + "\n" + plan).isLessThan(15_000));
    }

    /** Has each statement about schedules explained before it is executed. */
    private @Nullable Object explain(InterceptedDataSource.Call call, InterceptedDataSource.Proceed proceed)
            throws Throwable {
        String method = call.method().getName();
        String sql = call.sql();
        if (method.startsWith("set") && sql.contains("pgworker_schedules")) {
            parameters.computeIfAbsent(sql, any -> new ArrayList<>()).add(call);
        } else if (method.startsWith("execute") && sql.contains("pgworker_schedules")) {
            List<InterceptedDataSource.Call> given = parameters.remove(sql);
            plans.merge(
                    sql.strip().lines().findFirst().orElse("") + " ... " + sql.hashCode(),
                    plan(call, given),
                    (a, b) -> a);
        }
        return proceed.proceed();
    }

    private static String plan(InterceptedDataSource.Call call, @Nullable List<InterceptedDataSource.Call> given)
            throws Exception {
        StringBuilder plan = new StringBuilder();
        try (PreparedStatement explain =
                call.connection().prepareStatement("explain (analyze, buffers) " + call.sql())) {
            for (InterceptedDataSource.Call one : given == null ? List.<InterceptedDataSource.Call>of() : given) {
                if (!one.method().getName().equals("setQueryTimeout")) {
                    one.method().invoke(explain, one.arguments().toArray());
                }
            }
            try (ResultSet rows = explain.executeQuery()) {
                while (rows.next()) {
                    plan.append(rows.getString(1)).append('\n');
                }
            }
        }
        return plan.toString();
    }

    /** The pages of the whole plan, which its first line of buffers has. */
    private static int pages(String plan) {
        int pages = 0;
        Matcher line = Pattern.compile("Buffers: (.*)").matcher(plan);
        if (line.find()) {
            Matcher number = Pattern.compile("(?:hit|read)=(\\d+)").matcher(line.group(1));
            while (number.find()) {
                pages += Integer.parseInt(number.group(1));
            }
        }
        return pages;
    }

    private ScheduleService service(DataSource dataSource) {
        ScheduleStore store = new ScheduleStore(dataSource, db.schema(), List.of());
        WorkerEvents events = new WorkerEvents("w", List.of(), List.of());
        SchedulePlan plan = new SchedulePlan(List.of(), db.codec(), List.of());
        return new ScheduleService(
                () -> new ScheduleExecutor(store, new ScheduleRules(plan), new ScheduleReporter("w", events)),
                store,
                new DeclaredSchedules(
                        new ScheduleControl(db.dataSource(), db.schema(), db.codec(), db.scheduler()),
                        List.of(),
                        () -> {}),
                ScheduleService.Intervals.of(Duration.ofSeconds(5)),
                ScheduleStore.Look::now,
                events,
                new Outage());
    }

    private static void run(ScheduleService service) throws Exception {
        while (service.work().isZero()) {
            // There is more to do.
        }
    }
}
