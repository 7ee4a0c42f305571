package dev.pgworker.task;

import java.util.Set;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Flow;
import java.util.concurrent.Future;
import java.util.stream.BaseStream;

import org.springframework.util.ClassUtils;

/** What methods of handlers may return: a value that is there, which becomes the result of the run, or nothing. */
final class HandlerResults {

    private static final Set<String> NOTHING = Set.of(void.class.getName(), Void.class.getName(), "kotlin.Unit");

    private static final Set<Class<?>> UNFINISHED =
            Set.of(Future.class, CompletionStage.class, Flow.Publisher.class, BaseStream.class);

    /** Of libraries that need not be there. */
    private static final Set<String> UNFINISHED_ELSEWHERE = Set.of(
            "org.reactivestreams.Publisher",
            "io.reactivex.rxjava3.core.CompletableSource",
            "io.reactivex.rxjava3.core.MaybeSource",
            "io.reactivex.rxjava3.core.ObservableSource",
            "io.reactivex.rxjava3.core.SingleSource",
            "io.smallrye.mutiny.Uni",
            "kotlin.sequences.Sequence",
            "kotlinx.coroutines.Job",
            "kotlinx.coroutines.flow.Flow");

    private HandlerResults() {}

    /** Returns whether a method of this type has no result. */
    static boolean isNothing(Class<?> type) {
        return NOTHING.contains(type.getName());
    }

    /** Returns whether a value of this type only promises that work will be done. */
    static boolean isUnfinished(Class<?> type) {
        return UNFINISHED.stream().anyMatch(unfinished -> unfinished.isAssignableFrom(type))
                || UNFINISHED_ELSEWHERE.contains(type.getName())
                || ClassUtils.getAllInterfacesForClassAsSet(type).stream()
                        .anyMatch(one -> UNFINISHED_ELSEWHERE.contains(one.getName()));
    }

    /**
     * Checks a value that a method has returned whose type leaves open what it is.
     *
     * @throws IllegalStateException if it only promises that work will be done
     */
    static void requireFinished(String source, Object result) {
        if (isUnfinished(result.getClass())) {
            throw new IllegalStateException(
                    source + " returned a " + result.getClass().getName()
                            + " instead of waiting for it, so that it is not known whether the work is done");
        }
    }
}
