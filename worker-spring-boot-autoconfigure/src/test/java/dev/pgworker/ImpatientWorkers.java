package dev.pgworker;

import java.time.Duration;

/** Makes workers say soon what is wrong with them. In the package of the builder's setting for tests. */
public final class ImpatientWorkers {

    private ImpatientWorkers() {}

    /** Sets the time after which a job that does not start, or a thread that does not go on, is told of. */
    public static void say(Worker.Builder builder, Duration after) {
        builder.patience(after, after);
    }
}
