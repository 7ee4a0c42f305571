package dev.pgworker.autoconfigure;

import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.beans.factory.SmartInitializingSingleton;
import org.springframework.context.SmartLifecycle;

import dev.pgworker.Worker;

/**
 * Starts the worker last, when the context is ready, and stops it first.
 *
 * <p>The worker is built once all singletons exist, which is when a handler behind a bean method that declares an
 * interface can be seen.
 */
final class WorkerLifecycle implements SmartLifecycle, SmartInitializingSingleton {

    private static final Logger log = LoggerFactory.getLogger(WorkerLifecycle.class);

    private final ObjectProvider<Worker> provider;
    private final HandlerBeans handlerBeans;
    private final Runnable poolCheck;
    private volatile @Nullable Worker worker;

    /**
     * Creates a lifecycle.
     *
     * @param handlerBeans what an auto-configured worker has its handlers from
     * @param poolCheck throws if a worker cannot run
     */
    WorkerLifecycle(ObjectProvider<Worker> provider, HandlerBeans handlerBeans, Runnable poolCheck) {
        this.provider = provider;
        this.handlerBeans = handlerBeans;
        this.poolCheck = poolCheck;
    }

    @Override
    public void afterSingletonsInstantiated() {
        boolean builtEarly = handlerBeans.isSearched();
        Worker built = provider.getObject();
        if (builtEarly) {
            handlerBeans.requireComplete(built.tasks());
        }
        if (hasWork(built)) {
            poolCheck.run();
        }
        worker = built;
    }

    @Override
    public void start() {
        Worker built = worker;
        if (built == null) {
            return;
        }
        if (hasWork(built)) {
            built.start();
        } else {
            log.info("No handlers found: this application only adds jobs");
        }
    }

    /** Recurring jobs may be of tasks that other workers serve. */
    private static boolean hasWork(Worker worker) {
        return !worker.tasks().isEmpty() || !worker.cronItems().isEmpty();
    }

    @Override
    public void stop() {
        Worker built = worker;
        if (built != null) {
            built.stop();
        }
    }

    @Override
    public void stop(Runnable callback) {
        new Thread(
                        () -> {
                            try {
                                stop();
                            } finally {
                                callback.run();
                            }
                        },
                        "worker-stop")
                .start();
    }

    @Override
    public boolean isRunning() {
        Worker built = worker;
        return built != null && built.isRunning();
    }
}
