package dev.pgworker.internal.lifecycle;

import java.time.Duration;
import java.util.List;

import org.jspecify.annotations.Nullable;

/**
 * How long a thread has been at one thing, to distinguish a thread that hangs from one that has nothing to do and from
 * one that waits for the database. The thread notes what it does; any thread may ask, and never waits.
 */
public final class Activity {

    /** What stands on the stack of a thread that waits for a connection or for an answer. */
    private static final List<String> DATABASE =
            List.of("org.postgresql.", "com.zaxxer.hikari.", "java.sql.", "javax.sql.");

    /** The same for any pool, driver or proxy. */
    private static final String CONNECT = "getConnection";

    /** Null while the thread has nothing to do. */
    private volatile @Nullable Thread thread;

    /** When the thread began what it is at, by {@link System#nanoTime}. */
    private volatile long since;

    /** Notes that the calling thread begins something. */
    public void begin() {
        since = System.nanoTime();
        thread = Thread.currentThread();
    }

    /** Notes that one thing is done and the next begins. */
    public void progress() {
        since = System.nanoTime();
    }

    /** Notes that the thread has nothing to do: it waits because it means to, or has ended. */
    public void end() {
        thread = null;
    }

    /**
     * Returns true if the thread has been at one thing for longer than that and does not wait for the database. What the
     * application does on the thread, and its own database calls, count like the worker's. A look at the stack is taken only
     * when the time is over.
     */
    public boolean isStuck(Duration longerThan) {
        long begun = since;
        Thread current = thread;
        if (current == null || System.nanoTime() - begun <= longerThan.toNanos()) {
            return false;
        }
        StackTraceElement[] stack = current.getStackTrace();
        // What the stack shows may be the next thing already.
        return stack.length > 0 && !isInDatabase(stack) && since == begun && thread == current;
    }

    private static boolean isInDatabase(StackTraceElement[] stack) {
        for (StackTraceElement frame : stack) {
            if (frame.getMethodName().equals(CONNECT) || DATABASE.stream().anyMatch(frame.getClassName()::startsWith)) {
                return true;
            }
        }
        return false;
    }
}
