package dev.pgworker.internal.engine.run;

import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;

import dev.pgworker.internal.argument.AsciiJson;
import dev.pgworker.internal.failure.ErrorText;
import dev.pgworker.internal.failure.WorkerLog;
import dev.pgworker.internal.store.KeptHistory;
import dev.pgworker.task.PayloadCodec;

/** Encodes the results of runs, as far as a history is kept or they are waited for. Thread-safe. */
public final class RunResults {

    private static final Logger log = WorkerLog.of(RunResults.class);

    private final KeptHistory history;
    private final PayloadCodec codec;
    private final int mostBytes;
    private final int mostAwaitedBytes;

    /** The tasks of which a result was too long. */
    private final Set<String> told = ConcurrentHashMap.newKeySet();

    /**
     * Creates an encoder.
     *
     * @param mostBytes how long a result may be in the history, as UTF-8
     * @param mostAwaitedBytes how long one may be that is waited for
     */
    public RunResults(KeptHistory history, PayloadCodec codec, int mostBytes, int mostAwaitedBytes) {
        this.mostAwaitedBytes = mostAwaitedBytes;
        this.history = history;
        this.codec = codec;
        this.mostBytes = mostBytes;
    }

    PayloadCodec codec() {
        return codec;
    }

    /** Returns whether what is known of runs is used. */
    boolean areKept() {
        return history.isOn();
    }

    /**
     * Returns a result as JSON text of ASCII characters; null if it is null or too long, or if none is kept. Of what is
     * waited for, the text begins with + if it is too long for the history, and is the reason after a ! if it is too
     * long for those who wait as well.
     *
     * @throws dev.pgworker.task.PayloadException if it cannot be encoded
     */
    @Nullable String encode(String task, @Nullable Object result, boolean awaited) {
        int most = areKept() ? mostBytes : 0;
        if (result == null || (most == 0 && !awaited)) {
            return null;
        }
        if (awaited) {
            return encodeAwaited(task, result, most);
        }
        String json = codec.encodeResult(task, result, most);
        if (json != null) {
            return AsciiJson.escape(json);
        }
        if (told.add(task)) {
            log.warn(
                    "A result of task \"{}\" has more than {} bytes and is not kept, nor are others that do"
                            + " (pgworker.history.max-result-size)",
                    task,
                    mostBytes);
        }
        return null;
    }

    /** Returns what stands for a result that is missing, for those who wait for it. */
    static String missing(String reason) {
        return "!" + ErrorText.ascii(reason);
    }

    private String encodeAwaited(String task, Object result, int mostOfHistory) {
        String json = codec.encodeResult(task, result, mostAwaitedBytes);
        if (json == null) {
            return missing("it has more than " + mostAwaitedBytes + " bytes (pgworker.results.max-size)");
        }
        String ascii = AsciiJson.escape(json);
        return ascii.length() > mostOfHistory ? "+" + ascii : ascii;
    }
}
