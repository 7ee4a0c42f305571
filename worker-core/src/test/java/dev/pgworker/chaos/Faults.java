package dev.pgworker.chaos;

import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.function.Predicate;
import java.util.function.Supplier;

import org.springframework.dao.DataAccessException;

import dev.pgworker.chaos.Fleet.Member;

/** What is done to the worker processes and their database. Begun and awaited by one thread. */
final class Faults implements AutoCloseable {

    /** What may be done. */
    enum Kind {
        KILL,
        PAUSE,
        CRASH_DATABASE,
        END_SESSIONS,
        CUT,
        HALF_OPEN,
        DELAY,
        EXHAUST_POOL,
        REFUSE_DELETIONS
    }

    /** What was done, from when to when, and to which process; to all if that is {@link #ALL}. */
    record Fault(Kind kind, int process, Instant from, Instant to) {

        static final int ALL = 0;

        boolean touches(int aProcess, Instant after, Instant before) {
            return (process == ALL || process == aProcess) && to.isAfter(after) && from.isBefore(before);
        }
    }

    @FunctionalInterface
    private interface Action {
        void run() throws Exception;
    }

    private static final List<Kind> PEACEFUL = List.of(
            Kind.KILL,
            Kind.KILL,
            Kind.KILL,
            Kind.PAUSE,
            Kind.PAUSE,
            Kind.PAUSE,
            Kind.PAUSE,
            Kind.CUT,
            Kind.CUT,
            Kind.HALF_OPEN,
            Kind.HALF_OPEN,
            Kind.DELAY,
            Kind.DELAY,
            Kind.EXHAUST_POOL,
            Kind.EXHAUST_POOL);

    private final ChaosDatabase database;
    private final Ledger ledger;
    private final Fleet fleet;
    private final Random random;
    private final List<Fault> done = new CopyOnWriteArrayList<>();
    private final List<Future<?>> underWay = new ArrayList<>();
    private final List<Kind> next = new ArrayList<>();
    private final ExecutorService executor = Executors.newCachedThreadPool();
    private boolean databaseBusy;
    private Instant nodeAliveAt = Instant.now();
    private int rounds;

    Faults(ChaosDatabase database, Ledger ledger, Fleet fleet, long seed) {
        this.database = database;
        this.ledger = ledger;
        this.fleet = fleet;
        this.random = new Random(seed);
    }

    /** Injects faults for so long, every kind at least once, and returns when the last is over. */
    void inject(Duration time, Adder adder) throws Exception {
        pauseUntilOthersRunTheJobs(adder);
        long end = System.nanoTime() + time.toNanos();
        int least = Kind.values().length;
        for (int count = 0; count < least || System.nanoTime() < end; count++) {
            begin(nextKind(), adder);
            replaceNodeIfItEnded();
            TimeUnit.MILLISECONDS.sleep(300 + random.nextInt(900));
        }
        awaitUnderWay();
        retireNode();
    }

    private void awaitUnderWay() throws Exception {
        for (Future<?> action : underWay) {
            action.get();
        }
    }

    /** Between rounds of all kinds the database is left in peace: sweeps wait until it has been for a while. */
    private Kind nextKind() {
        if (next.isEmpty()) {
            List<Kind> kinds = rounds++ % 2 == 0 ? List.of(Kind.values()) : PEACEFUL;
            next.addAll(kinds);
            Collections.shuffle(next, random);
        }
        return next.remove(0);
    }

    private void begin(Kind kind, Adder adder) throws Exception {
        switch (kind) {
            case KILL -> kill();
            case PAUSE -> pauseInLongJob(adder.addLong((int) millis(3_000, 7_000)), millis(5_000, 9_000));
            case CRASH_DATABASE -> onDatabase(kind, database::crash);
            case END_SESSIONS -> onDatabase(kind, this::endSessions);
            case CUT -> onMember(kind, Member::isProxied, this::cut, millis(0, 3_000));
            case HALF_OPEN -> onMember(kind, Member::isProxied, this::halfOpen, millis(1_000, 8_000));
            case DELAY -> onMember(kind, Member::isProxied, this::delay, millis(1_000, 4_000));
            case EXHAUST_POOL -> onMember(kind, Member::isJava, this::exhaustPool, millis(1_000, 6_000));
            case REFUSE_DELETIONS -> onDatabase(kind, this::refuseDeletions);
        }
    }

    private long millis(int least, int most) {
        return random.nextInt(least, most);
    }

    private void kill() throws Exception {
        Member member = await(() -> pick(m -> true, List.of()));
        Instant from = Instant.now();
        member.process.kill();
        done.add(new Fault(Kind.KILL, member.number, from, Instant.now()));
        if (member.node) {
            releaseLocksOfNode();
        }
        fleet.replace(member);
    }

    /** Errors of the database end it now and then. Its end was somewhere between this look and the one before. */
    private void replaceNodeIfItEnded() throws Exception {
        Member node = fleet.node();
        if (node == null) {
            return;
        }
        Instant now = Instant.now();
        if (node.process.isAlive()) {
            nodeAliveAt = now;
        } else {
            done.add(new Fault(Kind.KILL, node.number, nodeAliveAt, now));
            releaseLocksOfNode();
            fleet.replace(node);
        }
    }

    /** Lets Node.js stop as it would, and releases what it leaves locked: nobody else does for four hours. */
    private void retireNode() throws Exception {
        Member node = fleet.node();
        if (node == null) {
            return;
        }
        Instant from = Instant.now();
        node.process.awaitExit(Duration.ofMinutes(2));
        node.process.close();
        done.add(new Fault(Kind.KILL, node.number, from, Instant.now()));
        releaseLocksOfNode();
        fleet.remove(node);
    }

    private void releaseLocksOfNode() throws InterruptedException {
        persist(ledger::releaseLocksOfNode);
    }

    @FunctionalInterface
    private interface MemberAction {
        void run(Member member, long millis) throws Exception;
    }

    private void onMember(Kind kind, Predicate<Member> suitable, MemberAction action, long millis) throws Exception {
        onMember(kind, await(() -> pick(suitable, List.of())), action, millis);
    }

    private void onMember(Kind kind, Member member, MemberAction action, long millis) {
        submit(kind, member.number, () -> action.run(member, millis), () -> member.busy = false);
    }

    private void exhaustPool(Member member, long millis) throws Exception {
        member.process.tell(Long.toString(millis));
        TimeUnit.MILLISECONDS.sleep(millis);
    }

    /**
     * Pauses two processes in long jobs until others run these: then one of the two finds that its job has run its time, and
     * the other one is interrupted. Until the others are done nothing else happens, so that nothing else explains it if they
     * lose their jobs.
     */
    private void pauseUntilOthersRunTheJobs(Adder adder) throws Exception {
        int shorter = adder.addLong(3_000);
        pauseInLongJob(shorter, 15_000);
        int longer = adder.addLong(6_500);
        pauseInLongJob(longer, 15_000);
        awaitUnderWay();
        for (int i = 0;
                i < 100
                        && !(processesIn(shorter).isEmpty()
                                && processesIn(longer).isEmpty());
                i++) {
            TimeUnit.MILLISECONDS.sleep(100);
        }
    }

    /** Pauses the process that runs the job until another one runs it; any process, if that one is not to be had. */
    private void pauseInLongJob(int n, long most) throws Exception {
        List<Integer> running = processesIn(n);
        for (int i = 0; i < 60 && running.isEmpty(); i++) {
            TimeUnit.MILLISECONDS.sleep(50);
            running = processesIn(n);
        }
        List<Integer> preferred = running;
        Member member = await(() -> pick(m -> true, preferred));
        if (preferred.contains(member.number)) {
            onMember(Kind.PAUSE, member, (paused, millis) -> pauseUntilAnotherRuns(n, paused, millis), most);
        } else {
            onMember(Kind.PAUSE, member, this::pause, Math.min(most, 6_000));
        }
    }

    private void pause(Member member, long millis) throws Exception {
        member.process.pause();
        TimeUnit.MILLISECONDS.sleep(millis);
        member.process.resume();
    }

    private void pauseUntilAnotherRuns(int n, Member member, long most) throws Exception {
        long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(most);
        member.process.pause();
        try {
            TimeUnit.MILLISECONDS.sleep(ChaosWorker.THRESHOLD.toMillis());
            while (System.nanoTime() < end && processesIn(n).stream().allMatch(p -> p == member.number)) {
                TimeUnit.MILLISECONDS.sleep(50);
            }
        } finally {
            member.process.resume();
        }
    }

    private List<Integer> processesIn(int n) {
        try {
            return ledger.processesIn(n);
        } catch (DataAccessException e) {
            return List.of(); // the database is away
        }
    }

    private void onDatabase(Kind kind, Action action) throws Exception {
        await(() -> databaseBusy ? null : this);
        synchronized (this) {
            databaseBusy = true;
        }
        submit(kind, Fault.ALL, action, () -> databaseBusy = false);
    }

    private void submit(Kind kind, int process, Action action, Runnable after) {
        underWay.add(executor.submit(() -> {
            Instant from = Instant.now();
            try {
                action.run();
                done.add(new Fault(kind, process, from, Instant.now()));
            } finally {
                synchronized (this) {
                    after.run();
                    notifyAll();
                }
            }
            return null;
        }));
    }

    private synchronized <T> T await(Supplier<T> condition) throws InterruptedException {
        T found = condition.get();
        while (found == null) {
            wait();
            found = condition.get();
        }
        return found;
    }

    /** Takes a process to which nothing else is done, one of the preferred ones if possible. */
    private Member pick(Predicate<Member> suitable, List<Integer> preferred) {
        Member member = fleet.free(suitable, preferred, random);
        if (member != null) {
            member.busy = true;
        }
        return member;
    }

    private void cut(Member member, long millis) throws Exception {
        member.proxy().set(FlakyProxy.Mode.REFUSE);
        member.proxy().cut();
        TimeUnit.MILLISECONDS.sleep(millis);
        member.proxy().set(FlakyProxy.Mode.FORWARD);
    }

    private void halfOpen(Member member, long millis) throws Exception {
        member.proxy().set(FlakyProxy.Mode.HOLD);
        TimeUnit.MILLISECONDS.sleep(millis);
        member.proxy().cut();
        member.proxy().set(FlakyProxy.Mode.FORWARD);
    }

    private void delay(Member member, long millis) throws Exception {
        member.proxy().set(FlakyProxy.Mode.DELAY);
        TimeUnit.MILLISECONDS.sleep(millis);
        member.proxy().set(FlakyProxy.Mode.FORWARD);
    }

    private void endSessions() throws InterruptedException {
        persist(() -> ledger.sql().sql("""
                        select pg_terminate_backend(pid) from pg_stat_activity
                        where backend_type = 'client backend' and pid <> pg_backend_pid() and random() < 0.7""").query().listOfRows());
    }

    private void refuseDeletions() throws InterruptedException {
        persist(() -> ledger.refuseDeletions(true));
        TimeUnit.MILLISECONDS.sleep(500);
        persist(() -> ledger.refuseDeletions(false));
    }

    /** The pool may hold connections that another fault has broken. */
    private static void persist(Runnable statement) throws InterruptedException {
        while (true) {
            try {
                statement.run();
                return;
            } catch (DataAccessException e) {
                TimeUnit.MILLISECONDS.sleep(50);
            }
        }
    }

    List<Fault> done() {
        return List.copyOf(done);
    }

    @Override
    public void close() {
        executor.shutdownNow();
    }
}
