package dev.pgworker.dashboard;

import java.security.Principal;

import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;

import dev.pgworker.internal.failure.WorkerLog;
import dev.pgworker.job.Job;

/** What is shown of payloads: by the application's rule, or by the property. */
final class PayloadRule {

    private static final Logger log = WorkerLog.of(PayloadRule.class);

    /** As much of a payload or result as a list has. */
    static final int SHORT = 1_000;

    /** As much as a page of one job has. */
    static final int LONG = 500_000;

    private final @Nullable DashboardPayloads rule;
    private final boolean shown;

    /**
     * Creates a rule.
     *
     * @param rule the application's, or null for the property alone
     * @param shown what the property says
     */
    PayloadRule(@Nullable DashboardPayloads rule, boolean shown) {
        this.rule = rule;
        this.shown = shown;
    }

    /** Returns hidden, some or all. */
    String extent() {
        if (rule != null) {
            return "some";
        }
        return shown ? "all" : "hidden";
    }

    /** Returns whether all is shown to everybody, so that what is found in payloads, or counted by them, may be told. */
    boolean allShown() {
        return rule == null && shown;
    }

    /** Returns how much of each payload of a list has to be read. */
    int readOfEach() {
        return rule == null && !shown ? 0 : SHORT;
    }

    /** Returns how much of the payload of one job has to be read. */
    int readOfOne() {
        return rule == null && !shown ? 0 : LONG;
    }

    /** Returns whether the visitor sees the payload of a job as it is: a rule may show another text, or a part. */
    boolean showsWhole(Job job, @Nullable Principal user) {
        String json = job.payload();
        boolean read = readOfOne() != 0 && !json.endsWith("…");
        return read && json.equals(shown(job.taskIdentifier(), json, true, user));
    }

    /**
     * Returns what to show of a payload; null for nothing.
     *
     * @param whole whether this is all of it: a rule cannot decide about a beginning
     */
    @Nullable String shown(String task, String json, boolean whole, @Nullable Principal user) {
        if (rule == null) {
            return shown ? json : null;
        }
        if (!whole) {
            return null;
        }
        try {
            return rule.shown(task, json, user);
        } catch (RuntimeException e) {
            // The payload may be part of the message.
            log.warn(
                    "A payload of task {} is hidden, because {} failed with {}",
                    task,
                    rule.getClass().getName(),
                    e.getClass().getName());
            return null;
        }
    }
}
