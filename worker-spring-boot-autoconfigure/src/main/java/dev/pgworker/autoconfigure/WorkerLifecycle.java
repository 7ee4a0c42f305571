package dev.pgworker.autoconfigure;

import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.function.Supplier;

import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.springframework.beans.factory.SmartInitializingSingleton;
import org.springframework.boot.availability.AvailabilityChangeEvent;
import org.springframework.boot.availability.ReadinessState;
import org.springframework.context.ApplicationContext;
import org.springframework.context.ApplicationContextAware;
import org.springframework.context.ApplicationListener;
import org.springframework.context.SmartLifecycle;
import org.springframework.context.event.ContextClosedEvent;

import dev.pgworker.Worker;
import dev.pgworker.WorkerStatus;
import dev.pgworker.internal.failure.WorkerLog;

/**
 * Starts the workers of a name last, when the context is ready, and stops them first.
 *
 * <p>They are built once all singletons exist, which is when a handler behind a bean method that declares an interface can
 * be seen. The start of the context waits until they have {@linkplain Worker#awaitStarted started}, for a bounded time, so that
 * whoever asks a started application finds what it declares. Before they are stopped with the context, the application says that it is no longer ready, as web applications do
 * anyway.
 */
final class WorkerLifecycle
        implements SmartLifecycle,
                SmartInitializingSingleton,
                ApplicationContextAware,
                ApplicationListener<ContextClosedEvent> {

    private static final Logger log = WorkerLog.of(WorkerLifecycle.class);

    /** How long the application waits for the workers of one name together: longer than machines stand still. */
    private static final Duration LONGEST_START = Duration.ofSeconds(10);

    private final Supplier<List<Worker>> builder;
    private final boolean autoStartup;
    private final Runnable afterStart;
    private @Nullable ApplicationContext context;
    private volatile List<Worker> workers = List.of();
    private volatile boolean stoppedWhileRunning;

    /**
     * Creates a lifecycle.
     *
     * @param builder returns the workers, and throws if they cannot run; asked when all singletons exist
     * @param autoStartup whether the workers start with the context
     * @param afterStart called after each start; must return at once
     */
    WorkerLifecycle(Supplier<List<Worker>> builder, boolean autoStartup, Runnable afterStart) {
        this.builder = builder;
        this.autoStartup = autoStartup;
        this.afterStart = afterStart;
    }

    /** What was started by hand goes on when a context is restarted that was paused, as the contexts of tests are. */
    @Override
    public boolean isAutoStartup() {
        return autoStartup || stoppedWhileRunning;
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
        workers = builder.get();
    }

    @Override
    public void start() {
        stoppedWhileRunning = false;
        for (Worker worker : workers) {
            if (hasWork(worker)) {
                worker.start();
            } else {
                log.info("No handlers found: this application only adds jobs");
            }
        }
        try {
            awaitStarted();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        afterStart.run();
    }

    private void awaitStarted() throws InterruptedException {
        long end = System.nanoTime() + LONGEST_START.toNanos();
        for (Worker worker : workers) {
            boolean started = worker.awaitStarted(Duration.ofNanos(end - System.nanoTime()));
            WorkerStatus status = worker.status();
            if (!started && status != null) {
                log.warn(
                        "The application starts before worker {} has started: {}. The worker continues by itself, and its"
                                + " health is OUT_OF_SERVICE until then unless the database cannot be used",
                        status.workerId(),
                        String.join(", ", status.starting()));
            }
        }
    }

    /** Recurring jobs may be of tasks that other workers serve. */
    static boolean hasWork(Worker worker) {
        return !worker.tasks().isEmpty()
                || !worker.cronItems().isEmpty()
                || !worker.declaredSchedules().isEmpty();
    }

    @Override
    public void stop() {
        stoppedWhileRunning = isRunning();
        if (workers.size() == 1) {
            workers.get(0).stop();
            return;
        }
        CompletableFuture.allOf(workers.stream()
                        .map(worker -> CompletableFuture.runAsync(
                                worker::stop, task -> new Thread(task, "worker-stop").start()))
                        .toArray(CompletableFuture[]::new))
                .join();
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
        return workers.stream().anyMatch(Worker::isRunning);
    }
}
