package dev.pgworker;

import java.time.Duration;
import java.time.ZoneId;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

import dev.pgworker.event.ScheduleSkipReason;
import dev.pgworker.event.WorkerEvent.JobRecovered;
import dev.pgworker.event.WorkerEvent.ListenerConnected;
import dev.pgworker.event.WorkerEvent.ScheduleExecuted;
import dev.pgworker.event.WorkerEvent.ScheduleSkipped;
import dev.pgworker.schedule.Misfire;
import dev.pgworker.schedule.Overlap;
import dev.pgworker.schedule.Recurrence;
import dev.pgworker.schedule.RecurringJobs;
import dev.pgworker.schedule.Schedule;
import dev.pgworker.schema.WorkerSchema;
import dev.pgworker.testing.RecordingListener;
import dev.pgworker.testing.TestSchema;
import dev.pgworker.testing.WorkerProcess;
import dev.pgworker.testsupport.TestPostgres;

import static org.assertj.core.api.Assertions.assertThat;

/** Real processes that are killed while they execute schedules, or run the jobs of some. */
@Tag("any-postgres")
@Tag("thorough")
class ScheduleKillTest {

    private static final Recurrence EVERY_SECOND = Recurrence.cron("* * * * * *", ZoneId.of("UTC"));

    @RegisterExtension
    final TestSchema db = new TestSchema();

    private final RecordingListener events = new RecordingListener();

    /** A process that executes schedules and runs no job. */
    public static void main(String[] args) {
        HikariConfig config = TestSchema.poolConfig(args[0], 6);
        config.addDataSourceProperty("ApplicationName", args[2]);
        Worker.builder(new HikariDataSource(config))
                .schema(new WorkerSchema(args[1]))
                .build()
                .start();
    }

    private WorkerProcess start(String name) throws Exception {
        return WorkerProcess.start(
                ScheduleKillTest.class,
                db.schema().name() + "-" + name,
                TestPostgres.jdbcUrl(),
                db.schema().name(),
                name);
    }

    private RecurringJobs schedules() {
        return WorkerClient.recurringJobs(db.dataSource(), db.schema(), db.codec());
    }

    private void createSchedules(int number) {
        for (int i = 0; i < number; i++) {
            schedules()
                    .create(Schedule.builder("s" + i, EVERY_SECOND, "tick", null)
                            .misfire(Misfire.RUN_ALL)
                            .build());
        }
    }

    @Test
    void aProcessKilledInTheMiddleOfAnExecutionAddsNothing() throws Exception {
        db.sql("""
                create function {schema}.slow() returns trigger language plpgsql as $$
                begin
                  if current_setting('application_name') = 'killed' then perform pg_sleep(10); end if;
                  return new;
                end $$;
                create trigger slow before update on {schema}.pgworker_schedules
                  for each statement execute function {schema}.slow()
                """).update();
        createSchedules(1);
        db.sql("update {schema}.pgworker_schedules set next_at = date_trunc('second', now())")
                .update();
        try (WorkerProcess process = start("killed")) {
            Awaitility.await()
                    .until(() -> db.sql("select count(*) from pg_stat_activity"
                                            + " where application_name = 'killed' and wait_event = 'PgSleep'")
                                    .query(Integer.class)
                                    .single()
                            > 0);
            // Its jobs are added, in a transaction that is open.
            process.kill();
        }
        assertThat(db.jobs()).isZero();

        db.start(db.worker().listener(events));

        events.await(ScheduleExecuted.class, 5);
        SchedulesTest.assertOneJobForEachTime(db);
        assertThat(db.jobs()).isGreaterThanOrEqualTo(5);
    }

    @Test
    void processesKilledAtAnyTimeAddOneJobForEachTime() throws Exception {
        createSchedules(10);
        Random random = new Random(7);
        List<WorkerProcess> processes = new ArrayList<>();
        try {
            for (int i = 0; i < 3; i++) {
                processes.add(start("p" + i));
            }
            for (int kills = 0; kills < 8; kills++) {
                long jobs = db.jobs() + 10 + random.nextInt(30);
                Awaitility.await().pollInterval(Duration.ofMillis(1)).until(() -> db.jobs() >= jobs);
                processes.remove(random.nextInt(processes.size())).kill();
                processes.add(start("next" + kills));
            }
        } finally {
            processes.forEach(WorkerProcess::close);
        }
        db.start(db.worker().listener(events));
        events.await(ScheduleExecuted.class, 20);

        SchedulesTest.assertOneJobForEachTime(db);
    }

    @Test
    void whileAKilledProcessSeemsToRunTheJobNoOtherIsAdded() throws Exception {
        WorkerProcess.createLedger(db);
        db.sql("create function {schema}.to_number() returns trigger language plpgsql as $$"
                        + " begin new.payload := '6000'; return new; end $$;"
                        + " create trigger to_number before insert on {schema}._private_jobs for each row"
                        + " execute function {schema}.to_number()")
                .update();
        try (WorkerProcess process = WorkerProcess.start(db.schema(), "overlap")) {
            schedules()
                    .create(Schedule.builder("s", EVERY_SECOND, "sleep", null)
                            .overlap(Overlap.SKIP)
                            .build());
            awaitStarts(1);
            process.kill();
        }
        Worker here =
                db.start(WorkerProcess.worker(db.dataSource(), db.schema()).listener(events));
        events.await(ListenerConnected.class);
        events.await(ScheduleSkipped.class);
        assertThat(db.jobs()).isEqualTo(1);

        events.await(JobRecovered.class);
        awaitStarts(2);
        int skipped = events.all(ScheduleSkipped.class).size();
        events.await(ScheduleSkipped.class, skipped + 2);

        assertThat(db.jobs()).isEqualTo(1);
        assertThat(events.all(ScheduleExecuted.class)).isEmpty();
        assertThat(ledger("distinct job")).isEqualTo(1);
        assertThat(events.all(ScheduleSkipped.class))
                .extracting(ScheduleSkipped::reason)
                .contains(ScheduleSkipReason.OVERLAP);
        events.await(ScheduleExecuted.class);
        assertThat(ledger("case when what = 'end' then 1 end"))
                .as("jobs that have ended")
                .isEqualTo(1);
        here.stop();
    }

    private long ledger(String counted) {
        return db.sql("select count(" + counted + ") from {schema}.ledger")
                .query(Long.class)
                .single();
    }

    private void awaitStarts(int count) {
        Awaitility.await()
                .until(() -> db.sql("select count(*) from {schema}.ledger where what = 'start'")
                                .query(Integer.class)
                                .single()
                        >= count);
    }
}
