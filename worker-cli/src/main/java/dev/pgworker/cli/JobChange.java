package dev.pgworker.cli;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;

import org.jspecify.annotations.Nullable;

import dev.pgworker.job.BulkResult;
import dev.pgworker.job.Job;
import dev.pgworker.job.JobCounts;
import dev.pgworker.job.JobQuery;
import dev.pgworker.job.JobState;

/** Changes the jobs that are selected, in portions, and tells which have been changed. */
final class JobChange {

    private static final int PORTION = 1000;

    /** Of more jobs that match, the rest is left for the next time. */
    private static final int MOST = 1_000_000;

    /** For more jobs than these nobody reads why they were not changed. */
    private static final int EXPLAINED = 10;

    private final Session session;
    private final String verb;
    private final String participle;
    private final dev.pgworker.job.JobChange change;
    private final Function<List<Long>, List<Job>> changeIds;

    /**
     * Prepares a change.
     *
     * @param verb what is done, such as "Complete"
     * @param participle what has been done, such as "Completed"
     * @param change what becomes of jobs that filters select
     * @param changeIds does the same to the jobs with these ids, and returns those it has changed
     */
    JobChange(
            Session session,
            String verb,
            String participle,
            dev.pgworker.job.JobChange change,
            Function<List<Long>, List<Job>> changeIds) {
        this.session = session;
        this.verb = verb;
        this.participle = participle;
        this.change = change;
        this.changeIds = changeIds;
    }

    /**
     * Changes the jobs and tells the outcome.
     *
     * @param usualState the state of those that filters select, unless one is given; null for all
     * @param confirmation asks first where ids are given; where filters are, the user is asked in any case
     */
    int run(JobSelection selection, @Nullable JobState usualState, Confirmation confirmation, boolean confirmsIds) {
        if (selection.hasIds()) {
            return runIds(selection.ids(session.terminal()), confirmation, confirmsIds);
        }
        return runMatching(selection.filters().query(usualState), confirmation);
    }

    /** Changes the jobs with these ids. */
    int runIds(List<Long> ids, Confirmation confirmation, boolean confirms) {
        if (confirms) {
            confirmation.require(session.terminal(), verb + " " + Text.count(ids.size(), "job"));
        }
        return changeIds(ids);
    }

    /** Changes the jobs that match, after the user has seen how many these are. */
    int runMatching(JobQuery query, Confirmation confirmation) {
        if (query.state() == JobState.RUNNING) {
            throw CommandFailure.usage("--state must not be running: running jobs are never changed");
        }
        JobCounts counts = session.queries().count(query);
        long matching = counts.total() - counts.running();
        if (matching > 0) {
            confirmation.require(
                    session.terminal(), verb + " " + Text.count(matching, "job") + JobFilters.describe(query));
        }
        return changeMatching(query);
    }

    private int changeIds(List<Long> ids) {
        List<Long> changed = new ArrayList<>();
        try (Progress progress = progress(ids.size())) {
            for (int from = 0; from < ids.size(); from += PORTION) {
                List<Long> portion = ids.subList(from, Math.min(ids.size(), from + PORTION));
                changeIds.apply(portion).forEach(job -> changed.add(job.id()));
                if (!progress.reach(from + portion.size(), changed.size())) {
                    break;
                }
            }
        }
        List<Long> others = new ArrayList<>(ids);
        others.removeAll(new HashSet<>(changed));
        Map<Long, String> unchanged = reasons(others);
        if (session.isJson()) {
            session.writeJson(Json.object(
                    "count",
                    changed.size(),
                    "changed",
                    changed,
                    "unchanged",
                    unchanged.entrySet().stream()
                            .map(entry -> Json.object("id", entry.getKey(), "reason", entry.getValue()))
                            .toList()));
        } else {
            session.say(participle + " " + Text.count(changed.size(), "job") + ".");
        }
        unchanged.entrySet().stream()
                .limit(EXPLAINED)
                .forEach(entry -> session.say("Not changed: " + entry.getKey() + " (" + entry.getValue() + ")"));
        if (unchanged.size() > EXPLAINED) {
            session.say("Not changed: " + Text.count(unchanged.size() - EXPLAINED, "more job"));
        }
        return unchanged.isEmpty() ? ExitStatus.OK : ExitStatus.NOT_FOUND;
    }

    private Map<Long, String> reasons(List<Long> ids) {
        Map<Long, String> reasons = new LinkedHashMap<>();
        for (long id : ids) {
            String reason = "running, or not there";
            if (reasons.size() < EXPLAINED) {
                reason = session.queries()
                        .find(id)
                        .map(job -> job.lockedBy() == null ? "was running" : "running on " + Text.line(job.lockedBy()))
                        .orElse("no such job");
            }
            reasons.put(id, reason);
        }
        return reasons;
    }

    private int changeMatching(JobQuery query) {
        dev.pgworker.job.JobSelection selected = session.queries().select(query, MOST);
        BulkResult result;
        try (Progress progress = progress(selected.ids().size())) {
            result =
                    session.changes().change(selected, change, (done, changed, total) -> progress.reach(done, changed));
        }
        if (session.isJson()) {
            session.writeJson(Json.object("count", result.changed(), "more", selected.complete() ? null : true));
        } else {
            session.say(participle + " " + Text.count(result.changed(), "job") + ".");
        }
        if (!selected.complete()) {
            session.say("More jobs match: run it again.");
        }
        return ExitStatus.OK;
    }

    private Progress progress(long total) {
        return new Progress(
                session.terminal(),
                verb + " jobs",
                total,
                true,
                changed -> participle + " " + Text.count(changed, "job") + ", and left the others as they are.");
    }
}
