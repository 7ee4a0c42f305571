package dev.pgworker.internal.crontab;

import java.sql.SQLException;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CancellationException;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.BooleanSupplier;

import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;

import dev.pgworker.crontab.CronItem;
import dev.pgworker.event.WorkerEvent;
import dev.pgworker.internal.event.WorkerEvents;
import dev.pgworker.internal.failure.ErrorText;
import dev.pgworker.internal.failure.WorkerLog;
import dev.pgworker.internal.store.CrontabStore;
import dev.pgworker.internal.store.CrontabStore.Adding;
import dev.pgworker.internal.store.CrontabStore.Execution;

/** Executes due items: adds their jobs, and reports what became of them. Thread-safe. */
final class CronExecutor {

    private static final Logger log = WorkerLog.of(CronExecutor.class);

    private final String workerId;
    private final CronPlan plan;
    private final CrontabStore store;
    private final WorkerEvents events;

    /** Items of which it was logged that they have to wait. */
    private final Set<String> toldHeld = ConcurrentHashMap.newKeySet();

    /** Creates the executor of one worker. */
    CronExecutor(String workerId, CronPlan plan, CrontabStore store, WorkerEvents events) {
        this.workerId = workerId;
        this.plan = plan;
        this.store = store;
        this.events = events;
    }

    /** An item and a minute for which it is due. */
    record Due(CronItem item, Instant tick) {}

    /**
     * The identifiers of items for which none of the jobs has been added.
     *
     * @param failed because the database refuses to
     * @param held because an open transaction is in the way, or they take too long for others to wait
     */
    record Missed(Set<String> failed, Set<String> held) {

        static final Missed NONE = new Missed(Set.of(), Set.of());

        boolean isEmpty() {
            return failed.isEmpty() && held.isEmpty();
        }

        boolean contains(String identifier) {
            return failed.contains(identifier) || held.contains(identifier);
        }
    }

    /**
     * Executes what no worker has executed yet, and returns which items have to be tried again.
     *
     * @param stopping whether the thread is interrupted because it is to end
     */
    Missed execute(List<Due> due, boolean backfilled, Adding adding, BooleanSupplier stopping) throws SQLException {
        if (due.isEmpty()) {
            return Missed.NONE;
        }
        Map<String, Instant> latest = new HashMap<>();
        List<Execution> executions = new ArrayList<>();
        for (Due one : due) {
            latest.put(one.item().identifier(), one.tick());
            executions.add(execution(one, backfilled, stopping));
        }
        CrontabStore.Result result = store.execute(executions, adding);
        result.failed().forEach((identifier, error) -> {
            Instant tick = latest.getOrDefault(identifier, Instant.EPOCH);
            log.error("Cron item {} could not be executed for {} and will be retried", identifier, tick, error);
            events.publish(new WorkerEvent.CronJobFailed(workerId, identifier, tick, error));
        });
        for (Due one : due) {
            tellHeld(one, result.held().get(one.item().identifier()));
        }
        if (events.isWatched()) {
            result.added()
                    .forEach((execution, id) -> events.publish(new WorkerEvent.CronJobAdded(
                            workerId, execution.identifier(), execution.tick(), id, backfilled)));
            result.paused()
                    .forEach(execution -> events.publish(
                            new WorkerEvent.CronJobSkipped(workerId, execution.identifier(), execution.tick())));
        }
        return new Missed(result.failed().keySet(), result.held().keySet());
    }

    private void tellHeld(Due due, @Nullable SQLException error) {
        String identifier = due.item().identifier();
        if (error == null) {
            toldHeld.remove(identifier);
        } else if (CrontabStore.isSlow(error)) {
            log.debug("Cron item {} takes long for {}: others do not wait for it", identifier, due.tick());
        } else if (toldHeld.add(identifier)) {
            String jobKey = due.item().spec().jobKey();
            log.warn(
                    "Cron item {} waits for {}: an open transaction holds {}; retrying every few seconds",
                    identifier,
                    due.tick(),
                    jobKey == null
                            ? "a lock that it needs"
                            : "its job key \"" + jobKey + "\", or its row of the crontab");
            events.publish(new WorkerEvent.CronJobFailed(workerId, identifier, due.tick(), error));
        }
    }

    /** Returns what interceptors make of an execution; one that they refuse is passed over, and not tried again. */
    private Execution execution(Due due, boolean backfilled, BooleanSupplier stopping) {
        try {
            return plan.execution(due.item(), due.tick(), backfilled);
        } catch (Throwable e) {
            if (stopping.getAsBoolean()) {
                // The interceptor failed because of the stop: the next worker executes the item.
                throw new CancellationException("The worker stops");
            }
            // Interceptors are the application's: they may throw anything, and what they throw may not be readable.
            Throwable loggable = ErrorText.loggable(e);
            String identifier = due.item().identifier();
            log.error("Cron item {} was rejected for {}", identifier, due.tick(), loggable);
            Exception error = loggable instanceof Exception exception ? exception : new IllegalStateException(loggable);
            events.publish(new WorkerEvent.CronJobFailed(workerId, identifier, due.tick(), error));
            return Execution.passedOver(identifier, due.tick());
        }
    }
}
