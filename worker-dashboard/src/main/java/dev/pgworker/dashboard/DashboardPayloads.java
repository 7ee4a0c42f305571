package dev.pgworker.dashboard;

import java.security.Principal;

import org.jspecify.annotations.Nullable;

/**
 * Decides which payloads and results the dashboard shows, and what of them. A bean of this type takes the place of {@code
 * pgworker.dashboard.payloads}. It is called for each payload of a page, by several threads at the same time.
 *
 * <p>A search in payloads finds jobs by what is hidden from the user, and is therefore only offered where all payloads are
 * shown by {@code pgworker.dashboard.payloads}.
 *
 * @since 0.1.0
 */
@FunctionalInterface
public interface DashboardPayloads {

    /**
     * Returns what to show of a payload or a result: the text as it is, another one, or null to hide it. If the method
     * throws an exception, it is hidden.
     *
     * @param task the name of the job's task
     * @param json the payload or result as JSON text
     * @param user the user who looks; null if nobody has signed in
     */
    @Nullable String shown(String task, String json, @Nullable Principal user);
}
