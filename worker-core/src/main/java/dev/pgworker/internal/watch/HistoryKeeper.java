package dev.pgworker.internal.watch;

import java.sql.SQLException;
import java.time.Duration;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import dev.pgworker.history.HistorySettings;
import dev.pgworker.internal.failure.DatabaseFailure;
import dev.pgworker.internal.failure.Outage;
import dev.pgworker.internal.lifecycle.PeriodicService;
import dev.pgworker.internal.store.HistoryStore;
import dev.pgworker.internal.store.KeptHistory;

/**
 * Has the schema keep a history as the settings say, on {@code worker-history}: switches it on or off at the start, drops old
 * entries, and finds out whether others have switched it. Where none is kept that is one small query a minute.
 */
public final class HistoryKeeper extends PeriodicService {

    private static final Logger log = LoggerFactory.getLogger(HistoryKeeper.class);

    /** Between two looks while a history is kept: how long entries may be kept too long, or be too many. */
    private static final Duration INTERVAL = Duration.ofSeconds(20);

    private static final Duration IDLE_INTERVAL = Duration.ofMinutes(1);

    /** Between two tries to get the locks for switching it. */
    private static final Duration BUSY_INTERVAL = Duration.ofMillis(250);

    private static final Duration SHORT_INTERVAL = Duration.ofMillis(20);

    /** So many tries are worth a word. */
    private static final int MANY_TRIES = 120;

    /** How long jobs wait at the start for it to be known whether a history is kept. */
    private static final Duration LONGEST_WAIT = Duration.ofSeconds(2);

    private final HistoryStore store;
    private final HistorySettings settings;
    private final KeptHistory history;
    private final Runnable whenKnown;
    private final long createdAt = System.nanoTime();

    private volatile boolean known;

    // Owned by the thread.
    private boolean applied;
    private boolean toldRefusal;
    private int triesInVain;

    /**
     * Creates the service of one worker.
     *
     * @param history told whether a history is kept
     * @param whenKnown called when that is known for the first time
     */
    public HistoryKeeper(
            HistoryStore store, HistorySettings settings, KeptHistory history, Runnable whenKnown, Outage outage) {
        super("worker-history", "keep the history", outage);
        this.store = store;
        this.settings = settings;
        this.history = history;
        this.whenKnown = whenKnown;
    }

    /** Returns whether jobs need not wait any longer, so that the first ones are in the history, too. */
    public boolean isReady() {
        return known || System.nanoTime() - createdAt >= LONGEST_WAIT.toNanos();
    }

    /** Does once what the service does again and again, on the calling thread; for a worker whose services do not run. */
    public void lookOnce() {
        try {
            for (int i = 0; i < 4 && !look(); i++) {
                Thread.sleep(BUSY_INTERVAL.toMillis());
            }
        } catch (SQLException e) {
            log.debug("It is not known whether a history is kept", e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    @Override
    protected Duration work() throws SQLException {
        boolean done = look();
        if (!known && (done || isReady())) {
            known = true;
            whenKnown.run();
        }
        if (!done) {
            return known ? BUSY_INTERVAL : SHORT_INTERVAL;
        }
        return history.isOn() ? INTERVAL : IDLE_INTERVAL;
    }

    /** Returns false if locks of others are in the way. */
    private boolean look() throws SQLException {
        try {
            if (!applied) {
                apply();
                applied = true;
            }
            return tend();
        } catch (SQLException e) {
            if (!DatabaseFailure.isAboutTheSchema(e)) {
                throw e;
            }
            history.set(false);
            tellRefusal(e);
            return true;
        }
    }

    private void apply() throws SQLException {
        if (settings.enabled() == null || !store.keep(settings)) {
            return;
        }
        if (settings.enabled()) {
            log.info(
                    "The history of jobs is on: entries are kept for {} hours, {} of them at most, {} payloads",
                    settings.keepFor().toHours(),
                    settings.keepMost(),
                    settings.payloads() ? "with" : "without");
        } else {
            log.info("The history of jobs is off; its entries stay until they expire");
        }
    }

    private boolean tend() throws SQLException {
        HistoryStore.State state = store.read();
        boolean done = !state.isUsed() || store.tend();
        if (state.wanted() != state.kept()) {
            // Another worker may be switching it just now.
            state = store.read();
            done = state.wanted() == state.kept();
        }
        if (history.isOn() != state.telling()) {
            log.debug("Runs are told to the history: {}", state.telling());
        }
        history.set(state.telling());
        if (!done && ++triesInVain == MANY_TRIES) {
            log.warn(
                    "The history of jobs cannot be switched {} while other sessions keep the jobs table locked; the worker"
                            + " keeps trying",
                    state.wanted() ? "on" : "off");
        } else if (done) {
            triesInVain = 0;
        }
        return done;
    }

    /** Where nobody asked for a history, the lack of a right does not matter. */
    private void tellRefusal(SQLException e) {
        if (settings.enabled() != null && !toldRefusal) {
            toldRefusal = true;
            log.warn(
                    "The history of jobs cannot be switched {} (worker.history.enabled): grant the worker's role the rights of"
                            + " docs/schema.md on the schema, and migrate it",
                    settings.enabled() ? "on" : "off",
                    e);
        } else {
            log.debug("The history of jobs cannot be looked after", e);
        }
    }
}
