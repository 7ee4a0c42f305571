package dev.pgworker.dashboard;

import java.time.Instant;
import java.util.List;
import java.util.Map;

import org.jspecify.annotations.Nullable;

import dev.pgworker.history.HistoryEntry;
import dev.pgworker.job.Cancellation;
import dev.pgworker.job.Job;
import dev.pgworker.job.JobProgress;
import dev.pgworker.job.JobState;
import dev.pgworker.job.JobWait;
import dev.pgworker.job.Pause;
import dev.pgworker.job.RunningJob;
import dev.pgworker.step.JobStep;

/** Jobs as one visitor sees them. */
final class JobViews {

    /** The end of a payload that was not read whole. */
    private static final String CUT = "…";

    private static final int SHORT_ERROR = 300;
    private static final int LONG_ERROR = 200_000;

    private final PayloadRule payloads;
    private final Visitor visitor;
    private final Instant now;

    /**
     * Creates the views.
     *
     * @param now decides whether a job is due
     */
    JobViews(PayloadRule payloads, Visitor visitor, Instant now) {
        this.payloads = payloads;
        this.visitor = visitor;
        this.now = now;
    }

    /** Returns a job of a list. */
    Map<String, @Nullable Object> listed(Job job) {
        return withPayload(base(job, firstLine(job.lastError())), job, PayloadRule.SHORT);
    }

    /** Returns a job without its payload, which was not read. */
    Map<String, @Nullable Object> bare(Job job) {
        return base(job, firstLine(job.lastError())).map();
    }

    /** Returns a job on a page of its own. */
    Map<String, @Nullable Object> whole(Job job) {
        View view = base(job, cut(job.lastError(), LONG_ERROR))
                .put("payloadWhole", payloads.showsWhole(job, visitor.principal()));
        return withPayload(view, job, PayloadRule.LONG);
    }

    private Map<String, @Nullable Object> withPayload(View view, Job job, int longest) {
        putJson(view, "payload", job.taskIdentifier(), job.payload(), longest);
        return view.map();
    }

    private View base(Job job, @Nullable String error) {
        return new View()
                .put("id", job.id())
                .put("task", job.taskIdentifier())
                .put("queue", job.queueName())
                .put("key", job.key())
                .put("state", JobState.of(job, now))
                .put("priority", job.priority())
                .put("runAt", job.runAt())
                .put("attempts", job.attempts())
                .put("maxAttempts", job.maxAttempts())
                .put("error", error)
                .put("createdAt", job.createdAt())
                .put("updatedAt", job.updatedAt())
                .put("lockedAt", job.lockedAt())
                .put("lockedBy", job.lockedBy())
                .put("revision", job.revision())
                .put("flags", job.flags().stream().sorted().toList())
                .put("recoveries", job.recoveries());
    }

    Map<String, @Nullable Object> running(RunningJob running) {
        JobProgress progress = running.progress();
        return new View()
                .put("job", bare(running.job()))
                .put("startedAt", running.startedAt())
                .put("workerId", running.job().lockedBy())
                .put(
                        "progress",
                        progress == null
                                ? null
                                : new View()
                                        .put("done", progress.done())
                                        .put("total", progress.total())
                                        .put("text", progress.text())
                                        .put("updatedAt", progress.updatedAt())
                                        .map())
                .map();
    }

    static @Nullable Map<String, @Nullable Object> wait(@Nullable JobWait wait) {
        return wait == null
                ? null
                : new View()
                        .put("reason", wait.reason())
                        .put("until", wait.until())
                        .put("ahead", wait.ahead())
                        .put("text", wait.text())
                        .map();
    }

    /** Returns what became of a job that was cancelled while it ran, which is not known to be so unless it is given. */
    static @Nullable Map<String, @Nullable Object> cancellation(@Nullable List<Cancellation> known) {
        if (known == null || known.isEmpty()) {
            return null;
        }
        Cancellation cancelled = known.get(0);
        return new View()
                .put("state", cancelled.state())
                .put("requestedAt", cancelled.requestedAt())
                .put("requestedBy", cancelled.requestedBy())
                .put("workerId", cancelled.workerId())
                .map();
    }

    /** Returns the steps of a job, of which none is known if they could not be read; their results are as secret as payloads. */
    List<Map<String, @Nullable Object>> steps(@Nullable List<JobStep> known, String task) {
        boolean hidden = payloads.readOfEach() == 0;
        return (known == null ? List.<JobStep>of() : known)
                .stream()
                        .map(step -> {
                            View view = new View()
                                    .put("name", step.name())
                                    .put("kind", step.kind())
                                    .put("attempt", step.attempt())
                                    .put("startedAt", step.startedAt())
                                    .put("endedAt", step.endedAt())
                                    .put("dueAt", step.dueAt())
                                    .put("timedOut", step.timedOut());
                            putJson(
                                    view,
                                    "result",
                                    task,
                                    hidden && step.resultType() != null ? "" : step.result(),
                                    PayloadRule.SHORT);
                            return view.map();
                        })
                        .toList();
    }

    /** Returns the jobs that wait for each other, one of which is named. */
    static View flow(Source source, Input input) {
        Long id = input.number("id");
        if (id == null) {
            throw new IllegalArgumentException("id must be that of a job");
        }
        int most = input.integer("most", 50, 1, 10_000);
        return new View()
                .put(
                        "members",
                        source.readPrimary(() -> source.instance().jobFlows().find(id, most)).stream()
                                .map(member -> new View()
                                        .put("id", member.jobId())
                                        .put("task", member.taskIdentifier())
                                        .put("state", member.state())
                                        .put("endedAt", member.endedAt())
                                        .put("onFailure", member.onFailure())
                                        .put("predecessors", member.predecessors())
                                        .map())
                                .toList());
    }

    static @Nullable Map<String, @Nullable Object> pause(@Nullable Pause pause) {
        return pause == null
                ? null
                : new View()
                        .put("kind", pause.target().kind())
                        .put("name", pause.target().name())
                        .put("since", pause.since())
                        .put("by", pause.by())
                        .put("reason", pause.reason())
                        .put("text", pause.text())
                        .map();
    }

    Map<String, @Nullable Object> entry(HistoryEntry entry, boolean whole) {
        int longest = whole ? PayloadRule.LONG : PayloadRule.SHORT;
        View view = new View()
                .put("jobId", entry.jobId())
                .put("task", entry.taskIdentifier())
                .put("queue", entry.queueName())
                .put("key", entry.key())
                .put("outcome", entry.outcome())
                .put("endedAt", entry.endedAt())
                .put("startedAt", entry.startedAt())
                .put("tookMs", entry.took())
                .put("attempt", entry.attempt())
                .put("maxAttempts", entry.maxAttempts())
                .put("priority", entry.priority())
                .put("flags", entry.flags().stream().sorted().toList())
                .put("createdAt", entry.createdAt())
                .put("runAt", entry.runAt())
                .put("workerId", entry.workerId())
                .put("error", whole ? cut(entry.error(), LONG_ERROR) : firstLine(entry.error()))
                .put("traceId", entry.traceId());
        boolean hidden = payloads.readOfEach() == 0;
        putJson(view, "result", entry.taskIdentifier(), hidden ? "" : entry.result(), longest);
        putJson(view, "payload", entry.taskIdentifier(), hidden ? "" : entry.payload(), longest);
        return view.map();
    }

    /** Puts a payload or result, or that it is hidden; a text that is null is not there at all. */
    void putJson(View view, String name, String task, @Nullable String json, int longest) {
        if (json == null) {
            view.put(name, null).put(name + "Hidden", false).put(name + "Cut", false);
            return;
        }
        if (json.isEmpty()) {
            // It was not read, because nobody may see it.
            view.put(name + "Hidden", true).put(name + "Cut", false);
            return;
        }
        boolean readWhole = !json.endsWith(CUT);
        String shown = payloads.shown(task, json, readWhole, visitor.principal());
        view.put(name + "Hidden", shown == null && readWhole);
        view.put(name + "Cut", !readWhole || (shown != null && shown.length() > longest));
        if (shown != null) {
            view.put(name, cut(shown, longest));
        }
    }

    private static @Nullable String firstLine(@Nullable String error) {
        return error == null ? null : cut(error.strip().lines().findFirst().orElse(""), SHORT_ERROR);
    }

    private static @Nullable String cut(@Nullable String text, int longest) {
        if (text == null || text.length() <= longest) {
            return text;
        }
        int end = Character.isHighSurrogate(text.charAt(longest - 1)) ? longest - 1 : longest;
        return text.substring(0, end);
    }
}
