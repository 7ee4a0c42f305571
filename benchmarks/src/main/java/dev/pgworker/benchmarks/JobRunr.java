package dev.pgworker.benchmarks;

import java.time.Duration;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.List;
import java.util.Optional;
import javax.sql.DataSource;

import org.jobrunr.jobs.lambdas.JobRequest;
import org.jobrunr.jobs.lambdas.JobRequestHandler;
import org.jobrunr.jobs.mappers.JobMapper;
import org.jobrunr.scheduling.JobRequestScheduler;
import org.jobrunr.server.BackgroundJobServer;
import org.jobrunr.server.BackgroundJobServerConfiguration;
import org.jobrunr.server.JobActivator;
import org.jobrunr.storage.StorageProvider;
import org.jobrunr.storage.sql.postgres.PostgresStorageProvider;
import org.jobrunr.utils.mapper.jackson3.Jackson3JsonMapper;
import org.jspecify.annotations.Nullable;

/** JobRunr with 24 workers and the shortest poll interval that it allows. */
final class JobRunr implements Contender {

    @Override
    public String name() {
        return "jobrunr";
    }

    @Override
    public int divisor() {
        return 10;
    }

    @Override
    public boolean polls() {
        return true;
    }

    @Override
    public String unfinished() {
        return """
                select ?::bigint = 0
                  and exists (select from jobrunr_jobs where state in ('SCHEDULED', 'ENQUEUED', 'PROCESSING'))
                """;
    }

    @Override
    public List<String> command(Options options, String jdbcUrl) {
        return JvmQueue.command(this, options, jdbcUrl);
    }

    @Override
    public Optional<JvmQueue.Factory> jvmQueue() {
        return Optional.of(Queue::new);
    }

    /** A job as JobRunr stores it; public because JobRunr calls it by reflection, as it does the handler. */
    public record Request(long stamp, int millis) implements JobRequest {
        @Override
        public Class<Handler> getJobRequestHandler() {
            return Handler.class;
        }
    }

    /** What runs it. */
    public record Handler(Probe probe) implements JobRequestHandler<Request> {
        @Override
        public void run(Request request) throws InterruptedException {
            probe.run(new Payload(request.stamp(), request.millis()));
        }
    }

    private static final class Queue implements JvmQueue {

        private final DataSource dataSource;
        private final Jackson3JsonMapper mapper = new Jackson3JsonMapper();
        private final Handler handler;
        private @Nullable StorageProvider storage;
        private @Nullable JobRequestScheduler scheduler;
        private @Nullable BackgroundJobServer server;

        Queue(DataSource dataSource, Probe probe) {
            this.dataSource = dataSource;
            handler = new Handler(probe);
        }

        /** Creates its tables as well. */
        private StorageProvider storage() {
            StorageProvider opened = storage;
            if (opened == null) {
                opened = new PostgresStorageProvider(dataSource);
                opened.setJobMapper(new JobMapper(mapper));
                storage = opened;
            }
            return opened;
        }

        private JobRequestScheduler scheduler() {
            JobRequestScheduler opened = scheduler;
            if (opened == null) {
                opened = new JobRequestScheduler(storage());
                scheduler = opened;
            }
            return opened;
        }

        @Override
        public void createTables() {
            storage();
        }

        @Override
        public void start() {
            if (server != null) {
                server.resumeProcessing();
                return;
            }
            JobActivator activator = new JobActivator() {
                @Override
                public <T> T activateJob(Class<T> type) {
                    return type.cast(handler);
                }
            };
            BackgroundJobServer started = new BackgroundJobServer(
                    storage(),
                    mapper,
                    activator,
                    BackgroundJobServerConfiguration.usingStandardBackgroundJobServerConfiguration()
                            .andWorkerCount(24)
                            .andPollInterval(Duration.ofSeconds(5)));
            started.start();
            server = started;
        }

        @Override
        public void stop() {
            if (server != null) {
                server.pauseProcessing();
            }
        }

        @Override
        public void add(Payload payload, @Nullable Long runAtMicros) {
            Request request = new Request(payload.stamp(), payload.millis());
            if (runAtMicros == null) {
                scheduler().enqueue(request);
            } else {
                scheduler().schedule(Instant.EPOCH.plus(runAtMicros, ChronoUnit.MICROS), request);
            }
        }

        @Override
        public void addAll(List<Payload> payloads) {
            scheduler().enqueue(payloads.stream().map(payload -> new Request(payload.stamp(), payload.millis())));
        }
    }
}
