package dev.pgworker.test;

import java.util.List;

/**
 * The steps of an attempt, by name and in the order in which they began.
 *
 * @param ran those that the attempt ran, or at which it began to wait
 * @param recorded those that earlier attempts had recorded, which it took from the record
 * @since 0.1.0
 */
public record RunSteps(List<String> ran, List<String> recorded) {

    /** Copies the names. */
    public RunSteps {
        ran = List.copyOf(ran);
        recorded = List.copyOf(recorded);
    }
}
