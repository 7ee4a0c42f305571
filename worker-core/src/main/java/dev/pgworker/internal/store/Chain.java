package dev.pgworker.internal.store;

import org.jspecify.annotations.Nullable;

/** Claims that are made at the same time look at different jobs, so that none of them locks what another one has claimed. */
public enum Chain {
    /** All jobs. */
    WHOLE(null),
    /** Jobs without a queue whose ids, and jobs of queues whose ids, are even. */
    EVEN(0),
    /** The others. */
    ODD(1);

    final @Nullable Integer parity;

    Chain(@Nullable Integer parity) {
        this.parity = parity;
    }
}
