package dev.pgworker.internal.engine.claim;

import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Set;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import dev.pgworker.event.WorkerEvent;
import dev.pgworker.internal.engine.WorkerContext;
import dev.pgworker.internal.engine.run.JobExecutor;
import dev.pgworker.internal.failure.DatabaseFailure;
import dev.pgworker.internal.store.CarefulClaimRequest;
import dev.pgworker.internal.store.CarefullyClaimed;
import dev.pgworker.internal.store.ClaimRequest;
import dev.pgworker.internal.store.ClaimStore;
import dev.pgworker.internal.store.Claimed;
import dev.pgworker.internal.store.Unreadable;

/**
 * Makes the claims that the {@link ClaimPlanner} plans, and hands what they bring to the executor.
 *
 * <p>Owned by one thread, but for {@link #cancel} and {@link #fetchOdd}.
 */
public final class Fetcher {

    private static final Logger log = LoggerFactory.getLogger(Fetcher.class);

    private static final int CANCELLATIONS = 10;
    private static final Duration BETWEEN_CANCELLATIONS = Duration.ofMillis(100);

    private final WorkerContext context;
    private final ClaimStore store;
    private final ServedTasks tasks;
    private final ClaimPlanner planner;
    private final ClaimTracker tracker;
    private final JobExecutor executor;

    /** Creates a fetcher for one worker. */
    public Fetcher(
            WorkerContext context,
            ClaimStore store,
            ServedTasks tasks,
            ClaimPlanner planner,
            ClaimTracker tracker,
            JobExecutor executor) {
        this.context = context;
        this.store = store;
        this.tasks = tasks;
        this.planner = planner;
        this.tracker = tracker;
        this.executor = executor;
    }

    /** Looks up the tasks whose jobs are to be claimed. */
    public void learnTasks() throws SQLException {
        planner.learnTasks();
    }

    /** Says that the next claim looks for what nobody has announced, and that nothing is known to be due. */
    void polls() {
        planner.polls();
    }

    Set<String> identifiers() {
        return tasks.identifiers();
    }

    /** Gives back what has waited too long for a handler, and starts what could not be started before. */
    public void tend() {
        executor.giveBackExpired();
        executor.startMissingRunners();
    }

    /**
     * Claims jobs. Where the database refuses that, the answer is that there may be more: the next claim finds out which.
     *
     * @param room how many there is room for, at least one
     * @throws ForbiddenFlagsException if it is unknown which jobs may be claimed
     */
    public FetchResult fetch(int room) throws SQLException {
        if (tasks.ordinary().identifiers().isEmpty()) {
            return new FetchResult(0, false);
        }
        Collection<String> forbidden = planner.forbidden();
        boolean careful = planner.isCareful();
        int wanted = planner.wanted(room);
        context.publish(() -> new WorkerEvent.FetchStarted(context.workerId(), wanted));
        try {
            return careful ? fetchCarefully(wanted, forbidden) : fetchMany(wanted, forbidden);
        } catch (SQLException | RuntimeException | Error e) {
            planner.failed(careful, e);
            publishFailure(e);
            if (!careful && DatabaseFailure.of(e) == DatabaseFailure.REFUSED) {
                return new FetchResult(0, true);
            }
            throw e;
        }
    }

    private FetchResult fetchMany(int wanted, Collection<String> forbidden) throws SQLException {
        ClaimRequest request = planner.next(wanted, forbidden);
        long before = System.nanoTime();
        Claimed claimed = claim(request);
        Duration took = Duration.ofNanos(System.nanoTime() - before);
        publish(claimed.size());
        return planner.claimed(request, claimed, took);
    }

    /**
     * Claims jobs of the second chain on its thread, while the jobs are split; returns whether there may be more of them. What
     * goes wrong is left to {@link #fetch}, which meets it, too.
     *
     * @param room how many there is room for, at least one
     */
    boolean fetchOdd(int room) throws SQLException {
        ClaimRequest request = planner.nextOdd(room, planner.forbidden());
        if (request == null) {
            return false;
        }
        context.publish(() -> new WorkerEvent.FetchStarted(context.workerId(), room));
        long before = System.nanoTime();
        Claimed claimed;
        try {
            claimed = claim(request);
        } catch (SQLException | RuntimeException | Error e) {
            publishFailure(e);
            throw e;
        }
        publish(claimed.size());
        return planner.claimedOdd(request, claimed, Duration.ofNanos(System.nanoTime() - before));
    }

    private Claimed claim(ClaimRequest request) throws SQLException {
        return tracker.during(() -> {
            Claimed claimed = store.claim(tasks.ordinary(), request);
            executor.submit(claimed);
            return claimed;
        });
    }

    /** Claims jobs that can be claimed, and fails if there are none because the server lacks something. */
    private FetchResult fetchCarefully(int wanted, Collection<String> forbidden) throws SQLException {
        CarefulClaimRequest request = planner.nextCareful(wanted, forbidden);
        Throwable unreadable = planner.unreadable();
        CarefullyClaimed answer = tracker.during(() -> {
            CarefullyClaimed claimed = store.claimCarefully(tasks.ordinary(), request);
            executor.submit(unreadable == null ? claimed.claimed() : allUnreadable(claimed.claimed(), unreadable));
            return claimed;
        });
        FetchResult result = planner.claimedCarefully(answer);
        publish(result.count());
        return result;
    }

    private static Claimed allUnreadable(Claimed claimed, Throwable why) {
        List<Unreadable> jobs = new ArrayList<>(claimed.unreadable());
        claimed.jobs().forEach(job -> jobs.add(new Unreadable(job, why)));
        return new Claimed(List.of(), jobs, claimed.cut(), claimed.at(), claimed.passedOver());
    }

    /** Ends claims that are under way or about to begin, after the last one was asked for. Returns at once. */
    public void cancel() {
        try {
            Thread thread = new Thread(this::cancelNow, "worker-claim-cancel");
            thread.setDaemon(true);
            thread.start();
        } catch (Error e) {
            log.warn("No thread is available to cancel a claim; it may take effect after the worker has stopped", e);
        }
    }

    /** The server may not answer, and ignores a cancellation that comes before the statement. */
    private void cancelNow() {
        try {
            for (int i = 0; i < CANCELLATIONS && store.cancelClaims(); i++) {
                Thread.sleep(BETWEEN_CANCELLATIONS.toMillis());
            }
        } catch (SQLException e) {
            log.debug("The claim could not be cancelled", e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private void publish(int count) {
        context.publish(() -> count == 0
                ? new WorkerEvent.FetchEmpty(context.workerId())
                : new WorkerEvent.JobsFetched(context.workerId(), count));
    }

    private void publishFailure(Throwable e) {
        Exception error = e instanceof Exception exception ? exception : new IllegalStateException(e);
        context.publish(() -> new WorkerEvent.FetchFailed(context.workerId(), error));
    }
}
