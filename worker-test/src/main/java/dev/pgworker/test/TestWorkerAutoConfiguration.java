package dev.pgworker.test;

import java.util.function.Function;

import org.springframework.beans.factory.annotation.Qualifier;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Import;

import dev.pgworker.autoconfigure.WorkerInstances;
import dev.pgworker.event.WorkerEventListener;
import dev.pgworker.task.PayloadCodec;

/**
 * The {@link TestWorker} of the application's worker, and one for each of {@code pgworker.instances}; only for tests with {@link
 * AutoConfigureTestWorker}.
 *
 * @since 0.1.0
 */
@AutoConfiguration(afterName = "dev.pgworker.autoconfigure.WorkerAutoConfiguration")
@Import(TestWorkerBeans.class)
public final class TestWorkerAutoConfiguration {

    @Bean(TestWorkerFactory.BEAN)
    TestWorkerFactory testWorkerFactory(WorkerInstances instances, PayloadCodec codec) {
        return new TestWorkerFactory(instances, codec);
    }

    /** The context stops the worker itself. */
    @Bean(destroyMethod = "")
    @ConditionalOnMissingBean
    TestWorker testWorker(TestWorkerFactory factory) {
        return factory.testWorker(WorkerInstances.DEFAULT);
    }

    @Bean(defaultCandidate = false)
    @Qualifier("workerDirectListener") Function<String, WorkerEventListener> testWorkerListener(TestWorkerFactory factory) {
        return factory::listener;
    }
}
