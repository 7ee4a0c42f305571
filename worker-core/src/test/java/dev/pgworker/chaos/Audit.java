package dev.pgworker.chaos;

import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Collectors;

import dev.pgworker.chaos.Faults.Fault;
import dev.pgworker.chaos.Ledger.Added;
import dev.pgworker.chaos.Ledger.Left;
import dev.pgworker.chaos.Ledger.Run;

import static java.util.stream.Collectors.groupingBy;

/** Compares the ledger with what is guaranteed, after all jobs are done and all workers have stopped. */
final class Audit {

    private final List<Added> added;
    private final List<Run> runs;
    private final List<Left> left;
    private final List<Fault> faults;
    private final Ledger ledger;
    private final Set<String> lostWorkers;
    private final Map<Integer, Added> addedByNumber = new HashMap<>();
    private final Map<String, Integer> lastOfKey = new HashMap<>();
    private final Map<Integer, List<Run>> runsByNumber;
    private final List<String> problems = new ArrayList<>();
    private final Map<String, Integer> repetitions = new TreeMap<>();

    Audit(Ledger ledger, List<Fault> faults) {
        this.ledger = ledger;
        this.faults = faults;
        added = ledger.allAdded();
        runs = ledger.allRuns();
        left = ledger.leftJobs();
        lostWorkers = new HashSet<>(ledger.lostWorkers());
        added.forEach(a -> addedByNumber.put(a.n(), a));
        added.stream().filter(a -> a.jobKey() != null).forEach(a -> lastOfKey.put(a.jobKey(), a.n()));
        runsByNumber = runs.stream().collect(groupingBy(Run::n));
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
        return problems;
    }

    String summary() {
        Map<Faults.Kind, Long> kinds =
                faults.stream().collect(groupingBy(Fault::kind, TreeMap::new, Collectors.counting()));
        return added.size() + " jobs added, " + runs.size() + " runs, " + lostWorkers.size()
                + " workers that started over, repetitions " + repetitions + ", failed for good " + left.size()
                + ", faults "
                + kinds;
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

    /** A paused process cannot be interrupted before it goes on, so its handlers may end after others have begun. */
    private void checkQueuesDoNotOverlap() {
        for (List<Run> ofQueue : byQueue().values()) {
            for (int i = 0; i < ofQueue.size(); i++) {
                Run run = ofQueue.get(i);
                for (int k = i + 1;
                        k < ofQueue.size() && ofQueue.get(k).startedAt().isBefore(end(run));
                        k++) {
                    if (faultsOf(run, Faults.Kind.PAUSE).isEmpty()) {
                        problems.add("overlap in a queue: " + run + " and " + ofQueue.get(k));
                    }
                }
            }
        }
    }

    /** A run whose end is unknown is known at its start only. */
    private static Instant end(Run run) {
        return run.endedAt() == null ? run.startedAt() : run.endedAt();
    }

    private List<Fault> faultsOf(Run run, Faults.Kind kind) {
        return faults.stream()
                .filter(f -> f.kind() == kind && f.touches(run.process(), run.startedAt(), end(run).plusNanos(1)))
                .toList();
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
        if (touched(run, next, Faults.Kind.KILL)) {
            return "killed";
        }
        if (run.how() == null) {
            return null;
        }
        return switch (run.how()) {
            case "failed" -> mayFail(run, next) ? "failed" : null;
            case "snoozed" -> touched(run, next, null) ? "ledger away" : null;
            case "interrupted" -> lost(run, next) ? "interrupted" : null;
            default -> {
                if (addedByNumber.get(run.n()).kind() == ChaosJob.Kind.TRANSACTIONAL && touched(run, next, null)) {
                    yield "rolled back";
                }
                yield lost(run, next) ? "done by a worker taken for dead" : null;
            }
        };
    }

    private boolean mayFail(Run run, Run next) {
        return switch (addedByNumber.get(run.n()).kind()) {
            case FAILS_ONCE -> run.attempt() == 1;
            case TRANSACTIONAL -> touched(run, next, null);
            default -> false;
        };
    }

    /** Whether the worker knows that it was declared dead, and a fault explains why. */
    private boolean lost(Run run, Run next) {
        return lostWorkers.contains(run.worker()) && !run.worker().equals(next.worker()) && touched(run, next, null);
    }

    private boolean touched(Run run, Run next, Faults.Kind kind) {
        Duration before = kind == Faults.Kind.KILL ? Duration.ZERO : ChaosWorker.THRESHOLD;
        return faults.stream()
                .anyMatch(f -> (kind == null || f.kind() == kind)
                        && f.touches(run.process(), run.startedAt().minus(before), next.startedAt()));
    }

    private void checkTokens() {
        for (List<Run> ofNumber : runsByNumber.values()) {
            Map<String, Long> tokens = ofNumber.stream().collect(groupingBy(Run::token, Collectors.counting()));
            tokens.forEach((token, times) -> {
                if (times > 1) {
                    problems.add("fencing token given " + times + " times: " + token + " to " + ofNumber);
                }
            });
        }
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
                            + Math.max(0, run.recoveries() - ChaosWorker.MAX_RECOVERIES);
                    if (kind != ChaosJob.Kind.TRANSACTIONAL && run.attempt() > most) {
                        problems.add("attempt " + run.attempt() + " of at most " + most + ": " + run);
                    }
                });
    }

    private List<Run> runs(int n) {
        return runsByNumber.getOrDefault(n, List.of());
    }
}
