package dev.pgworker.internal.watch;

import java.sql.SQLException;
import java.time.Duration;

import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;

import dev.pgworker.history.HistoryLosses;
import dev.pgworker.history.HistorySettings;
import dev.pgworker.internal.failure.DatabaseFailure;
import dev.pgworker.internal.failure.Outage;
import dev.pgworker.internal.failure.WorkerLog;
import dev.pgworker.internal.lifecycle.PeriodicService;
import dev.pgworker.internal.store.HistoryStore;
import dev.pgworker.internal.store.KeptHistory;

/**
 * Has the schema keep a history by the settings, on {@code worker-history}: switches it on or off at the start, deletes
 * old entries, and finds out whether others have switched it. Where none is kept that is done once a minute.
 */
public final class HistoryKeeper extends PeriodicService {

    private static final Logger log = WorkerLog.of(HistoryKeeper.class);

    /** Between two looks while a history is kept: how long entries may be kept too long, or be too many. */
    private static final Duration INTERVAL = Duration.ofSeconds(20);

    private static final Duration IDLE_INTERVAL = Duration.ofMinutes(1);

    private final HistoryStore store;
    private final HistorySettings settings;
    private final KeptHistory history;
    private final Runnable whenTried;

    private volatile boolean tried;

    // Owned by the thread.
    private boolean applied;
    private boolean toldFailure;

    /**
     * Creates the service of one worker.
     *
     * @param history told whether a history is kept
     * @param whenTried called when {@link #isReady} becomes true
     */
    public HistoryKeeper(
            HistoryStore store, HistorySettings settings, KeptHistory history, Runnable whenTried, Outage outage) {
        super("worker-history", "keep the history", outage);
        this.store = store;
        this.settings = settings;
        this.history = history;
        this.whenTried = whenTried;
    }

    /**
     * Returns whether jobs need not wait any longer: the settings are in effect, so that the first jobs are in the history, too, or the first
     * attempt has failed.
     */
    public boolean isReady() {
        return tried;
    }

    /** Does once what the service does again and again, on the calling thread; for a worker whose services do not run. */
    public void lookOnce() {
        try {
            look();
        } catch (SQLException e) {
            log.debug("The history of jobs cannot be looked after", e);
        }
    }

    @Override
    protected Duration work() throws SQLException {
        look();
        return history.isOn() ? INTERVAL : IDLE_INTERVAL;
    }

    private void look() throws SQLException {
        try {
            if (!applied) {
                apply();
            }
            read();
            applied = true;
            ready();
            noteLosses(store.readLosses().orElse(null));
            store.tend();
        } catch (SQLException e) {
            boolean refused = DatabaseFailure.isAboutTheSchema(e);
            if (refused) {
                history.set(false);
            }
            tellFailure(refused, e);
            if (!refused) {
                throw e;
            }
        } finally {
            ready();
        }
    }

    private void ready() {
        if (!tried) {
            tried = true;
            whenTried.run();
        }
    }

    private void apply() throws SQLException {
        if (settings.enabled() == null || !store.keep(settings)) {
            return;
        }
        if (settings.enabled()) {
            log.info(
                    "The history of jobs is on: entries are kept for {} hours, at most {} of them, {} payloads",
                    settings.keepFor().toHours(),
                    settings.keepMost(),
                    settings.payloads() ? "with" : "without");
        } else {
            log.info("The history of jobs is off; its entries stay until they expire");
        }
    }

    private void noteLosses(@Nullable HistoryLosses losses) {
        HistoryLosses before = history.losses();
        history.setLosses(losses);
        if (losses != null && (before == null || losses.jobs() > before.jobs())) {
            log.warn(
                    "The history does not show the ends of {} jobs of the last day: {}",
                    losses.jobs(),
                    losses.reason());
        }
    }

    private void read() throws SQLException {
        boolean on = store.read();
        if (history.isOn() != on) {
            log.debug("Runs are told to the history: {}", on);
        }
        history.set(on);
    }

    /**
     * Where the settings ask for no history, a failure does not matter; nor does an outage once the settings are in
     * effect.
     */
    private void tellFailure(boolean refused, SQLException e) {
        if (settings.enabled() == null || (applied && !refused) || toldFailure) {
            log.debug("The history of jobs cannot be looked after", e);
            return;
        }
        toldFailure = true;
        String switched = settings.enabled() ? "on" : "off";
        if (refused) {
            log.warn(
                    "The history of jobs cannot be switched {} (pgworker.history.enabled): grant the worker's role the rights of"
                            + " docs/schema.md on the schema, and migrate it",
                    switched,
                    e);
        } else {
            log.warn(
                    "The history of jobs could not be switched {} yet; jobs start all the same, and their entries may be missing"
                            + " until the worker succeeds",
                    switched,
                    e);
        }
    }
}
