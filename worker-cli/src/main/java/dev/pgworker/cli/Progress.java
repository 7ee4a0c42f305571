package dev.pgworker.cli;

import java.io.PrintWriter;
import java.time.Duration;
import java.util.Locale;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongFunction;

/** A bar on standard error that shows how far a long work has come, if somebody sits in front of it. */
final class Progress implements AutoCloseable {

    private static final int BAR = 30;

    /** A chunk of changes takes tenths of a second. */
    private static final Duration PATIENCE = Duration.ofSeconds(2);

    private final Terminal terminal;
    private final String what;
    private final long total;
    private final boolean stops;
    private final LongFunction<String> interrupted;
    private final Thread onInterrupt = new Thread(this::tellInterrupted, "worker-interrupted");
    private final AtomicLong done = new AtomicLong();
    private final AtomicLong told = new AtomicLong();
    private final CountDownLatch closed = new CountDownLatch(1);
    private volatile boolean stopping;
    private int shown = -1;

    /**
     * Begins.
     *
     * @param what what is done, such as "Completing"
     * @param total how much there is to do; 0 if nobody knows
     * @param stops whether the work ends when {@link #reach} returns false, so that an interruption may wait for that
     * @param interrupted says what has become of it if the program is interrupted, from how much was done
     */
    Progress(Terminal terminal, String what, long total, boolean stops, LongFunction<String> interrupted) {
        this.stops = stops;
        this.terminal = terminal;
        this.what = what;
        this.total = total;
        this.interrupted = interrupted;
        Runtime.getRuntime().addShutdownHook(onInterrupt);
    }

    void advance(long by) {
        boolean unused = reach(done.get() + by, told.get() + by);
    }

    /**
     * Shows how far it has come.
     *
     * @param all how much has been looked at
     * @param changed how much of it has been done, which is told if the program is interrupted
     * @return false if the program is being interrupted, and waits for this
     */
    boolean reach(long all, long changed) {
        done.set(all);
        told.set(changed);
        int now = total == 0 ? (int) (all / 1000) : (int) Math.min(100, all * 100 / total);
        if (terminal.isInteractive() && now != shown) {
            shown = now;
            PrintWriter err = terminal.err();
            err.print('\r' + line(all));
            err.flush();
        }
        return !stopping;
    }

    private String line(long all) {
        if (total == 0) {
            return String.format(Locale.ROOT, "%s: %,d", what, all);
        }
        int filled = (int) Math.min(BAR, all * BAR / total);
        return String.format(
                Locale.ROOT,
                "%s: [%s%s] %,d of %,d",
                what,
                "#".repeat(filled),
                " ".repeat(BAR - filled),
                Math.min(all, total),
                total);
    }

    /** What is under way is let come to an end, so that the number is right. */
    private void tellInterrupted() {
        stopping = true;
        try {
            boolean unused = !stops || closed.await(PATIENCE.toMillis(), TimeUnit.MILLISECONDS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        PrintWriter err = terminal.err();
        err.println();
        err.println("Interrupted. " + interrupted.apply(told.get()));
        err.flush();
    }

    @Override
    public void close() {
        closed.countDown();
        try {
            Runtime.getRuntime().removeShutdownHook(onInterrupt);
        } catch (IllegalStateException e) {
            return; // the interruption is being told
        }
        if (shown >= 0) {
            terminal.err().print('\r' + " ".repeat(line(done.get()).length()) + '\r');
            terminal.err().flush();
        }
    }
}
