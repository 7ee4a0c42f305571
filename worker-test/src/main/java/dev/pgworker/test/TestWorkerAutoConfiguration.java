package dev.pgworker.test;

import javax.sql.DataSource;

import org.springframework.beans.factory.ObjectProvider;
import org.springframework.beans.factory.annotation.Qualifier;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.context.annotation.Bean;

import dev.pgworker.Worker;
import dev.pgworker.event.WorkerEventListener;
import dev.pgworker.job.JobScheduler;
import dev.pgworker.schema.WorkerSchema;
import dev.pgworker.task.PayloadCodec;

/**
 * The {@link TestWorker} of the application's worker; only for tests with {@link AutoConfigureTestWorker}.
 *
 * @since 0.1.0
 */
@AutoConfiguration(afterName = "dev.pgworker.autoconfigure.WorkerAutoConfiguration")
public final class TestWorkerAutoConfiguration {

    /** The context stops the worker itself. */
    @Bean(destroyMethod = "")
    @ConditionalOnMissingBean
    TestWorker testWorker(
            ObjectProvider<Worker> worker,
            DataSource dataSource,
            WorkerSchema schema,
            PayloadCodec codec,
            JobScheduler jobScheduler) {
        return TestWorker.of(worker::getIfAvailable, dataSource, schema, codec, jobScheduler);
    }

    @Bean(defaultCandidate = false)
    @Qualifier("workerDirectListener") WorkerEventListener testWorkerListener(TestWorker worker) {
        return worker.listener();
    }
}
