package dev.pgworker.internal.engine.run;

import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;

import dev.pgworker.internal.argument.AsciiJson;
import dev.pgworker.internal.failure.WorkerLog;
import dev.pgworker.internal.store.KeptHistory;
import dev.pgworker.task.PayloadCodec;

/** Encodes the results of runs, while a history is kept that has a use for them. Thread-safe. */
public final class RunResults {

    private static final Logger log = WorkerLog.of(RunResults.class);

    private final KeptHistory history;
    private final PayloadCodec codec;
    private final int mostBytes;

    /** The tasks of which a result was too long. */
    private final Set<String> told = ConcurrentHashMap.newKeySet();

    /**
     * Creates an encoder.
     *
     * @param mostBytes how long a result may be, as UTF-8
     */
    public RunResults(KeptHistory history, PayloadCodec codec, int mostBytes) {
        this.history = history;
        this.codec = codec;
        this.mostBytes = mostBytes;
    }

    PayloadCodec codec() {
        return codec;
    }

    /** Returns whether what is known of runs is of use to anybody. */
    boolean areKept() {
        return history.isOn();
    }

    /**
     * Returns a result as JSON text of ASCII characters; null if it is null or too long, or if none is kept.
     *
     * @throws dev.pgworker.task.PayloadException if it cannot be encoded
     */
    @Nullable String encode(String task, @Nullable Object result) {
        if (result == null || mostBytes == 0 || !areKept()) {
            return null;
        }
        String json = codec.encodeResult(task, result, mostBytes);
        if (json != null) {
            return AsciiJson.escape(json);
        }
        if (told.add(task)) {
            log.warn(
                    "A result of task \"{}\" has more than {} bytes and is not kept, nor are others that do"
                            + " (worker.history.max-result-size)",
                    task,
                    mostBytes);
        }
        return null;
    }
}
