package dev.pgworker.engine;

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
import org.slf4j.LoggerFactory;

import dev.pgworker.lifecycle.ErrorText;
import dev.pgworker.task.ForbiddenFlags;

/**
 * Asks the application which flags are forbidden, on a thread of its own: an answer that does not come keeps the worker from
 * claiming jobs, and from nothing else. Safe for use by many threads.
 */
public final class CurrentFlags {

    private static final Logger log = LoggerFactory.getLogger(CurrentFlags.class);

    private static final Duration PATIENCE = Duration.ofSeconds(5);

    private final @Nullable ForbiddenFlags source;

    /** The question that is not answered yet. */
    @GuardedBy("this") private @Nullable Future<List<String>> question;

    /** Set while the question is overdue: nobody waits for it again. */
    @GuardedBy("this") private boolean overdue;

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

    /**
     * Returns the flags whose jobs are passed over.
     *
     * @throws ForbiddenFlagsException if the source throws, does not answer in time, or gives what is no flag; logged once
     */
    Collection<String> get() {
        return source == null ? List.of() : ask(source);
    }

    private synchronized List<String> ask(ForbiddenFlags asked) {
        if (overdue && question != null) {
            if (!question.isDone()) {
                throw failed("has not answered for " + PATIENCE.toSeconds() + " s", new TimeoutException());
            }
            question = null;
            overdue = false;
        }
        try {
            Future<List<String>> task = asker.submit(() -> checked(asked.current()));
            question = task;
            List<String> flags = task.get(PATIENCE.toMillis(), TimeUnit.MILLISECONDS);
            question = null;
            told = false;
            return flags;
        } catch (TimeoutException e) {
            overdue = true;
            throw failed("has not answered for " + PATIENCE.toSeconds() + " s", e);
        } catch (ExecutionException e) {
            question = null;
            throw failed("failed", e.getCause() == null ? e : e.getCause());
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            question = null;
            throw new ForbiddenFlagsException("Interrupted while asking for the forbidden flags", e);
        } catch (RuntimeException | Error e) {
            question = null;
            throw failed("could not be asked", e);
        }
    }

    private static List<String> checked(@Nullable Collection<? extends @Nullable String> flags) {
        if (flags == null) {
            throw new IllegalStateException("current() must not return null; an empty collection forbids nothing");
        }
        List<String> copy = new ArrayList<>();
        for (String flag : flags) {
            if (flag == null || flag.indexOf('\0') >= 0) {
                throw new IllegalStateException("A flag must be neither null nor contain the NUL character");
            }
            copy.add(flag);
        }
        return copy;
    }

    @GuardedBy("this") private ForbiddenFlagsException failed(String how, Throwable error) {
        Throwable loggable = ErrorText.loggable(error);
        if (!told) {
            told = true;
            log.error("The source of forbidden flags {}; no job is claimed until it answers", how, loggable);
        }
        return new ForbiddenFlagsException("The source of forbidden flags " + how, loggable);
    }
}
