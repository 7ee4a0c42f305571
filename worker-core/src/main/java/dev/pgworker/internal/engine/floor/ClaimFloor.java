package dev.pgworker.internal.engine.floor;

import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.TreeSet;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import org.jspecify.annotations.Nullable;

import dev.pgworker.internal.store.ClaimStart;
import dev.pgworker.internal.store.Claimed;
import dev.pgworker.internal.store.FloorScan;
import dev.pgworker.internal.store.IndexPosition;
import dev.pgworker.job.Job;

/**
 * Where claims begin to look for jobs without a queue: at which priorities, and after which place nothing is left that this
 * worker may run. What finished jobs leave in the index lies before, and stays there as long as anybody's snapshot may see
 * it; a claim that began at the first entry would read past all of it.
 *
 * <p>A claim that brings all there is raises the floors to its own time, less the time that a transaction which adds jobs
 * usually takes; a full one to the last job that it brought. What comes to lie below a floor after that was announced by
 * whoever put it there, with its time and priority, and lowers the floor for one claim; or it is a stray that a scan finds,
 * which reads everything and therefore is made seldom, beside the claims, and for a small share of the time. Until a scan has
 * said which priorities there are, claims look at all jobs; where the last of these has ended, the floors begin. While nothing
 * is claimed and scans take no time, the claims of the poll look at all jobs instead, and none is made.
 *
 * <p>For a while the jobs may be split between two chains of claims, by whether their ids are even or odd: each chain then has
 * floors of its own, and the lower ones hold when they are joined.
 *
 * <p>Safe for use by many threads: claims are noted by {@code worker-fetch} and {@code worker-fetch-2}, announcements by
 * {@code worker-listen}, scans by {@code worker-scan}.
 */
public final class ClaimFloor {

    /** There are no more priorities than this. */
    public static final int MOST_LEVELS = 1 << Short.SIZE;

    /** The strays that one scan brings, and beyond which none are taken from announcements. */
    public static final int MOST_STRAYS = 10_000;

    /** The strays that one claim looks at: others may have taken most of them. */
    static final int MOST_SOUGHT = 1_000;

    /** A job is due when the transaction that adds it begins, and seen when that ends. */
    private static final Duration LAG = Duration.ofMillis(200);

    /** How far an announced job lowers the floor; an earlier one whose id is not known is left to a scan, unless scans take no time. */
    private static final Duration DEEPEST = Duration.ofSeconds(10);

    private static final Duration CHEAP_SCAN = Duration.ofMillis(10);

    /** Scans take one part of so many of the time, and those for which there is a reason one of so many. */
    private static final int SHARE = 50;

    private static final int WANTED_SHARE = 10;

    private static final Duration SCAN_INTERVAL = Duration.ofSeconds(1);
    private static final Duration IDLE_SCAN_INTERVAL = Duration.ofSeconds(5);
    private static final Duration SHORTEST_SCAN_INTERVAL = Duration.ofMillis(20);

    private static final int MOST_ANNOUNCED = 512;

    /** The generation of a claim that says nothing about the floors. */
    private static final long NO_CLAIM = -1;

    /** A scan at everything. */
    @FunctionalInterface
    public interface Scan {
        FloorScan from(ClaimStart start) throws SQLException;
    }

    /** Called when a scan may be due sooner than {@link #nanosUntilScan} has said. */
    private final Runnable scanWantedSooner;

    /** The last claim of those that have looked everywhere because the priorities are not known. */
    private record BeforeScan(Claimed claimed, boolean full, Duration took) {}

    @GuardedBy("this") private @Nullable BeforeScan beforeScan;

    /** Whether the floors are in use. */
    @GuardedBy("this") private boolean inUse;

    /** Of all jobs, or of those with even ids while they are split. */
    @GuardedBy("this") private final Side main = new Side();

    /** Of those with odd ids; null unless they are split. */
    @GuardedBy("this") private @Nullable Side odd;

    /** Which of the priorities to look at, unless the jobs are split. */
    @GuardedBy("this") private final RestingPriorities resting = new RestingPriorities();

    @GuardedBy("this") private final Set<Long> strays = new LinkedHashSet<>();

    /** The flags that were forbidden to the claims that raised the floors. */
    @GuardedBy("this") private Set<String> forbidden = Set.of();

    /** Counts the times when everything was forgotten. */
    @GuardedBy("this") private long generation;

    /** Whether a claim has been made from the floors since the last scan, and whether one has brought jobs. */
    @GuardedBy("this") private boolean claimTried;

    @GuardedBy("this") private boolean jobsClaimed;

    @GuardedBy("this") private boolean scanWanted;

    /** The priorities that were announced since the last scan began. */
    @GuardedBy("this") private final Set<Integer> announcedSinceScan = new HashSet<>();

    /** The generation for which a scan has been made, with whatever success. */
    @GuardedBy("this") private long scannedGeneration = -1;

    @GuardedBy("this") private long scanEndedAt = System.nanoTime() - SCAN_INTERVAL.toNanos();

    @GuardedBy("this") private long wantedScanEndedAt = scanEndedAt;

    /** How long scans take: the shorter of the last two, as a machine that stands still for a moment says nothing about the next. */
    @GuardedBy("this") private long scanNanos;

    @GuardedBy("this") private long lastScanNanos = Long.MAX_VALUE;

    /**
     * Creates floors that are not in use.
     *
     * @param scanWantedSooner called, on any thread, when a scan may be due sooner than {@link #nanosUntilScan} has said; must
     *     return at once
     */
    public ClaimFloor(Runnable scanWantedSooner) {
        this.scanWantedSooner = scanWantedSooner;
    }

    /** The floors of one chain of claims. Guarded by the floor that it belongs to. */
    private static final class Side {

        private final TreeMap<Integer, IndexPosition> floors = new TreeMap<>();

        /** From when on the next claim looks at a priority, because of what was announced. */
        private final Map<Integer, Instant> announced = new HashMap<>();

        /** Of each priority the earliest time that was announced since the last claim began. */
        private final Map<Integer, Instant> sinceClaim = new HashMap<>();

        /** The generation of the last claim, which says nothing about floors that were set anew meanwhile. */
        private long claimGeneration = NO_CLAIM;

        private Side copy() {
            Side copy = new Side();
            copy.floors.putAll(floors);
            copy.announced.putAll(announced);
            copy.sinceClaim.putAll(sinceClaim);
            return copy;
        }

        private void clear() {
            floors.clear();
            announced.clear();
            sinceClaim.clear();
        }

        /** Lowers the floors to what has been announced. */
        private void takeAnnounced() {
            announced.forEach(
                    (priority, runAt) -> floors.merge(priority, new IndexPosition(runAt, Long.MIN_VALUE), Side::lower));
            announced.clear();
        }

        private static IndexPosition lower(IndexPosition one, IndexPosition other) {
            return one.compareTo(other) < 0 ? one : other;
        }

        private void raise(int priority, IndexPosition place) {
            floors.computeIfPresent(priority, (same, old) -> old.compareTo(place) < 0 ? place : old);
        }

        /** Takes over what the other one has to look at; a claim that is under way knows nothing of that. */
        private void join(Side other) {
            claimGeneration = NO_CLAIM;
            other.takeAnnounced();
            other.floors.forEach((priority, place) -> floors.merge(priority, place, Side::lower));
            other.sinceClaim.forEach((priority, runAt) -> sinceClaim.merge(priority, runAt, ClaimFloor::earlier));
        }
    }

    @GuardedBy("this") private List<Side> sides() {
        return odd == null ? List.of(main) : List.of(main, odd);
    }

    /**
     * Splits the jobs between two chains of claims until {@link #join}; returns false if that is so already, the floors are not
     * in use, or there are too many priorities.
     */
    public synchronized boolean split() {
        if (!inUse || odd != null || main.floors.size() > RestingPriorities.MOST_AT_ONCE) {
            return false;
        }
        odd = main.copy();
        return true;
    }

    /** Returns whether another chain claims the jobs with odd ids. */
    public synchronized boolean isSplit() {
        return odd != null;
    }

    /** Ends a split; the second chain has no claim under way. */
    public synchronized void join() {
        if (odd != null) {
            main.join(odd);
            odd = null;
        }
    }

    /**
     * Returns where the next claim, to which these flags are forbidden, looks; null for everywhere.
     *
     * @param whole whether it looks at odd ids, too, although the jobs are split
     */
    public synchronized @Nullable ClaimStart current(Collection<String> forbiddenFlags, boolean whole) {
        return current(forbiddenFlags, whole, false);
    }

    /**
     * As {@link #current(Collection, boolean)}.
     *
     * @param poll whether the claim looks for what nobody has announced, while nothing is known to be due
     */
    public synchronized @Nullable ClaimStart current(Collection<String> forbiddenFlags, boolean whole, boolean poll) {
        if (!forbidden.equals(Set.copyOf(forbiddenFlags))) {
            forget();
            forbidden = Set.copyOf(forbiddenFlags);
        }
        if (poll && isAsGoodAsAScan()) {
            begin(main);
            return null;
        }
        if (!claimTried) {
            claimTried = true;
            scanWantedSooner.run();
        }
        if (!inUse) {
            main.sinceClaim.clear();
            main.claimGeneration = generation;
            return null;
        }
        begin(main);
        SortedMap<Integer, IndexPosition> floors = whole ? lowest() : new TreeMap<>(main.floors);
        return new ClaimStart(
                odd == null ? resting.pick(floors) : floors,
                strays.stream().limit(MOST_SOUGHT).toList());
    }

    /**
     * Returns whether a claim that looks at all jobs costs no more than one from the floors and the scan that has to follow, as far as
     * is known: a scan since the last jobs were announced, which may be millions of other workers, took no time.
     */
    @GuardedBy("this") private boolean isAsGoodAsAScan() {
        return inUse
                && odd == null
                && strays.isEmpty()
                && !jobsClaimed
                && !scanWanted
                && announcedSinceScan.isEmpty()
                && Math.max(scanNanos, lastScanNanos) <= CHEAP_SCAN.toNanos()
                && main.floors.size() <= RestingPriorities.MOST_AT_ONCE
                && resting.nanosUntilFirstEnd() == Long.MAX_VALUE;
    }

    @GuardedBy("this") private SortedMap<Integer, IndexPosition> lowest() {
        SortedMap<Integer, IndexPosition> lowest = new TreeMap<>(main.floors);
        if (odd != null) {
            odd.floors.forEach((priority, place) -> lowest.merge(priority, place, Side::lower));
        }
        return lowest;
    }

    /** Returns where the next claim of the second chain looks, to which these flags are forbidden; null if there is to be none. */
    public synchronized @Nullable ClaimStart currentOfOdd(Collection<String> forbiddenFlags) {
        if (odd == null || !forbidden.equals(Set.copyOf(forbiddenFlags))) {
            return null;
        }
        begin(odd);
        return new ClaimStart(new TreeMap<>(odd.floors), List.of());
    }

    @GuardedBy("this") private void begin(Side side) {
        keepAnnouncedBelow(side);
        side.takeAnnounced();
        side.claimGeneration = generation;
    }

    /** What was announced during a claim may lie below the floor that the claim has raised. */
    @GuardedBy("this") private boolean keepAnnouncedBelow(Side side) {
        boolean any = false;
        for (Map.Entry<Integer, Instant> one : side.sinceClaim.entrySet()) {
            IndexPosition floor = side.floors.get(one.getKey());
            if (floor != null && one.getValue().isBefore(floor.runAt())) {
                any |= lower(side, one.getKey(), one.getValue(), floor);
            }
        }
        side.sinceClaim.clear();
        return any;
    }

    /** Returns false if that is left to a scan. */
    @GuardedBy("this") private boolean lower(Side side, int priority, Instant runAt, IndexPosition floor) {
        if (scanNanos > CHEAP_SCAN.toNanos() && !runAt.isAfter(floor.runAt().minus(DEEPEST))) {
            wantScan();
            return false;
        }
        side.announced.merge(priority, runAt, ClaimFloor::earlier);
        return true;
    }

    private static Instant earlier(Instant a, Instant b) {
        return a.isBefore(b) ? a : b;
    }

    /** Returns at which priorities claims look at present; null for all. */
    public synchronized @Nullable Collection<Integer> levels() {
        if (!inUse) {
            return null;
        }
        Set<Integer> levels = new TreeSet<>(main.announced.keySet());
        for (int level : main.floors.keySet()) {
            if (!resting.isResting(level)) {
                levels.add(level);
            }
        }
        return levels;
    }

    /** Returns in how many nanoseconds claims look at another priority; {@link Long#MAX_VALUE} if at all. */
    public synchronized long nanosUntilOtherLevel() {
        return resting.nanosUntilFirstEnd();
    }

    /** Returns whether there are so many priorities that it is worth knowing when the next job of each is due. */
    public synchronized boolean hasManyLevels() {
        return inUse && odd == null && main.floors.size() > RestingPriorities.MOST_AT_ONCE;
    }

    /**
     * Lets priorities rest.
     *
     * @param start where the last claim looked, and left nothing that was due
     * @param due when the next job of each is due, for those that have one
     */
    public synchronized void rest(ClaimStart start, Map<Integer, Duration> due) {
        if (inUse && odd == null && main.claimGeneration == generation) {
            resting.rest(start.floors().keySet(), due);
        }
    }

    /**
     * Takes note of a claim.
     *
     * @param start where it looked, as {@link #current} said
     * @param full whether it may have left due jobs behind
     * @param took how long, at most, ago it began when it was answered
     * @return whether the next claim is to look for jobs that were announced meanwhile, for other strays, or at other priorities
     */
    public synchronized boolean claimed(@Nullable ClaimStart start, Claimed claimed, boolean full, Duration took) {
        if (claimed.size() > 0 && !jobsClaimed) {
            jobsClaimed = true;
            scanWantedSooner.run();
        }
        boolean announcedBelow = noted(main, start, claimed, full, took);
        boolean otherStrays = claimed.at() != null && !strays.isEmpty();
        boolean otherLevels = odd == null && resting.claimed(full);
        if (full && start != null && hasManyLevels()) {
            Job last = lastWithoutQueue(start, claimed);
            if (last != null) {
                resting.doze(start.floors().headMap(last.priority()).keySet());
            }
        }
        return announcedBelow || otherStrays || otherLevels;
    }

    /** Takes note of a claim of the second chain, as {@link #claimed}. */
    public synchronized void claimedByOdd(ClaimStart start, Claimed claimed, boolean full, Duration took) {
        if (odd != null) {
            boolean unused = noted(odd, start, claimed, full, took);
        }
    }

    @GuardedBy("this") private boolean noted(Side side, @Nullable ClaimStart start, Claimed claimed, boolean full, Duration took) {
        if (side.claimGeneration != generation || claimed.at() == null) {
            return false;
        }
        if (start == null) {
            scanNanos = Math.max(scanNanos, took.toNanos());
        }
        if (!inUse) {
            beforeScan = new BeforeScan(claimed, full, took);
            return false;
        }
        raise(side, start == null ? everywhere(side) : start, claimed, full, took);
        return keepAnnouncedBelow(side);
    }

    private static ClaimStart everywhere(Side side) {
        return new ClaimStart(new TreeMap<>(side.floors), List.of());
    }

    @GuardedBy("this") private void raise(Side side, ClaimStart start, Claimed claimed, boolean full, Duration took) {
        IndexPosition edge = new IndexPosition(
                Objects.requireNonNull(claimed.at()).minus(took).minus(LAG), Long.MIN_VALUE);
        if (!full) {
            start.floors().keySet().forEach(priority -> side.raise(priority, edge));
            start.strays().forEach(strays::remove);
            return;
        }
        claimed.jobs().forEach(job -> strays.remove(job.id()));
        Job last = lastWithoutQueue(start, claimed);
        if (last != null) {
            start.floors().headMap(last.priority()).keySet().forEach(priority -> side.raise(priority, edge));
            IndexPosition place = new IndexPosition(last.runAt(), last.id());
            side.raise(last.priority(), place.compareTo(edge) < 0 ? place : edge);
        }
    }

    /** Returns the last job that was found from a floor on; null if there is none. */
    private static @Nullable Job lastWithoutQueue(ClaimStart start, Claimed claimed) {
        Set<Long> sought = new HashSet<>(start.strays());
        Job last = null;
        for (Job job : claimed.jobs()) {
            if (job.queueName() == null && !sought.contains(job.id())) {
                last = job;
            }
        }
        return last;
    }

    /**
     * Takes note of jobs that were announced.
     *
     * @param earliest when the first of those without a queue is due; null if that is not known
     * @param priorities those that they have, none if all are in queues; null if they are not known
     * @param ids those of all of them; none if they are not known
     */
    synchronized void announced(
            @Nullable Instant earliest, @Nullable Collection<Integer> priorities, Collection<Long> ids) {
        if (priorities != null && priorities.isEmpty()) {
            return;
        }
        if (inUse && !ids.isEmpty() && scanNanos > CHEAP_SCAN.toNanos() && strays.size() + ids.size() <= MOST_STRAYS) {
            strays.addAll(ids);
            return;
        }
        if (priorities == null || earliest == null || main.announced.size() > MOST_ANNOUNCED) {
            resting.wakeAll();
            wantScan();
            return;
        }
        for (int priority : priorities) {
            resting.wake(priority);
            announcedSinceScan.add(priority);
        }
        for (Side side : sides()) {
            for (int priority : priorities) {
                announced(side, priority, earliest);
            }
        }
    }

    @GuardedBy("this") private void announced(Side side, int priority, Instant earliest) {
        IndexPosition floor = side.floors.get(priority);
        if (floor == null) {
            side.announced.put(priority, Instant.MIN);
        } else if (earliest.isBefore(floor.runAt())) {
            boolean unused = lower(side, priority, earliest, floor);
        } else {
            side.sinceClaim.merge(priority, earliest, ClaimFloor::earlier);
        }
    }

    @GuardedBy("this") private void wantScan() {
        if (!scanWanted) {
            scanWanted = true;
            scanWantedSooner.run();
        }
    }

    /** Lets claims look at all jobs until the next scan. */
    public synchronized void forget() {
        generation++;
        inUse = false;
        beforeScan = null;
        main.clear();
        resting.wakeAll();
        odd = null;
        strays.clear();
    }

    /**
     * Returns how long to wait for the next scan; {@link Long#MAX_VALUE} while nobody needs one. The first one after everything
     * was forgotten is cheaper than the claims without it.
     */
    public synchronized long nanosUntilScan() {
        long time = System.nanoTime();
        long shortest = scanEndedAt + SHORTEST_SCAN_INTERVAL.toNanos() - time;
        long wait = Long.MAX_VALUE;
        if (claimTried && scannedGeneration != generation) {
            wait = shortest;
        } else if (claimTried) {
            Duration interval = jobsClaimed ? SCAN_INTERVAL : IDLE_SCAN_INTERVAL;
            wait = scanEndedAt + Math.max(interval.toNanos(), SHARE * scanNanos) - time;
        }
        if (scanWanted) {
            wait = Math.min(wait, Math.max(shortest, wantedScanEndedAt + WANTED_SHARE * scanNanos - time));
        }
        return Math.max(0, wait);
    }

    /**
     * Looks for what claims pass over; returns whether the next claim looks elsewhere because of it. If that fails, claims
     * look at all jobs until a scan succeeds.
     */
    public boolean scanBelow(Scan scan) throws SQLException {
        ClaimStart start;
        long before;
        boolean wanted;
        synchronized (this) {
            start = new ClaimStart(lowest(), List.copyOf(strays));
            before = generation;
            wanted = scanWanted;
            scannedGeneration = generation;
            announcedSinceScan.clear();
            claimTried = false;
            jobsClaimed = false;
            scanWanted = false;
        }
        long begin = System.nanoTime();
        try {
            FloorScan below = scan.from(start);
            return scanned(below, before);
        } catch (SQLException | RuntimeException | Error e) {
            giveUp();
            throw e;
        } finally {
            synchronized (this) {
                scanEndedAt = System.nanoTime();
                long took = scanEndedAt - begin;
                scanNanos = Math.min(took, lastScanNanos);
                lastScanNanos = took;
                wantedScanEndedAt = wanted ? scanEndedAt : wantedScanEndedAt;
            }
        }
    }

    /** Forgets everything, and lets the next scan wait for its turn. */
    private synchronized void giveUp() {
        forget();
        scannedGeneration = generation;
    }

    private synchronized boolean scanned(FloorScan below, long before) {
        if (generation != before) {
            scanWanted = true;
            return false;
        }
        Set<Integer> present = new HashSet<>(below.levels());
        present.addAll(announcedSinceScan);
        sides().forEach(side -> side.floors.keySet().retainAll(present));
        resting.retain(present);
        int known = main.floors.size();
        sides().forEach(side -> below.levels().forEach(level -> side.floors.putIfAbsent(level, IndexPosition.FIRST)));
        if (beforeScan != null) {
            raise(main, everywhere(main), beforeScan.claimed, beforeScan.full, beforeScan.took);
            beforeScan = null;
        }
        if (below.strays().size() < MOST_STRAYS) {
            strays.addAll(below.strays());
        } else {
            // There are more, which claims find faster than scans.
            sides().forEach(side -> side.floors.replaceAll((priority, place) -> IndexPosition.FIRST));
            return true;
        }
        boolean elsewhere = inUse && (main.floors.size() > known || !strays.isEmpty());
        inUse = true;
        return elsewhere;
    }
}
