package dev.pgworker.testing;

import java.util.concurrent.Executor;

/** Gives each task a thread of its own: where the common pool has one thread, a task that waits for another one keeps it from running. */
public final class OwnThread {

    /** Starts a daemon thread for each task. */
    public static final Executor EACH = task -> {
        Thread thread = new Thread(task, "test-async");
        thread.setDaemon(true);
        thread.start();
    };

    private OwnThread() {}
}
