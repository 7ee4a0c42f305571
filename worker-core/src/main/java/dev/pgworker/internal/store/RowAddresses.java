package dev.pgworker.internal.store;

import java.util.List;
import java.util.concurrent.atomic.AtomicReferenceArray;

import org.jspecify.annotations.Nullable;

import dev.pgworker.job.Job;

/**
 * Where the rows of jobs lay when this worker claimed them: a hint that spares the database looking for them. May forget any.
 * Thread-safe.
 */
final class RowAddresses {

    /**
     * A power of two, well above the jobs that a worker usually holds: ids that follow each other have places of their own, and those of
     * a thousand queues that take turns, too.
     */
    private static final int PLACES = 1 << 15;

    private final AtomicReferenceArray<@Nullable Row> rows = new AtomicReferenceArray<>(PLACES);

    private record Row(long id, String address) {}

    /** Remembers the address of a job, the {@code ctid} of its row. */
    void put(long id, String address) {
        rows.set(place(id), new Row(id, address));
    }

    /** Forgets the address of a job. */
    void forget(long id) {
        Row row = rows.get(place(id));
        if (row != null && row.id == id) {
            rows.compareAndSet(place(id), row, null);
        }
    }

    /** Returns the addresses of several jobs in their order, as the server reads an array; null if one of them is not known. */
    @Nullable String textOf(List<Job> jobs) {
        // The driver would ask the database for the number of the type.
        String[] known = jobs.size() <= 1 ? null : ofAll(jobs);
        return known == null ? null : "{\"" + String.join("\",\"", known) + "\"}";
    }

    private String @Nullable [] ofAll(List<Job> jobs) {
        String[] addresses = new String[jobs.size()];
        for (int i = 0; i < addresses.length; i++) {
            Row row = rows.get(place(jobs.get(i).id()));
            if (row == null || row.id != jobs.get(i).id()) {
                return null;
            }
            addresses[i] = row.address;
        }
        return addresses;
    }

    private static int place(long id) {
        return (int) (id & (PLACES - 1));
    }
}
