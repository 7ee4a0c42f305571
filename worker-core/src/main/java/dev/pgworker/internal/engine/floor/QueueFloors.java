package dev.pgworker.internal.engine.floor;

import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.atomic.AtomicLong;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import org.jspecify.annotations.Nullable;

import dev.pgworker.internal.store.Claimed;
import dev.pgworker.internal.store.IndexPosition;
import dev.pgworker.internal.store.QueueStart;
import dev.pgworker.internal.store.QueueStart.Floor;
import dev.pgworker.job.Job;

/**
 * Where claims and completions begin to look for jobs of queues: for each priority at a place below which no queue has a job, but
 * for some queues that have floors of their own. What finished jobs leave in the indexes lies below, and stays there as long as
 * anybody's snapshot may see it; who began at the first entry would read past all of it.
 *
 * <p>Only scans raise floors, since a queue that somebody else holds tells a claim nothing. While jobs of queues are claimed, a scan that
 * begins at the floors follows them a few times a second. What comes to lie below a floor was announced by whoever put it there,
 * with its time and priority, and lowers the floor; or a scan that begins at the first entry finds it, which is made seldom, for a
 * small share of the time. Until such a scan has been made, everything is looked at.
 *
 * <p>What this worker gives back lowers the floors before and until it is written: the order within a queue depends on it. They are in
 * use only while a scan from the first entry takes long.
 *
 * <p>Thread-safe.
 */
public final class QueueFloors {

    /** With more priorities than this the floors are not in use: each costs a step in each queue. */
    public static final int MOST_LEVELS = 8;

    /** So many floors may be those of single queues. */
    public static final int MOST_LANES = 64;

    /** Scans from the floors, from the first entry, and those from the first entry for which there is a reason take one part of so many of the time. */
    private static final int SHARE_FROM_FLOORS = 20;

    private static final int SHARE = 50;

    /**
     * While a scan from the first entry takes less, so do claims, and the floors are not in use: what another worker gives back lies
     * below them until that is announced, and a later job of its queue may start before it.
     */
    private static final Duration SLOW_SCAN = Duration.ofMillis(100);

    private static final int WANTED_SHARE = 10;

    private static final Duration INTERVAL_FROM_FLOORS = Duration.ofMillis(200);
    private static final Duration INTERVAL = Duration.ofSeconds(1);
    private static final Duration IDLE_INTERVAL = Duration.ofSeconds(5);
    private static final Duration SHORTEST_INTERVAL = Duration.ofMillis(20);

    /** So many claims are a reason for a scan from the floors whatever they bring: others may have run what was there. */
    private static final int MANY_CLAIMS = 8;

    /** A scan for jobs of queues, from these floors or, if they are null, from the first entry. Returns null for too many priorities. */
    @FunctionalInterface
    public interface Scan {
        @Nullable QueueStart from(@Nullable QueueStart floors) throws SQLException;
    }

    /** A write that gives jobs back. */
    @FunctionalInterface
    public interface Write<T> {
        T run() throws SQLException;
    }

    /** Called when a scan may be due sooner than {@link #nanosUntilScan} has said. */
    private final Runnable scanWantedSooner;

    /** Null while everything is looked at. Each queue that has floors of its own has one for each priority. */
    @GuardedBy("this") private @Nullable QueueStart current;

    /** Counts the times when everything was forgotten. */
    @GuardedBy("this") private long generation;

    /** The generation for which a scan from the first entry has been made, with whatever success. */
    @GuardedBy("this") private long scannedGeneration = -1;

    /** The earliest time of each priority that was announced since the last scan began. */
    @GuardedBy("this") private final Map<Integer, Instant> sinceScan = new HashMap<>();

    /** What is being given back: of each write the earliest time of each priority. */
    @GuardedBy("this") private final List<Map<Integer, Instant>> returning = new ArrayList<>();

    /** Counts what was announced, with {@link #forget} as something unknown. */
    private final AtomicLong news = new AtomicLong();

    @GuardedBy("this") private boolean scanWanted;

    /** Whether a claim has been made since the last scan from the first entry that is a reason for one, and whether one has brought jobs of queues. */
    @GuardedBy("this") private boolean claimTried;

    @GuardedBy("this") private boolean jobsClaimed;

    /** The claims since the last scan of any kind, and whether one has brought jobs of queues. */
    @GuardedBy("this") private int claims;

    @GuardedBy("this") private boolean jobsClaimedSinceAny;

    @GuardedBy("this") private final Turn fromFloors = new Turn();

    @GuardedBy("this") private final Turn fromFirst = new Turn();

    /** When a kind of scan was last made, and how long it took. */
    private static final class Turn {

        private long endedAt = System.nanoTime() - INTERVAL.toNanos();
        private long nanos;

        private long dueAt(Duration interval, int share) {
            return endedAt + Math.max(interval.toNanos(), share * nanos);
        }
    }

    private final Duration slowScan;

    /**
     * Creates floors that are not in use.
     *
     * @param scanWantedSooner called, on any thread, when a scan may be due sooner than {@link #nanosUntilScan} has said; must
     *     return at once
     */
    public QueueFloors(Runnable scanWantedSooner) {
        this(scanWantedSooner, SLOW_SCAN);
    }

    /** Creates floors that are in use while a scan from the first entry takes that long. */
    QueueFloors(Runnable scanWantedSooner, Duration slowScan) {
        this.scanWantedSooner = scanWantedSooner;
        this.slowScan = slowScan;
    }

    /** Returns where a claim looks for jobs of queues; null for everywhere. */
    public synchronized @Nullable QueueStart ofClaim() {
        return ofClaim(false);
    }

    /**
     * As {@link #ofClaim()}.
     *
     * @param poll whether the claim looks for what nobody has announced, while nothing is known to be due: where everything is looked
     *     at, it says itself whether that {@linkplain #took takes} long
     */
    public synchronized @Nullable QueueStart ofClaim(boolean poll) {
        if (poll && current == null && scannedGeneration == generation && !jobsClaimed) {
            return null;
        }
        claims++;
        if (!claimTried || claims == MANY_CLAIMS) {
            claimTried = true;
            scanWantedSooner.run();
        }
        return current;
    }

    /** Returns where to look for the next jobs of the queues of these jobs; null for everywhere. */
    public @Nullable QueueStart ofQueuesOf(Collection<Job> jobs) {
        Set<String> queues = new HashSet<>();
        for (Job job : jobs) {
            if (job.queueName() != null) {
                queues.add(job.queueName());
            }
        }
        return queues.isEmpty() ? null : of(queues);
    }

    /** Returns where to look for jobs of these queues; null for everywhere. */
    @Nullable QueueStart of(Collection<String> queueNames) {
        QueueStart start;
        synchronized (this) {
            start = current;
        }
        return start == null ? null : start.of(queueNames);
    }

    /** Returns which priorities the jobs of queues have; null if that is not known. */
    public synchronized @Nullable Collection<Integer> levels() {
        if (current == null) {
            return null;
        }
        Collection<Integer> levels = new TreeSet<>();
        current.floors().forEach(floor -> levels.add(floor.priority()));
        return levels;
    }

    /** Takes note of how long a claim took that looked everywhere for jobs of queues. */
    public synchronized void took(Duration time) {
        if (!claimTried && time.compareTo(slowScan.dividedBy(2)) >= 0) {
            claimTried = true;
            scanWantedSooner.run();
        }
    }

    /** Takes note of what a claim or a completion has brought. */
    public synchronized void claimed(Claimed claimed) {
        if (!jobsClaimedSinceAny && claimed.jobs().stream().anyMatch(job -> job.queueName() != null)) {
            jobsClaimedSinceAny = true;
            jobsClaimed = true;
            scanWantedSooner.run();
        }
    }

    /**
     * Takes note of jobs that were announced.
     *
     * @param earliest when the first of them is due; null if that is not known
     * @param priorities those that they have, none if there are no jobs that were not there before; null if they are not known
     */
    synchronized void announced(@Nullable Instant earliest, @Nullable Collection<Integer> priorities) {
        if (priorities != null && priorities.isEmpty()) {
            return;
        }
        news.incrementAndGet();
        if (priorities == null || earliest == null) {
            if (!scanWanted) {
                scanWanted = true;
                scanWantedSooner.run();
            }
            return;
        }
        priorities.forEach(priority -> announced(priority, earliest));
    }

    @GuardedBy("this") private void announced(int priority, Instant earliest) {
        sinceScan.merge(priority, earliest, QueueFloors::earlier);
        lower(priority, earliest);
    }

    @GuardedBy("this") private void lower(int priority, Instant earliest) {
        if (current != null) {
            current = lowered(current, priority, new IndexPosition(earliest, Long.MIN_VALUE));
        }
    }

    private static Instant earlier(Instant a, Instant b) {
        return a.isBefore(b) ? a : b;
    }

    /** Returns floors of which none of this priority is above a place; null if there are too many priorities. */
    private static @Nullable QueueStart lowered(QueueStart start, int priority, IndexPosition place) {
        boolean known = false;
        boolean above = false;
        for (Floor floor : start.floors()) {
            if (floor.priority() == priority) {
                known = true;
                above |= floor.place().compareTo(place) > 0;
            }
        }
        if (known && !above) {
            return start;
        }
        List<Floor> floors = new ArrayList<>(start.floors().size() + 1);
        for (Floor floor : start.floors()) {
            boolean lower = floor.priority() == priority && floor.place().compareTo(place) > 0;
            floors.add(lower ? floor.at(place) : floor);
        }
        if (!known) {
            floors.add(new Floor(0, null, priority, place));
        }
        return complete(floors);
    }

    /** Gives each queue that has a floor one for each priority, and puts them in order; returns null if there are too many priorities. */
    private static @Nullable QueueStart complete(List<Floor> floors) {
        SortedMap<Integer, Floor> general = new TreeMap<>();
        Map<Integer, Map<Integer, Floor>> lanes = new HashMap<>();
        for (Floor floor : floors) {
            if (floor.queueId() == 0) {
                general.put(floor.priority(), floor);
            } else {
                lanes.computeIfAbsent(floor.queueId(), id -> new HashMap<>()).put(floor.priority(), floor);
            }
        }
        if (general.size() > MOST_LEVELS) {
            return null;
        }
        List<Floor> all = new ArrayList<>();
        general.forEach((priority, ofAll) -> {
            all.add(ofAll);
            for (Map<Integer, Floor> lane : lanes.values()) {
                Floor any = lane.values().iterator().next();
                all.add(lane.getOrDefault(
                        priority, new Floor(any.queueId(), any.queueName(), priority, ofAll.place())));
            }
        });
        return new QueueStart(List.copyOf(all));
    }

    /**
     * Makes a write after which jobs of queues may lie at these places again.
     *
     * @param places of each priority the earliest time
     */
    public <T> T givingBack(Map<Integer, Instant> places, Write<T> write) throws SQLException {
        if (places.isEmpty()) {
            return write.run();
        }
        synchronized (this) {
            returning.add(places);
            places.forEach(this::lower);
        }
        try {
            return write.run();
        } finally {
            synchronized (this) {
                returning.removeIf(other -> isSame(other, places));
                places.forEach(this::announced);
            }
        }
    }

    @SuppressWarnings("ReferenceEquality") // one for each write
    private static boolean isSame(Object one, Object other) {
        return one == other;
    }

    /** Returns a number that is another one after jobs have come to places where none were before, as far as that is announced. */
    public long news() {
        return news.get();
    }

    /** Lets everything be looked at until the next scan from the first entry. */
    public synchronized void forget() {
        news.incrementAndGet();
        generation++;
        current = null;
        scanWantedSooner.run();
    }

    /** Returns how long to wait for the next scan; {@link Long#MAX_VALUE} while nobody needs one. */
    public synchronized long nanosUntilScan() {
        long time = System.nanoTime();
        return Math.max(0, Math.min(nanosUntilFirst(time), nanosUntilFromFloors(time)));
    }

    @GuardedBy("this") private long nanosUntilFirst(long time) {
        long wait = Long.MAX_VALUE;
        if (claimTried) {
            wait = (scannedGeneration == generation
                            ? fromFirst.dueAt(jobsClaimed ? INTERVAL : IDLE_INTERVAL, SHARE)
                            : fromFirst.dueAt(SHORTEST_INTERVAL, WANTED_SHARE))
                    - time;
        }
        return scanWanted ? Math.min(wait, fromFirst.dueAt(SHORTEST_INTERVAL, WANTED_SHARE) - time) : wait;
    }

    @GuardedBy("this") private long nanosUntilFromFloors(long time) {
        return current != null && (jobsClaimedSinceAny || claims >= MANY_CLAIMS)
                ? fromFloors.dueAt(INTERVAL_FROM_FLOORS, SHARE_FROM_FLOORS) - time
                : Long.MAX_VALUE;
    }

    /**
     * Looks for where the jobs are, if a scan is due; returns whether claims have passed any over. If that fails, everything is looked at until
     * a scan succeeds.
     */
    public boolean scan(Scan scan) throws SQLException {
        QueueStart before;
        QueueStart from;
        long madeFor;
        synchronized (this) {
            long time = System.nanoTime();
            boolean first = nanosUntilFirst(time) <= 0;
            if (!first && nanosUntilFromFloors(time) > 0) {
                return false;
            }
            before = current;
            from = first ? null : current;
            madeFor = generation;
            sinceScan.clear();
            claims = 0;
            jobsClaimedSinceAny = false;
            if (first) {
                scannedGeneration = generation;
                scanWanted = false;
                claimTried = false;
                jobsClaimed = false;
            }
        }
        long begin = System.nanoTime();
        try {
            QueueStart found = scan.from(from);
            boolean quick = from == null && System.nanoTime() - begin < slowScan.toNanos();
            return scanned(quick ? null : found, from == null ? before : null, madeFor);
        } catch (SQLException | RuntimeException | Error e) {
            giveUp();
            throw e;
        } finally {
            ended(from == null, System.nanoTime() - begin);
        }
    }

    private synchronized void ended(boolean first, long nanos) {
        Turn turn = first ? fromFirst : fromFloors;
        turn.endedAt = System.nanoTime();
        turn.nanos = nanos;
    }

    /** Forgets everything, and lets the next scan wait for its turn. */
    private synchronized void giveUp() {
        generation++;
        current = null;
        scannedGeneration = generation;
    }

    private synchronized boolean scanned(@Nullable QueueStart found, @Nullable QueueStart before, long madeFor) {
        if (generation != madeFor) {
            return false;
        }
        QueueStart was = current;
        current = found == null ? null : complete(found.floors());
        boolean passedOver = current != null && before != null && isBelow(current, before);
        if (current != null && was != null) {
            current = withLevelsOf(was, current);
        }
        sinceScan.forEach(this::lower);
        returning.forEach(places -> places.forEach(this::lower));
        return passedOver;
    }

    /** A priority of which all jobs run at the moment has none that a scan finds; they may fail, and are then due again without a word. */
    private static QueueStart withLevelsOf(QueueStart before, QueueStart found) {
        QueueStart all = found;
        for (Floor floor : before.floors()) {
            boolean known = all.floors().stream().anyMatch(other -> other.priority() == floor.priority());
            QueueStart more = known || floor.queueId() != 0 ? null : lowered(all, floor.priority(), floor.place());
            all = more == null ? all : more;
        }
        return all;
    }

    /** Returns whether there are jobs below floors. */
    private static boolean isBelow(QueueStart found, QueueStart floors) {
        Map<Integer, Map<Integer, IndexPosition>> places = new HashMap<>();
        for (Floor floor : floors.floors()) {
            places.computeIfAbsent(floor.priority(), priority -> new HashMap<>())
                    .put(floor.queueId(), floor.place());
        }
        for (Floor floor : found.floors()) {
            Map<Integer, IndexPosition> ofPriority = places.get(floor.priority());
            if (ofPriority == null) {
                return true;
            }
            IndexPosition before = ofPriority.getOrDefault(floor.queueId(), ofPriority.get(0));
            if (before != null && floor.place().compareTo(before) < 0) {
                return true;
            }
        }
        return false;
    }
}
