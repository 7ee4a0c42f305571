package dev.pgworker.chaos;

import java.time.Duration;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Collectors;

import dev.pgworker.chaos.Faults.Fault;
import dev.pgworker.chaos.Ledger.Added;
import dev.pgworker.chaos.Ledger.FoundDead;
import dev.pgworker.chaos.Ledger.Left;
import dev.pgworker.chaos.Ledger.LostJob;
import dev.pgworker.chaos.Ledger.Run;

import static java.util.stream.Collectors.collectingAndThen;
import static java.util.stream.Collectors.groupingBy;
import static java.util.stream.Collectors.toList;

/** Compares the ledger with what is guaranteed, after all jobs are done and all workers have stopped. */
final class Audit {

    /** How long it takes at most to write an outcome while nothing hinders it, on a busy machine. */
    private static final Duration OUTCOME_LIMIT = Duration.ofSeconds(5);

    /** How much later than its process is killed the server may write what that has sent, on a busy machine. */
    private static final Duration SENT_LIMIT = Duration.ofSeconds(3);

    /** For how long the consequences of a broken connection go on, its discovery included. */
    private static final Duration OUTAGE_LIMIT = Duration.ofSeconds(15);

    /** What a busy machine may add to the time of a recovery. */
    private static final Duration SLACK = Duration.ofSeconds(30);

    /** What may lose the answer to a statement that has been executed. */
    private static final Set<Faults.Kind> BREAKING = EnumSet.of(
            Faults.Kind.CRASH_DATABASE,
            Faults.Kind.END_SESSIONS,
            Faults.Kind.CUT,
            Faults.Kind.HALF_OPEN,
            Faults.Kind.DELAY,
            Faults.Kind.EXHAUST_POOL);

    /** Whose jobs run again if their transaction breaks although the handler has ended. */
    private static final Set<ChaosJob.Kind> ROLLED_BACK = EnumSet.of(ChaosJob.Kind.TRANSACTIONAL, ChaosJob.Kind.DIRECT);

    private final List<Added> added;
    private final List<Run> runs;
    private final List<Left> left;
    private final List<LostJob> lostJobs;
    private final List<FoundDead> foundDead;
    private final List<Fault> faults;
    private final Ledger ledger;
    private final Set<Integer> nodes;
    private final Set<String> lostWorkers;
    private final Map<Integer, Added> addedByNumber = new HashMap<>();
    private final Map<String, Integer> lastOfKey = new HashMap<>();
    private final Map<Integer, List<Run>> runsByNumber;
    private final List<String> problems = new ArrayList<>();
    private final Map<String, Integer> repetitions = new TreeMap<>();

    /**
     * Reads the ledger.
     *
     * @param nodes the numbers of the processes of Node.js. They do not take jobs of a queue in order when another
     *     transaction holds the first for a moment, leave a job locked whose outcome they could not write, and have no
     *     fencing tokens. When their locks are released by force, the attempt stays counted.
     */
    Audit(Ledger ledger, List<Fault> faults, Set<Integer> nodes) {
        this.nodes = nodes;
        this.ledger = ledger;
        this.faults = faults;
        added = ledger.allAdded();
        runs = ledger.allRuns();
        left = ledger.leftJobs();
        lostJobs = ledger.lostJobs();
        foundDead = ledger.foundDead();
        lostWorkers = new HashSet<>(ledger.lostWorkers());
        added.forEach(a -> addedByNumber.put(a.n(), a));
        added.stream().filter(a -> a.jobKey() != null).forEach(a -> lastOfKey.put(a.jobKey(), a.n()));
        runsByNumber = runs.stream().collect(groupingBy(Run::n, collectingAndThen(toList(), Audit::inOrderOfClaims)));
    }

    /** Returns what is wrong; empty if nothing is. */
    List<String> problems() {
        checkNothingIsLost();
        checkNothingIsLocked();
        checkEffects();
        checkQueuesDoNotOverlap();
        checkQueuesStartInOrder();
        checkRepetitions();
        checkTokens();
        checkAttempts();
        checkLostJobs();
        checkRecoveryTimes();
        return problems;
    }

    String summary() {
        Map<Faults.Kind, Long> kinds =
                faults.stream().collect(groupingBy(Fault::kind, TreeMap::new, Collectors.counting()));
        long byNode = runs.stream().filter(r -> nodes.contains(r.process())).count();
        return added.size() + " jobs added, " + runs.size() + " runs, " + byNode + " of them by Node.js, "
                + lostWorkers.size()
                + " workers that started over, repetitions " + repetitions + ", failed for good " + left.size()
                + ", faults " + kinds + ", killed processes found dead after " + millis(timesUntilFoundDead(false))
                + ", while the database was at peace after " + millis(timesUntilFoundDead(true))
                + ", their jobs running again after " + millis(timesUntilRunAgain());
    }

    private static String millis(List<Duration> times) {
        List<Long> sorted = times.stream().map(Duration::toMillis).sorted().toList();
        return sorted.isEmpty()
                ? "no time"
                : sorted.get(sorted.size() / 2) + " ms (median of " + sorted.size() + "; longest "
                        + sorted.get(sorted.size() - 1) + " ms)";
    }

    private void checkNothingIsLost() {
        Set<Integer> failed = left.stream().map(Left::n).collect(Collectors.toSet());
        for (Added a : added) {
            if (!isReplaced(a)
                    && !failed.contains(a.n())
                    && runs(a.n()).stream().noneMatch(Run::done)) {
                problems.add("lost: " + a + " with runs " + runs(a.n()));
            }
        }
        for (Run run : runs) {
            if (!addedByNumber.containsKey(run.n())) {
                problems.add("run without having been committed: " + run);
            }
        }
    }

    private void checkNothingIsLocked() {
        for (Left job : left) {
            if (job.lockedBy() != null || job.attempts() < job.maxAttempts() || job.lastError() == null) {
                problems.add("left, but neither done nor failed: " + job);
            } else if (!mayStay(job)) {
                problems.add("failed without a reason: " + job + " with runs " + runs(job.n()));
            }
        }
        ledger.lockedQueues().forEach(q -> problems.add("queue left locked: " + q));
        ledger.registeredWorkers().forEach(w -> problems.add("worker left registered: " + w));
    }

    /** Superseded jobs do not run again when their worker dies; transactions may fail more often than there are attempts. */
    private boolean mayStay(Left job) {
        Added a = addedByNumber.get(job.n());
        return a != null && (a.kind() == ChaosJob.Kind.TRANSACTIONAL || isReplaced(a));
    }

    private boolean isReplaced(Added a) {
        return a.jobKey() != null && lastOfKey.get(a.jobKey()) != a.n();
    }

    private void checkEffects() {
        Map<Integer, Long> effects = ledger.effects().stream().collect(groupingBy(n -> n, Collectors.counting()));
        Set<Integer> failed = left.stream().map(Left::n).collect(Collectors.toSet());
        for (Added a : added) {
            long expected = a.kind() == ChaosJob.Kind.TRANSACTIONAL && !failed.contains(a.n()) ? 1 : 0;
            long found = effects.getOrDefault(a.n(), 0L);
            if (found != expected) {
                problems.add(found + " transactional effects instead of " + expected + ": " + a + " with runs "
                        + runs(a.n()));
            }
        }
    }

    private void checkQueuesDoNotOverlap() {
        for (List<Run> ofQueue : byQueue().values()) {
            for (int i = 0; i < ofQueue.size(); i++) {
                Run run = ofQueue.get(i);
                for (int k = i + 1;
                        k < ofQueue.size() && ofQueue.get(k).startedAt().isBefore(end(run));
                        k++) {
                    if (!mayOverlap(run, ofQueue.get(k))) {
                        problems.add("overlap in a queue: " + run + " and " + ofQueue.get(k));
                    }
                }
            }
        }
    }

    /**
     * A paused process cannot be interrupted before it goes on, so its handlers may end after others have begun, or take a
     * first step that they were about to take, a moment before or after the others. Nor does an interrupt reach a handler that
     * waits for a connection that does not answer.
     */
    private boolean mayOverlap(Run run, Run later) {
        return isHindered(run, Faults.Kind.PAUSE)
                || waitsForNoAnswer(run)
                || isBegunLate(later)
                || wasPausedBefore(run, later.startedAt());
    }

    private boolean waitsForNoAnswer(Run run) {
        return !run.done()
                && addedByNumber.get(run.n()).kind() == ChaosJob.Kind.TRANSACTIONAL
                && isHindered(run, Faults.Kind.HALF_OPEN);
    }

    private boolean isHindered(Run run, Faults.Kind kind) {
        return faults.stream()
                .anyMatch(f -> f.kind() == kind && f.touches(run.process(), run.startedAt(), end(run).plusNanos(1)));
    }

    /** A run whose end is unknown is known at its start only. */
    private static Instant end(Run run) {
        return run.endedAt() == null ? run.startedAt() : run.endedAt();
    }

    /** Jobs that were never retried, snoozed or recovered still have the place in which they were added. */
    private void checkQueuesStartInOrder() {
        for (List<Run> ofQueue : byQueue().values()) {
            Run last = null;
            for (Run run : ofQueue) {
                if (keptItsPlace(run)) {
                    if (last != null && last.n() > run.n()) {
                        problems.add("out of order in a queue: " + last + " before " + run);
                    }
                    last = run;
                }
            }
        }
    }

    private boolean keptItsPlace(Run run) {
        Added a = addedByNumber.get(run.n());
        return a != null
                && !nodes.contains(run.process())
                && run.attempt() == 1
                && run.recoveries() == 0
                && run.runAt().equals(a.runAt())
                && runs(run.n()).size() == 1;
    }

    private Map<String, List<Run>> byQueue() {
        return runs.stream().filter(r -> r.queue() != null).collect(groupingBy(Run::queue));
    }

    private void checkRepetitions() {
        for (List<Run> ofJob : runsByNumber.values()) {
            for (int i = 0; i + 1 < ofJob.size(); i++) {
                String reason = reasonToRepeat(ofJob.get(i), ofJob.get(i + 1));
                if (reason == null) {
                    problems.add("repeated without a reason: " + ofJob.get(i) + " and " + ofJob.get(i + 1));
                } else {
                    repetitions.merge(reason, 1, Integer::sum);
                }
            }
        }
    }

    /** Returns why a run was not the last of its job, or null if it should have been. */
    private String reasonToRepeat(Run run, Run next) {
        if (isBegunLate(next, run)) {
            return "begun before a pause";
        }
        if (killed(run, next)) {
            return "killed";
        }
        if (run.how() == null) {
            return diedAfter(run) && touched(run, next) ? "end not told" : null;
        }
        if (nodes.contains(run.process()) && !mayFail(run, next)) {
            return touched(run, next) ? "left locked by Node.js" : null;
        }
        return switch (run.how()) {
            case "failed" -> mayFail(run, next) ? "failed" : null;
            case "snoozed" -> touched(run, next) ? "ledger away" : null;
            case "interrupted" -> lost(run, next) ? "interrupted" : null;
            default -> {
                if (ROLLED_BACK.contains(addedByNumber.get(run.n()).kind()) && touched(run, next)) {
                    yield "rolled back";
                }
                yield lost(run, next) ? "done by a worker taken for dead" : null;
            }
        };
    }

    /**
     * Whether the process was killed during a run, or after it before the outcome was written; or just before, when it had
     * sent the row of the run, which the server wrote later.
     */
    private boolean killed(Run run, Run next) {
        Instant begun = run.endedAt() == null ? run.startedAt().minus(SENT_LIMIT) : run.startedAt();
        Instant written = run.endedAt() == null ? Instant.MAX : run.endedAt().plus(OUTCOME_LIMIT);
        return faults.stream()
                .filter(f -> f.kind() == Faults.Kind.KILL && f.touches(run.process(), begun, next.startedAt()))
                .anyMatch(kill -> kill.from().isBefore(written) || hindered(run, kill.from()));
    }

    /** Whether something kept the outcome of a run from being written by the given time. */
    private boolean hindered(Run run, Instant until) {
        return faults.stream()
                .anyMatch(f -> f.kind() != Faults.Kind.KILL
                        && f.touches(run.process(), run.endedAt().minus(ChaosWorker.THRESHOLD), until)
                        && f.to().plus(OUTAGE_LIMIT).isAfter(until));
    }

    /** The end of a run is told later than its outcome while the database is away. */
    private boolean diedAfter(Run run) {
        return faults.stream()
                .anyMatch(f -> f.kind() == Faults.Kind.KILL
                        && f.process() == run.process()
                        && f.to().isAfter(run.startedAt()));
    }

    private boolean mayFail(Run run, Run next) {
        return switch (addedByNumber.get(run.n()).kind()) {
            case FAILS_ONCE -> run.attempt() == 1;
            case TRANSACTIONAL -> touched(run, next);
            default -> false;
        };
    }

    /** Whether the worker knows that it was declared dead, and a fault explains why. */
    private boolean lost(Run run, Run next) {
        return lostWorkers.contains(run.worker()) && !run.worker().equals(next.worker()) && touched(run, next);
    }

    /** Whether anything but a kill was done to the process about the time of the run. */
    private boolean touched(Run run, Run next) {
        return faults.stream()
                .anyMatch(f -> f.kind() != Faults.Kind.KILL
                        && f.touches(run.process(), run.startedAt().minus(ChaosWorker.THRESHOLD), next.startedAt()));
    }

    /** Later runs of a job have greater times in their tokens. */
    private void checkTokens() {
        runs.stream()
                .filter(r -> r.token() != null)
                .collect(groupingBy(Run::job))
                .values()
                .forEach(ofJob -> {
                    for (int i = 0; i + 1 < ofJob.size(); i++) {
                        long difference = time(ofJob.get(i + 1)) - time(ofJob.get(i));
                        if (difference == 0 || (difference < 0 && !isBegunLate(ofJob.get(i + 1)))) {
                            problems.add("fencing token not greater than the last one: " + ofJob.get(i) + " and "
                                    + ofJob.get(i + 1));
                        }
                    }
                });
    }

    /** Whether a run of ours is in the ledger after one of Node.js, which has no token, although its claim came before. */
    private boolean isBegunLate(Run run, Run before) {
        return nodes.contains(before.process())
                && run.token() != null
                && before.startedAt().isAfter(claimedAt(run))
                && isBegunLate(run);
    }

    private static Instant claimedAt(Run run) {
        return Instant.EPOCH.plus(time(run), ChronoUnit.MICROS);
    }

    /** A run begins after others that were claimed later if its process is paused when it is about to begin. */
    private boolean isBegunLate(Run run) {
        return wasPausedBefore(run, run.startedAt());
    }

    private boolean wasPausedBefore(Run run, Instant moment) {
        return faults.stream()
                .anyMatch(
                        f -> f.kind() == Faults.Kind.PAUSE && f.touches(run.process(), moment.minusSeconds(1), moment));
    }

    private static List<Run> inOrderOfClaims(List<Run> runs) {
        List<Run> ordered = new ArrayList<>();
        for (Run run : runs) {
            int place = ordered.size();
            while (place > 0 && isClaimedBefore(run, ordered.get(place - 1))) {
                place--;
            }
            ordered.add(place, run);
        }
        return ordered;
    }

    private static boolean isClaimedBefore(Run run, Run other) {
        return run.token() != null && other.token() != null && time(run) < time(other);
    }

    private static long time(Run run) {
        return Long.parseLong(run.token().substring(run.token().lastIndexOf('-') + 1));
    }

    /**
     * Nobody takes a job from a worker that lives: a job is lost only by one that knows to have been declared dead, or whose
     * connection broke while it wrote an outcome, so that the second attempt found the first one's work, or while it ran a direct batch.
     */
    private void checkLostJobs() {
        for (LostJob lost : lostJobs) {
            Instant from = runs.stream()
                    .filter(r -> r.job() == lost.job() && r.worker().equals(lost.worker()) && r.endedAt() != null)
                    // The same worker may have run a job of a direct task again.
                    .filter(r -> !r.endedAt().isAfter(lost.noticedAt()))
                    .max(Comparator.comparing(Run::endedAt))
                    .map(this::heldByConnectionSince)
                    .orElse(lost.noticedAt().minus(OUTCOME_LIMIT).minusMillis(500));
            boolean explained = lostWorkers.contains(lost.worker())
                    || faults.stream()
                            .anyMatch(f ->
                                    BREAKING.contains(f.kind()) && f.touches(lost.process(), from, lost.noticedAt()));
            if (!explained) {
                problems.add("job taken from a living worker: " + lost + " with runs "
                        + runs.stream().filter(r -> r.job() == lost.job()).toList());
            }
        }
    }

    /** A job of a direct task is locked by the connection of its batch while it runs, any other one's connection matters at its end. */
    private Instant heldByConnectionSince(Run run) {
        return addedByNumber.get(run.n()).kind() == ChaosJob.Kind.DIRECT
                ? run.startedAt()
                : run.endedAt().minusMillis(500);
    }

    /** Where the database was at peace and another worker undisturbed, a killed process is found dead in time. */
    private void checkRecoveryTimes() {
        Duration most = ChaosWorker.THRESHOLD.plus(ChaosWorker.SWEEP_INTERVAL);
        for (Duration time : timesUntilFoundDead(true)) {
            if (time.compareTo(most.plus(SLACK)) > 0) {
                problems.add("a killed process was found dead after " + time + ", which is more than " + most);
            }
        }
    }

    /** Returns how long it took after each kill until a sweep found the worker; only undisturbed ones if at peace. */
    private List<Duration> timesUntilFoundDead(boolean atPeace) {
        Map<String, Integer> processes = new HashMap<>();
        runs.forEach(r -> processes.put(r.worker(), r.process()));
        List<Duration> times = new ArrayList<>();
        for (FoundDead found : foundDead) {
            faults.stream()
                    .filter(f -> f.kind() == Faults.Kind.KILL
                            && Integer.valueOf(f.process()).equals(processes.get(found.worker()))
                            && f.from().isBefore(found.at()))
                    .filter(kill -> !atPeace || wasPeace(kill.from(), found.at()))
                    .forEach(kill -> times.add(Duration.between(kill.from(), found.at())));
        }
        return times;
    }

    /** Sweeps wait until heartbeats have been on time for a threshold, so that what was before the kill counts, too. */
    private boolean wasPeace(Instant killed, Instant found) {
        Instant since = killed.minus(ChaosWorker.THRESHOLD.multipliedBy(2));
        return faults.stream().noneMatch(f -> f.process() == Fault.ALL && f.touches(Fault.ALL, since, found))
                && runs.stream()
                        .filter(r -> r.startedAt().isBefore(killed))
                        .mapToInt(Run::process)
                        .distinct()
                        .filter(p -> !nodes.contains(p) && !isKilled(p, found))
                        .anyMatch(p -> faults.stream().noneMatch(f -> f.touches(p, since, found)));
    }

    private boolean isKilled(int process, Instant before) {
        return faults.stream()
                .anyMatch(f -> f.kind() == Faults.Kind.KILL
                        && f.process() == process
                        && f.from().isBefore(before));
    }

    private List<Duration> timesUntilRunAgain() {
        List<Duration> times = new ArrayList<>();
        for (List<Run> ofJob : runsByNumber.values()) {
            for (int i = 0; i + 1 < ofJob.size(); i++) {
                Run run = ofJob.get(i);
                Instant again = ofJob.get(i + 1).startedAt();
                if (run.how() == null && !nodes.contains(run.process())) {
                    faults.stream()
                            .filter(f ->
                                    f.kind() == Faults.Kind.KILL && f.touches(run.process(), run.startedAt(), again))
                            .forEach(kill -> times.add(Duration.between(kill.from(), again)));
                }
            }
        }
        return times;
    }

    /** A transaction that cannot begin or commit fails its attempt, run or not, so that those are not counted here. */
    private void checkAttempts() {
        runs.stream()
                .filter(r -> r.recoveries() >= 0 && addedByNumber.containsKey(r.n()))
                .sorted(Comparator.comparing(Run::startedAt))
                .forEach(run -> {
                    ChaosJob.Kind kind = addedByNumber.get(run.n()).kind();
                    int most = 1
                            + (kind == ChaosJob.Kind.FAILS_ONCE ? 1 : 0)
                            + Math.max(0, run.recoveries() - ChaosWorker.MAX_RECOVERIES)
                            + releasesOfNode(run.startedAt());
                    if (kind != ChaosJob.Kind.TRANSACTIONAL && run.attempt() > most) {
                        problems.add("attempt " + run.attempt() + " of at most " + most + ": " + run);
                    }
                });
    }

    private int releasesOfNode(Instant until) {
        return (int) faults.stream()
                .filter(f -> f.kind() == Faults.Kind.KILL
                        && nodes.contains(f.process())
                        && f.from().isBefore(until))
                .count();
    }

    private List<Run> runs(int n) {
        return runsByNumber.getOrDefault(n, List.of());
    }
}
