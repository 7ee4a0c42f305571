package dev.pgworker.autoconfigure;

import java.util.function.Consumer;

import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.beans.factory.SmartInitializingSingleton;
import org.springframework.boot.availability.AvailabilityChangeEvent;
import org.springframework.boot.availability.ReadinessState;
import org.springframework.context.ApplicationContext;
import org.springframework.context.ApplicationContextAware;
import org.springframework.context.ApplicationListener;
import org.springframework.context.SmartLifecycle;
import org.springframework.context.event.ContextClosedEvent;

import dev.pgworker.Worker;

/**
 * Starts the worker last, when the context is ready, and stops it first.
 *
 * <p>The worker is built once all singletons exist, which is when a handler behind a bean method that declares an
 * interface can be seen. Before it is stopped with the context, the application says that it is no longer ready, as web
 * applications do anyway.
 */
final class WorkerLifecycle
        implements SmartLifecycle,
                SmartInitializingSingleton,
                ApplicationContextAware,
                ApplicationListener<ContextClosedEvent> {

    private static final Logger log = LoggerFactory.getLogger(WorkerLifecycle.class);

    private final ObjectProvider<Worker> provider;
    private final HandlerBeans handlerBeans;
    private final Consumer<Worker> check;
    private final boolean autoStartup;
    private @Nullable ApplicationContext context;
    private volatile @Nullable Worker worker;

    /**
     * Creates a lifecycle.
     *
     * @param handlerBeans what an auto-configured worker has its handlers from
     * @param check warns of what makes a worker run badly, and throws if it cannot run
     * @param autoStartup whether the worker starts with the context
     */
    WorkerLifecycle(
            ObjectProvider<Worker> provider, HandlerBeans handlerBeans, Consumer<Worker> check, boolean autoStartup) {
        this.provider = provider;
        this.handlerBeans = handlerBeans;
        this.check = check;
        this.autoStartup = autoStartup;
    }

    @Override
    public boolean isAutoStartup() {
        return autoStartup;
    }

    @Override
    public void setApplicationContext(ApplicationContext applicationContext) {
        context = applicationContext;
    }

    /** Comes before any bean is stopped. */
    @Override
    public void onApplicationEvent(ContextClosedEvent event) {
        if (event.getApplicationContext() == context) {
            AvailabilityChangeEvent.publish(event.getApplicationContext(), ReadinessState.REFUSING_TRAFFIC);
        }
    }

    @Override
    public void afterSingletonsInstantiated() {
        boolean builtEarly = handlerBeans.isSearched();
        Worker built = provider.getObject();
        if (builtEarly) {
            handlerBeans.requireComplete(built.tasks());
        }
        if (hasWork(built)) {
            check.accept(built);
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
