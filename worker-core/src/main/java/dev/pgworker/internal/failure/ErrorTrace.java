package dev.pgworker.internal.failure;

import java.util.ArrayList;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Set;

import org.jspecify.annotations.Nullable;

/**
 * An exception for those who look for the mistake in an application: the exception and its causes a line each, then
 * where they were thrown, the innermost cause first, without the frames of reflection, proxies, threads and this worker. Of
 * consecutive frames of libraries the first are shown. Whatever the exceptions' own methods do costs their own lines only.
 */
final class ErrorTrace {

    private static final int MOST_CAUSES = 5;
    private static final int MOST_WALKED = 10_000;
    private static final int MOST_SUPPRESSED = 3;
    private static final int MOST_FRAMES = 40;
    private static final int MOST_LIBRARY_FRAMES = 3;

    /** How many frames to show of an exception that has none but those of the worker. */
    private static final int FRAMES_OF_OURS = 5;

    private static final int CAUSE_LIMIT = 500;

    private static final List<String> GLUE = List.of(
            "dev.pgworker.internal.",
            "dev.pgworker.task.",
            "dev.pgworker.autoconfigure.",
            "java.lang.reflect.",
            "java.lang.invoke.",
            "java.lang.Thread",
            "java.lang.VirtualThread",
            "java.util.concurrent.ThreadPoolExecutor",
            "java.util.concurrent.ThreadPerTaskExecutor",
            "java.util.concurrent.FutureTask",
            "java.util.concurrent.Executors",
            "jdk.internal.",
            "jdk.proxy",
            "com.sun.proxy.",
            "sun.reflect.",
            "org.springframework.aop.",
            "org.springframework.cglib.",
            "org.springframework.transaction.interceptor.",
            "org.springframework.util.ReflectionUtils");

    private static final List<String> GENERATED =
            List.of("$$SpringCGLIB$$", "$$FastClass", "$$Lambda", "$HibernateProxy$", "$$EnhancerBy", "$Proxy");

    private static final List<String> LIBRARIES = List.of(
            "java.",
            "javax.",
            "jakarta.",
            "jdk.",
            "sun.",
            "com.sun.",
            "kotlin.",
            "kotlinx.",
            "scala.",
            "groovy.",
            "org.springframework.",
            "org.hibernate.",
            "org.postgresql.",
            "org.apache.",
            "org.eclipse.",
            "com.zaxxer.",
            "com.google.",
            "tools.jackson.",
            "com.fasterxml.",
            "io.netty.",
            "io.micrometer.",
            "io.opentelemetry.",
            "reactor.",
            "okhttp3.");

    private final StringBuilder text = new StringBuilder();

    private ErrorTrace() {}

    /** Returns the text of an exception. */
    static String of(Throwable error) {
        ErrorTrace trace = new ErrorTrace();
        List<Throwable> chain = chain(error);
        trace.headlines(chain);
        for (int i = chain.size() - 1; i >= 0; i--) {
            trace.frames(chain.get(i), i == chain.size() - 1 ? null : chain.get(i + 1));
        }
        return trace.text.toString();
    }

    /** Returns an exception and its causes, each once: the first of them and the innermost. */
    private static List<Throwable> chain(Throwable error) {
        List<Throwable> chain = new ArrayList<>();
        Set<Throwable> seen = Collections.newSetFromMap(new IdentityHashMap<>());
        Throwable current = error;
        while (current != null && seen.size() < MOST_WALKED && seen.add(current)) {
            if (chain.size() > MOST_CAUSES) {
                chain.remove(MOST_CAUSES);
            }
            chain.add(current);
            current = causeOf(current);
        }
        return chain;
    }

    private static @Nullable Throwable causeOf(Throwable error) {
        try {
            return error.getCause();
        } catch (Throwable e) {
            return null;
        }
    }

    private void headlines(List<Throwable> chain) {
        int suppressed = 0;
        for (Throwable error : chain) {
            if (text.isEmpty()) {
                text.append(Headline.of(error, Headline.LIMIT));
            } else {
                text.append("\nCaused by: ").append(Headline.of(error, CAUSE_LIMIT));
            }
            for (Throwable other : error.getSuppressed()) {
                if (suppressed++ < MOST_SUPPRESSED) {
                    text.append("\nSuppressed: ").append(Headline.of(other, CAUSE_LIMIT));
                }
            }
        }
    }

    private void frames(Throwable error, @Nullable Throwable cause) {
        StackTraceElement[] frames = framesOf(error);
        int end = frames.length;
        if (cause != null) {
            StackTraceElement[] inner = framesOf(cause);
            int innerEnd = inner.length;
            while (end > 0 && innerEnd > 0 && frames[end - 1].equals(inner[innerEnd - 1])) {
                end--;
                innerEnd--;
            }
        }
        List<StackTraceElement> shown = new ArrayList<>();
        for (int i = 0; i < end; i++) {
            if (!isGlue(frames[i].getClassName())) {
                shown.add(frames[i]);
            }
        }
        if (shown.isEmpty() && cause == null) {
            shown.addAll(List.of(frames).subList(0, Math.min(end, FRAMES_OF_OURS)));
        }
        if (!shown.isEmpty() && cause != null) {
            text.append("\nWrapped in ").append(error.getClass().getName());
        }
        append(shown);
    }

    private void append(List<StackTraceElement> frames) {
        int libraryRun = 0;
        int leftOut = 0;
        int told = 0;
        for (StackTraceElement frame : frames) {
            libraryRun = isLibrary(frame.getClassName()) ? libraryRun + 1 : 0;
            if (libraryRun > MOST_LIBRARY_FRAMES || told == MOST_FRAMES) {
                leftOut++;
                continue;
            }
            tellLeftOut(leftOut);
            leftOut = 0;
            text.append("\n\tat ").append(frame);
            told++;
        }
        tellLeftOut(leftOut);
    }

    private void tellLeftOut(int frames) {
        if (frames > 0) {
            text.append("\n\t... ").append(frames).append(" more");
        }
    }

    private static StackTraceElement[] framesOf(Throwable error) {
        try {
            StackTraceElement[] frames = error.getStackTrace();
            return List.of(frames).toArray(StackTraceElement[]::new);
        } catch (Throwable e) {
            return new StackTraceElement[0];
        }
    }

    private static boolean isGlue(String type) {
        return GLUE.stream().anyMatch(type::startsWith) || GENERATED.stream().anyMatch(type::contains);
    }

    private static boolean isLibrary(String type) {
        return LIBRARIES.stream().anyMatch(type::startsWith);
    }
}
