package dev.pgworker.internal.engine.claim;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;

import dev.pgworker.internal.argument.Arguments;
import dev.pgworker.internal.failure.ErrorText;
import dev.pgworker.internal.failure.WorkerLog;
import dev.pgworker.task.ForbiddenFlags;

/**
 * Asks the application which flags are forbidden, on a thread of its own: an answer that does not come keeps the worker from
 * claiming jobs, and from nothing else. Thread-safe.
 */
public final class CurrentFlags {

    private static final Logger log = WorkerLog.of(CurrentFlags.class);

    private static final Duration PATIENCE = Duration.ofSeconds(5);
    private static final Duration SOON = Duration.ofMillis(50);

    private final @Nullable ForbiddenFlags source;

    /** The question that is under way, which all who ask meanwhile wait for. */
    @GuardedBy("this") private @Nullable Question question;

    /** Set while the failure that is under way has been logged. */
    @GuardedBy("this") private boolean told;

    /** Its thread is there while questions are asked. */
    private final ThreadPoolExecutor asker;

    /** Asks the given source; null forbids nothing. */
    public CurrentFlags(@Nullable ForbiddenFlags source) {
        this.source = source;
        asker = new ThreadPoolExecutor(1, 1, 10, TimeUnit.SECONDS, new LinkedBlockingQueue<>(), task -> {
            Thread thread = new Thread(task, "worker-flags");
            thread.setDaemon(true);
            return thread;
        });
        asker.allowCoreThreadTimeOut(true);
    }

    /** Ends the thread that asks, unless the source keeps it. */
    public void shutDown() {
        asker.shutdownNow();
    }

    /** What the source has been asked, and since when, by {@link System#nanoTime}. */
    private record Question(Future<List<String>> answer, long askedAt) {

        boolean isUnderWay() {
            return !answer.isDone();
        }

        /** Returns how long the source may still take. */
        long nanosLeft() {
            return PATIENCE.toNanos() - (System.nanoTime() - askedAt);
        }
    }

    /** Returns whether there is a source to ask; nothing is forbidden otherwise. */
    boolean isAsked() {
        return source != null;
    }

    /**
     * Returns the flags whose jobs are passed over.
     *
     * @throws ForbiddenFlagsException if the source throws, does not answer in time, or gives what is no flag; logged once
     */
    public Collection<String> get() {
        return source == null ? List.of() : ask(source, PATIENCE);
    }

    /**
     * As {@link #get}, for callers that must not wait.
     *
     * @throws ForbiddenFlagsException also if the source does not answer at once
     */
    Collection<String> getSoon() {
        return source == null ? List.of() : ask(source, SOON);
    }

    private List<String> ask(ForbiddenFlags asked, Duration patience) {
        try {
            Question current = question(asked);
            long nanos = Math.min(patience.toNanos(), current.nanosLeft());
            List<String> flags = current.answer.get(Math.max(0, nanos), TimeUnit.NANOSECONDS);
            answered();
            return flags;
        } catch (TimeoutException e) {
            if (patience.equals(PATIENCE)) {
                throw failed("has not responded for " + PATIENCE.toSeconds() + " s", e);
            }
            throw new ForbiddenFlagsException("The source of forbidden flags did not respond immediately", e);
        } catch (ExecutionException e) {
            throw failed("failed", e.getCause() == null ? e : e.getCause());
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new ForbiddenFlagsException("Interrupted while asking for the forbidden flags", e);
        } catch (RuntimeException | Error e) {
            throw failed("could not be called", e);
        }
    }

    /** Asks, unless an earlier question is under way: the source is asked one question at a time. */
    private synchronized Question question(ForbiddenFlags asked) {
        if (question == null || !question.isUnderWay()) {
            question = new Question(asker.submit(() -> checked(asked.current())), System.nanoTime());
        }
        return question;
    }

    private synchronized void answered() {
        told = false;
    }

    private static List<String> checked(@Nullable Collection<? extends @Nullable String> flags) {
        if (flags == null) {
            throw new IllegalStateException("current() must not return null; an empty collection forbids nothing");
        }
        List<String> copy = new ArrayList<>();
        for (String flag : flags) {
            if (flag == null || flag.indexOf('\0') >= 0 || Arguments.loneSurrogate(flag) >= 0) {
                throw new IllegalStateException(
                        "A flag must not be null and must not contain the NUL character or a lone surrogate");
            }
            copy.add(flag);
        }
        return copy;
    }

    private synchronized ForbiddenFlagsException failed(String how, Throwable error) {
        Throwable loggable = ErrorText.loggable(error);
        if (!told) {
            told = true;
            log.error("The source of forbidden flags {}; no job is claimed until it responds", how, loggable);
        }
        return new ForbiddenFlagsException("The source of forbidden flags " + how, loggable);
    }
}
