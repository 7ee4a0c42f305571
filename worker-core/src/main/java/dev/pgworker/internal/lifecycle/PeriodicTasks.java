package dev.pgworker.internal.lifecycle;

import java.time.Duration;
import java.time.Instant;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.micrometer.observation.ObservationRegistry;
import org.springframework.scheduling.TriggerContext;
import org.springframework.scheduling.config.ScheduledTask;
import org.springframework.scheduling.config.ScheduledTaskRegistrar;
import org.springframework.scheduling.config.TriggerTask;

/**
 * What a worker does from time to time: tasks of a scheduler of Spring's that is the worker's own and no bean, so that it neither
 * runs what the application schedules nor keeps Spring Boot from making the application's scheduler.
 */
public final class PeriodicTasks {

    /** How often to look for tasks that are due but not scheduled, and how long after their time. */
    private static final Duration REVIVAL = Duration.ofSeconds(5);

    private final String worker;
    private final ObservationRegistry observations;
    private final SteadyScheduler scheduler = new SteadyScheduler();
    private final ScheduledTaskRegistrar registrar = new ScheduledTaskRegistrar();

    @GuardedBy("this") private final Map<PeriodicService, ScheduledTask> tasks = new LinkedHashMap<>();

    /**
     * Creates tasks for one worker, none yet. No thread is started before {@link #start}.
     *
     * @param worker what the names of the tasks begin with
     * @param observations where each execution is observed
     */
    public PeriodicTasks(String worker, ObservationRegistry observations) {
        this.worker = worker;
        this.observations = observations;
        scheduler.initialize();
        registrar.setTaskScheduler(scheduler);
    }

    /** Has the work of a service done from here on, unless the service has been started or stopped already. */
    public synchronized void start(PeriodicService service) {
        if (!service.isStartable()) {
            return;
        }
        if (tasks.isEmpty()) {
            var unused = scheduler.scheduleWithFixedDelay(this::revive, REVIVAL);
        }
        ScheduledTask scheduled = registrar.scheduleTriggerTask(
                new TriggerTask(new Execution(service, worker, observations), new Times(service)));
        if (scheduled != null) {
            tasks.put(service, scheduled);
        }
    }

    /** Returns the tasks of all services that have been started, in this order. */
    public synchronized Set<ScheduledTask> scheduled() {
        return Collections.unmodifiableSet(new LinkedHashSet<>(tasks.values()));
    }

    /** Returns the services that have been started, in this order. */
    public synchronized List<PeriodicService> services() {
        return List.copyOf(tasks.keySet());
    }

    /**
     * Stops all services and ends the threads.
     *
     * @param limit how long to wait for that
     * @return whether they have ended
     */
    public boolean stop(Duration limit) {
        List<PeriodicService> services = services();
        services.forEach(PeriodicService::beginStop);
        scheduler.shutdown();
        try {
            return scheduler.awaitThreads(limit);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return false;
        }
    }

    private void revive() {
        services().forEach(service -> service.revive(REVIVAL));
    }

    private record Execution(PeriodicService service, String worker, ObservationRegistry observations)
            implements Runnable {

        @Override
        public void run() {
            try {
                service.run(observations);
            } catch (RuntimeException | Error e) {
                throw e;
            } catch (Throwable e) {
                throw new IllegalStateException(e.toString(), e);
            }
        }

        /** What {@code /actuator/scheduledtasks} shows. */
        @Override
        public String toString() {
            return worker + ": " + service.purpose();
        }
    }

    private record Times(PeriodicService service) implements SteadyScheduler.Told {

        @Override
        public Instant nextExecution(TriggerContext context) {
            return service.next(context);
        }

        @Override
        public void accept(TimedTask task) {
            service.startedAs(task);
        }

        @Override
        public String toString() {
            return "when the task has asked for";
        }
    }
}
