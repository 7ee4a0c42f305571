package dev.pgworker.internal.engine.floor;

import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.SortedMap;
import java.util.TreeMap;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import org.jspecify.annotations.Nullable;

import dev.pgworker.internal.store.Floor;
import dev.pgworker.internal.store.Floor.Kind;
import dev.pgworker.internal.store.Look;

/**
 * Where claims begin to look, for each kind of jobs: finished jobs stay in the index until a vacuum, and a claim that begins at the
 * first entry reads them all. A statement that proves that no due job lies before a place raises the floor to it; an announcement of
 * jobs that lie before it lowers it; a look at all jobs finds what was not announced. Where announcements may have been
 * missed, all floors are forgotten, and a look at all jobs comes first.
 *
 * <p>Thread-safe. What is announced while a statement is under way limits how far that may raise.
 */
public final class Floors {

    /** So long a transaction that adds jobs may take before it announces them. */
    private static final Duration MARGIN = Duration.ofMillis(200);

    /** A notice that jobs have become due may concern any of them. */
    private static final Instant ANYWHERE = Instant.MIN;

    @GuardedBy("this") private final SortedMap<Kind, Floor> floors = new TreeMap<>();

    @GuardedBy("this") private final List<Reading> readings = new ArrayList<>();

    private final boolean queued;

    @GuardedBy("this") private boolean known;

    /** How often the floors were forgotten. */
    @GuardedBy("this") private int epoch;

    /** Creates floors that are not known. */
    public Floors() {
        this(true);
    }

    /**
     * Creates floors that are not known.
     *
     * @param queued whether jobs of queues have some, too
     */
    public Floors(boolean queued) {
        this.queued = queued;
    }

    /** A statement that begins at the floors, while it is under way and its answer is used. */
    public final class Reading implements AutoCloseable {

        private final SortedMap<Kind, Floor> start;
        private final Map<Kind, Floor> announced = new HashMap<>();
        private final int begun;

        private Reading(SortedMap<Kind, Floor> start, int begun) {
            this.start = start;
            this.begun = begun;
        }

        /** Returns the floors at which it begins. */
        public Collection<Floor> floors() {
            return start.values();
        }

        /** Raises the floor of this kind as far as nothing was announced meanwhile: before that place there is no due job. */
        public void raise(Floor to) {
            synchronized (Floors.this) {
                Floor current = floors.get(to.kind());
                if (current == null || !known || begun != epoch) {
                    return;
                }
                Floor limit = announced.get(to.kind());
                Floor next = limit != null && limit.isBefore(to) ? limit : to;
                if (current.isBefore(next)) {
                    floors.put(to.kind(), next);
                }
            }
        }

        /** As {@link #raise}, for a place that is known by a statement as of that time. */
        public void raise(Floor to, Instant at) {
            Instant safe = at.minus(MARGIN);
            raise(to.runAt().isAfter(safe) ? new Floor(to.kind(), safe, 0) : to);
        }

        /** Takes what a look at all jobs has found that began when this did. */
        public void learn(Look look) {
            synchronized (Floors.this) {
                if (!known) {
                    floors.clear();
                } else if (begun == epoch) {
                    floors.keySet().removeIf(kind -> !look.first().containsKey(kind));
                }
                Instant safe = look.at().minus(MARGIN);
                putIfAbsent(new Kind(false, 0), safe);
                if (queued) {
                    putIfAbsent(new Kind(true, 0), safe);
                }
                for (Floor found : look.first().values()) {
                    lowerTo(found.runAt().isAfter(safe) ? new Floor(found.kind(), safe, 0) : found);
                    raise(found, look.at());
                }
                announced.values().forEach(Floors.this::lowerTo);
                known |= begun == epoch;
            }
        }

        @Override
        public void close() {
            synchronized (Floors.this) {
                readings.remove(this);
            }
        }
    }

    /** Begins a statement that uses the floors. */
    public synchronized Reading read() {
        Reading reading = new Reading(new TreeMap<>(floors), epoch);
        readings.add(reading);
        return reading;
    }

    /** Returns whether floors are known; if not, a look at all jobs is to come before the next claim. */
    public synchronized boolean areKnown() {
        return known;
    }

    /** Forgets all floors: jobs may lie anywhere. */
    public synchronized void forget() {
        known = false;
        epoch++;
    }

    /**
     * Takes note that jobs of this kind have come to lie from that place on.
     *
     * @param runAt when the first of them is due; null for any time
     */
    public synchronized void announced(Kind kind, @Nullable Instant runAt) {
        if (kind.queued() && !queued) {
            return;
        }
        Floor place = new Floor(kind, runAt == null ? ANYWHERE : runAt, 0);
        lowerTo(place);
        for (Reading reading : readings) {
            reading.announced.merge(kind, place, (a, b) -> a.isBefore(b) ? a : b);
        }
    }

    @GuardedBy("this") private void putIfAbsent(Kind kind, Instant place) {
        floors.putIfAbsent(kind, new Floor(kind, place, 0));
    }

    @GuardedBy("this") private void lowerTo(Floor place) {
        floors.merge(place.kind(), place, (a, b) -> a.isBefore(b) ? a : b);
    }
}
