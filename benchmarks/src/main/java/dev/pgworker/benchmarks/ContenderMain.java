package dev.pgworker.benchmarks;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.management.ManagementFactory;
import java.lang.management.MemoryUsage;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;

import com.sun.management.GarbageCollectorMXBean;
import com.sun.management.GcInfo;
import com.zaxxer.hikari.HikariDataSource;
import org.jspecify.annotations.Nullable;

/** The process of a JVM contender: does what the lines of its standard input say, as {@link ContenderProcess} tells. */
final class ContenderMain {

    private static final int TICK_MILLIS = 10;

    private final JvmQueue queue;
    private final Probe probe;
    private @Nullable Load load;

    private ContenderMain(JvmQueue queue, Probe probe) {
        this.queue = queue;
        this.probe = probe;
    }

    public static void main(String[] arguments) throws Exception {
        PrintStream answers = System.out;
        System.setOut(System.err); // what libraries print
        Probe probe = new Probe();
        try (HikariDataSource dataSource = new HikariDataSource();
                BufferedReader commands =
                        new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8))) {
            dataSource.setJdbcUrl(arguments[1]);
            dataSource.setMaximumPoolSize(60); // more than any contender has threads
            dataSource.setMinimumIdle(3);
            JvmQueue queue =
                    Contenders.named(arguments[0]).jvmQueue().orElseThrow().open(dataSource, probe);
            ContenderMain main = new ContenderMain(queue, probe);
            for (String line = commands.readLine(); line != null; line = commands.readLine()) {
                answers.println("=" + main.obey(line.split(" ")));
                answers.flush();
            }
            queue.stop();
        }
        System.exit(0); // whatever threads a library leaves behind
    }

    private Object obey(String[] words) throws Exception {
        return switch (words[0]) {
            case "create" -> {
                queue.createTables();
                yield 0;
            }
            case "start" -> {
                queue.start();
                yield 0;
            }
            case "stop" -> {
                queue.stop();
                yield 0;
            }
            case "ran" -> probe.ran();
            case "waits" -> probe.takeWaits();
            case "heap" -> heapAfterCollection();
            case "add" -> add(Integer.parseInt(words[1]));
            case "bulk" -> bulk(Integer.parseInt(words[1]), Integer.parseInt(words[2]));
            case "ping" -> ping(Integer.parseInt(words[1]), Integer.parseInt(words[2]), Integer.parseInt(words[3]));
            case "load" -> {
                load = new Load(Integer.parseInt(words[1]));
                load.start();
                yield 0;
            }
            case "added" -> load == null ? 0 : load.added.get();
            case "unload" -> {
                Load ending = load;
                load = null;
                yield ending == null ? 0 : ending.end();
            }
            default -> throw new IllegalArgumentException("unknown command " + words[0]);
        };
    }

    private double add(int count) throws Exception {
        long start = System.nanoTime();
        for (int i = 0; i < count; i++) {
            queue.add(Payload.NOTHING, null);
        }
        return (System.nanoTime() - start) / 1e9;
    }

    private double bulk(int count, int atOnce) throws Exception {
        long start = System.nanoTime();
        for (int left = count; left > 0; left -= atOnce) {
            queue.addAll(Collections.nCopies(Math.min(left, atOnce), Payload.NOTHING));
        }
        return (System.nanoTime() - start) / 1e9;
    }

    /** Adds stamped jobs with random pauses around the gap; with a lead they are due that much later. */
    private Object ping(int count, int gapMillis, int leadMillis) throws Exception {
        List<Probe.Wait> commits = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            Thread.sleep(ThreadLocalRandom.current().nextLong(gapMillis / 2, gapMillis + gapMillis / 2 + 1));
            long stamp = Probe.nowMicros() + leadMillis * 1_000L;
            long commit = queue.addAndCommit(new Payload(stamp, 0), leadMillis == 0 ? null : stamp);
            if (commit != 0) {
                commits.add(new Probe.Wait(stamp, commit - stamp));
            }
        }
        return commits.isEmpty() ? count : commits;
    }

    /** Memory in use after the last collection: what it found to be garbage does not count. */
    private static long heapAfterCollection() {
        return ManagementFactory.getPlatformMXBeans(GarbageCollectorMXBean.class).stream()
                .map(GarbageCollectorMXBean::getLastGcInfo)
                .filter(Objects::nonNull)
                .max(Comparator.comparingLong(GcInfo::getEndTime))
                .map(last -> last.getMemoryUsageAfterGc().values().stream()
                        .mapToLong(MemoryUsage::getUsed)
                        .sum())
                .orElse(0L);
    }

    /** Adds jobs at a constant rate; what it could not add in time, it adds as soon as it can. */
    private final class Load extends Thread {

        private final int rate;
        private volatile boolean ending;
        private final AtomicLong added = new AtomicLong();

        Load(int rate) {
            super("load");
            this.rate = rate;
        }

        @Override
        public void run() {
            long start = System.nanoTime();
            try {
                while (!ending) {
                    TimeUnit.MILLISECONDS.sleep(TICK_MILLIS);
                    long due = (long) ((System.nanoTime() - start) / 1e9 * rate);
                    int missing = (int) Math.min(due - added.get(), Math.max(1, rate / 10));
                    if (missing > 0) {
                        queue.addAll(Collections.nCopies(missing, Payload.NOTHING));
                        added.addAndGet(missing);
                    }
                }
            } catch (Exception e) {
                throw new IllegalStateException("The load ended", e);
            }
        }

        long end() throws InterruptedException {
            ending = true;
            join();
            return added.get();
        }
    }
}
