package dev.pgworker.job;

import java.util.List;

import dev.pgworker.internal.argument.Arguments;

/**
 * The jobs that matched a filter at one moment, to be changed together.
 *
 * @param ids the ids of the jobs, ascending
 * @param complete false if more jobs match than may be selected
 * @since 0.1.0
 */
public record JobSelection(List<Long> ids, boolean complete) {

    /** Makes a defensive copy of the list. */
    public JobSelection {
        ids = Arguments.requireList("ids", ids);
    }
}
