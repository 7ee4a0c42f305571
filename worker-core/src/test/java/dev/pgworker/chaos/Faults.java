package dev.pgworker.chaos;

import java.io.IOException;
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
import java.util.function.Supplier;

import org.springframework.dao.DataAccessException;

import dev.pgworker.testing.WorkerProcess;

/** The worker processes, and what is done to them. Started and awaited by one thread. */
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

    /** A worker; behind a proxy if that is not null. */
    private static final class Child {
        final int number;
        final WorkerProcess process;
        final FlakyProxy proxy;
        boolean busy;

        Child(int number, WorkerProcess process, FlakyProxy proxy) {
            this.number = number;
            this.process = process;
            this.proxy = proxy;
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
    private final String logs;
    private final Random random;
    private final List<Child> children = new ArrayList<>();
    private final List<Fault> done = new CopyOnWriteArrayList<>();
    private final List<Future<?>> underWay = new ArrayList<>();
    private final List<Kind> next = new ArrayList<>();
    private final ExecutorService executor = Executors.newCachedThreadPool();
    private boolean databaseBusy;
    private int started;
    private int rounds;

    Faults(ChaosDatabase database, Ledger ledger, long seed, int workers) throws IOException {
        if (workers < 2) {
            throw new IllegalArgumentException("chaos.workers must be at least 2, but is " + workers);
        }
        this.database = database;
        this.ledger = ledger;
        this.logs = "chaos-" + Long.toHexString(seed) + "-";
        this.random = new Random(seed);
        for (int i = 0; i < workers; i++) {
            // Every second one has a proxy.
            startChild(i % 2 == 1 ? new FlakyProxy(database.port()) : null);
        }
    }

    static String url(int port) {
        return "jdbc:postgresql://localhost:" + port
                + "/postgres?user=postgres&password=postgres&socketTimeout=5&connectTimeout=3";
    }

    private void startChild(FlakyProxy proxy) throws IOException {
        int number = ++started;
        String url = url(proxy == null ? database.port() : proxy.port());
        WorkerProcess process = WorkerProcess.start(
                ChaosWorker.class, logs + number, url, url(database.port()), Integer.toString(number));
        synchronized (this) {
            children.add(new Child(number, process, proxy));
        }
    }

    /** Injects faults for so long, every kind at least once, and returns when the last is over. */
    void inject(Duration time, Adder adder) throws Exception {
        pauseUntilOthersRunTheJobs(adder);
        long end = System.nanoTime() + time.toNanos();
        int least = Kind.values().length;
        for (int count = 0; count < least || System.nanoTime() < end; count++) {
            begin(nextKind(), adder);
            TimeUnit.MILLISECONDS.sleep(300 + random.nextInt(900));
        }
        awaitUnderWay();
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
            case CUT -> onChild(kind, true, this::cut, millis(0, 3_000));
            case HALF_OPEN -> onChild(kind, true, this::halfOpen, millis(1_000, 8_000));
            case DELAY -> onChild(kind, true, this::delay, millis(1_000, 4_000));
            case EXHAUST_POOL ->
                onChild(
                        kind,
                        false,
                        (child, millis) -> {
                            child.process.tell(Long.toString(millis));
                            TimeUnit.MILLISECONDS.sleep(millis);
                        },
                        millis(1_000, 6_000));
            case REFUSE_DELETIONS -> onDatabase(kind, this::refuseDeletions);
        }
    }

    private long millis(int least, int most) {
        return random.nextInt(least, most);
    }

    private void kill() throws Exception {
        Child child = await(() -> pick(false));
        Instant from = Instant.now();
        child.process.kill();
        done.add(new Fault(Kind.KILL, child.number, from, Instant.now()));
        synchronized (this) {
            children.remove(child);
        }
        startChild(child.proxy);
    }

    @FunctionalInterface
    private interface ChildAction {
        void run(Child child, long millis) throws Exception;
    }

    private void onChild(Kind kind, boolean proxied, ChildAction action, long millis) throws Exception {
        onChild(kind, await(() -> pick(proxied)), action, millis);
    }

    private void onChild(Kind kind, Child child, ChildAction action, long millis) {
        submit(kind, child.number, () -> action.run(child, millis), () -> child.busy = false);
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
        Child child = await(() -> pick(false, preferred));
        if (preferred.contains(child.number)) {
            onChild(Kind.PAUSE, child, (paused, millis) -> pauseUntilAnotherRuns(n, paused, millis), most);
        } else {
            onChild(Kind.PAUSE, child, this::pause, Math.min(most, 6_000));
        }
    }

    private void pause(Child child, long millis) throws Exception {
        child.process.pause();
        TimeUnit.MILLISECONDS.sleep(millis);
        child.process.resume();
    }

    private void pauseUntilAnotherRuns(int n, Child child, long most) throws Exception {
        long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(most);
        child.process.pause();
        try {
            TimeUnit.MILLISECONDS.sleep(ChaosWorker.THRESHOLD.toMillis());
            while (System.nanoTime() < end && processesIn(n).stream().allMatch(p -> p == child.number)) {
                TimeUnit.MILLISECONDS.sleep(50);
            }
        } finally {
            child.process.resume();
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

    private Child pick(boolean proxied) {
        return pick(proxied, List.of());
    }

    /** Takes a process to which nothing else is done, one of the preferred ones if possible. */
    private Child pick(boolean proxied, List<Integer> preferred) {
        List<Child> free = children.stream()
                .filter(c -> !c.busy && (!proxied || c.proxy != null))
                .toList();
        if (free.isEmpty()) {
            return null;
        }
        Child child = free.stream()
                .filter(c -> preferred.contains(c.number))
                .findFirst()
                .orElse(free.get(random.nextInt(free.size())));
        child.busy = true;
        return child;
    }

    private void cut(Child child, long millis) throws Exception {
        child.proxy.set(FlakyProxy.Mode.REFUSE);
        child.proxy.cut();
        TimeUnit.MILLISECONDS.sleep(millis);
        child.proxy.set(FlakyProxy.Mode.FORWARD);
    }

    private void halfOpen(Child child, long millis) throws Exception {
        child.proxy.set(FlakyProxy.Mode.HOLD);
        TimeUnit.MILLISECONDS.sleep(millis);
        child.proxy.cut();
        child.proxy.set(FlakyProxy.Mode.FORWARD);
    }

    private void delay(Child child, long millis) throws Exception {
        child.proxy.set(FlakyProxy.Mode.DELAY);
        TimeUnit.MILLISECONDS.sleep(millis);
        child.proxy.set(FlakyProxy.Mode.FORWARD);
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

    synchronized int workers() {
        return children.size();
    }

    /** Lets all workers stop as an application does; returns the numbers of those that do not. */
    synchronized List<Integer> stopWorkers() throws Exception {
        List<Integer> stuck = new ArrayList<>();
        for (Child child : children) {
            if (!child.process.awaitExit(Duration.ofSeconds(40))) {
                stuck.add(child.number);
            }
        }
        return stuck;
    }

    @Override
    public synchronized void close() throws IOException {
        executor.shutdownNow();
        for (Child child : children) {
            child.process.close();
            if (child.proxy != null) {
                child.proxy.close();
            }
        }
    }
}
