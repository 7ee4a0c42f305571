package dev.pgworker.benchmarks;

import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.UUID;
import javax.sql.DataSource;

import com.github.kagkarlsson.scheduler.Scheduler;
import com.github.kagkarlsson.scheduler.task.TaskInstance;
import com.github.kagkarlsson.scheduler.task.helper.OneTimeTask;
import com.github.kagkarlsson.scheduler.task.helper.Tasks;
import org.jspecify.annotations.Nullable;

/** db-scheduler as its documentation tunes it for throughput: 50 threads, lock-and-fetch 1.0 to 4.0, a short poll. */
final class DbScheduler implements Contender {

    @Override
    public String name() {
        return "db-scheduler";
    }

    @Override
    public int divisor() {
        return 5;
    }

    @Override
    public String unfinished() {
        return "select ?::bigint = 0 and exists (select from scheduled_tasks)";
    }

    @Override
    public List<String> command(Options options, String jdbcUrl) {
        return JvmQueue.command(this, options, jdbcUrl);
    }

    @Override
    public Optional<JvmQueue.Factory> jvmQueue() {
        return Optional.of(Queue::new);
    }

    private static final class Queue implements JvmQueue {

        private final DataSource dataSource;
        private final OneTimeTask<Payload> task;
        private final Scheduler scheduler;
        private boolean started;

        Queue(DataSource dataSource, Probe probe) {
            this.dataSource = dataSource;
            task = Tasks.oneTime("noop", Payload.class).execute((instance, context) -> {
                try {
                    probe.run(instance.getData());
                } catch (InterruptedException e) {
                    Thread.currentThread().interrupt();
                }
            });
            scheduler = Scheduler.create(dataSource, task)
                    .threads(50)
                    .pollUsingLockAndFetch(1.0, 4.0)
                    .pollingInterval(Duration.ofMillis(100))
                    .enableImmediateExecution()
                    .build();
        }

        // The columns that its documentation demands, and the indexes that it recommends.
        private static final String TABLE = """
                create table scheduled_tasks (
                  task_name text not null,
                  task_instance text not null,
                  task_data bytea,
                  execution_time timestamptz not null,
                  picked boolean not null,
                  picked_by text,
                  last_success timestamptz,
                  last_failure timestamptz,
                  consecutive_failures int,
                  last_heartbeat timestamptz,
                  version bigint not null,
                  priority smallint,
                  primary key (task_name, task_instance));
                create index on scheduled_tasks (execution_time);
                create index on scheduled_tasks (last_heartbeat)
                """;

        @Override
        public void createTables() throws SQLException {
            try (Connection connection = dataSource.getConnection();
                    Statement statement = connection.createStatement()) {
                statement.execute(TABLE);
            }
        }

        @Override
        public void start() {
            if (started) {
                scheduler.resume();
                scheduler.triggerCheckForDueExecutions();
            } else {
                scheduler.start();
                started = true;
            }
        }

        @Override
        public void stop() {
            scheduler.pause();
        }

        @Override
        public void add(Payload payload, @Nullable Long runAtMicros) {
            scheduler.schedule(
                    instance(payload),
                    runAtMicros == null ? Instant.now() : Instant.EPOCH.plus(runAtMicros, ChronoUnit.MICROS));
        }

        @Override
        public void addAll(List<Payload> payloads) {
            List<TaskInstance<?>> instances = new ArrayList<>(payloads.size());
            for (Payload payload : payloads) {
                instances.add(instance(payload));
            }
            scheduler.scheduleBatch(instances, Instant.now());
        }

        private TaskInstance<Payload> instance(Payload payload) {
            return task.instance(UUID.randomUUID().toString(), payload);
        }
    }
}
