package dev.pgworker.cli;

import java.io.PrintWriter;
import java.util.Locale;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongFunction;

/** A bar on standard error that shows how far a long work has come, if somebody sits in front of it. */
final class Progress implements AutoCloseable {

    private static final int BAR = 30;

    private final Terminal terminal;
    private final String what;
    private final long total;
    private final LongFunction<String> interrupted;
    private final Thread onInterrupt = new Thread(this::tellInterrupted, "worker-interrupted");
    private final AtomicLong done = new AtomicLong();
    private int shown = -1;

    /**
     * Begins.
     *
     * @param what what is done, such as "Completing"
     * @param total how much there is to do; 0 if nobody knows
     * @param interrupted says what has become of it if the program is interrupted, from how much was done
     */
    Progress(Terminal terminal, String what, long total, LongFunction<String> interrupted) {
        this.terminal = terminal;
        this.what = what;
        this.total = total;
        this.interrupted = interrupted;
        Runtime.getRuntime().addShutdownHook(onInterrupt);
    }

    void advance(long by) {
        long all = done.addAndGet(by);
        int now = total == 0 ? (int) (all / 1000) : (int) Math.min(100, all * 100 / total);
        if (terminal.isInteractive() && now != shown) {
            shown = now;
            PrintWriter err = terminal.err();
            err.print('\r' + line(all));
            err.flush();
        }
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

    private void tellInterrupted() {
        PrintWriter err = terminal.err();
        err.println();
        err.println("Interrupted. " + interrupted.apply(done.get()));
        err.flush();
    }

    @Override
    public void close() {
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
