package dev.pgworker.internal.engine.run;

import java.sql.SQLException;
import java.util.List;
import java.util.Map;

import dev.pgworker.internal.engine.queue.LocalQueue;
import dev.pgworker.internal.store.Claim;
import dev.pgworker.internal.store.ClaimStore;
import dev.pgworker.job.Job;

/**
 * Reads large payloads just before their jobs run, so that no more of them are in memory than run, and short ones of some that are next.
 * One thread reads at a time, which leaves connections to handlers. Thread-safe.
 */
public final class Payloads {

    private static final int MOST = 16;

    private final ClaimStore store;
    private final LocalQueue localQueue;

    /** Creates what reads for one worker. */
    public Payloads(ClaimStore store, LocalQueue localQueue) {
        this.store = store;
        this.localQueue = localQueue;
    }

    /**
     * Returns the job with its payload, on the calling thread; without one if the worker no longer holds the job.
     *
     * @throws SQLException if that cannot be read
     */
    synchronized Job read(Job job) throws SQLException {
        List<Claim> claims = localQueue.withoutPayload(job, MOST);
        if (!claims.isEmpty()) {
            localQueue.inFlight().setPayloads(claims, readAny(claims));
        }
        Job known = localQueue.inFlight().job(Claim.of(job));
        return known == null ? job : known;
    }

    /** What cannot be read keeps no other from being read. */
    private Map<Long, String> readAny(List<Claim> claims) throws SQLException {
        try {
            return store.payloads(claims, localQueue.inFlight().renewals());
        } catch (SQLException e) {
            if (claims.size() == 1) {
                throw e;
            }
            return store.payloads(claims.subList(0, 1), localQueue.inFlight().renewals());
        }
    }
}
