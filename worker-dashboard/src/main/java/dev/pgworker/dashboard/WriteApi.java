package dev.pgworker.dashboard;

import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Collection;
import java.util.EnumSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;

import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import tools.jackson.databind.JsonNode;

import dev.pgworker.autoconfigure.WorkerInstance;
import dev.pgworker.internal.failure.WorkerLog;
import dev.pgworker.job.Cancellation;
import dev.pgworker.job.CleanupPreview;
import dev.pgworker.job.CleanupResult;
import dev.pgworker.job.CleanupTask;
import dev.pgworker.job.Job;
import dev.pgworker.job.JobChange;
import dev.pgworker.job.JobChanges;
import dev.pgworker.job.JobKeyMode;
import dev.pgworker.job.JobQueries;
import dev.pgworker.job.JobQuery;
import dev.pgworker.job.JobSpec;
import dev.pgworker.job.PauseTarget;
import dev.pgworker.job.Rescheduling;
import dev.pgworker.job.SweepOptions;
import dev.pgworker.job.SweepResult;
import dev.pgworker.job.WorkerOperations;
import dev.pgworker.schedule.RecurringJobs;

/** What the pages change: each change in the name of the user, and with a sentence that says what was done. */
final class WriteApi {

    private static final Logger log = WorkerLog.of(WriteApi.class);

    /** A live worker with an older heartbeat would lose its jobs. */
    private static final Duration SHORTEST_THRESHOLD = Duration.ofMinutes(1);

    private static JobChanges changes(Source source, Visitor visitor) {
        return source.instance().jobChanges().actingAs(visitor.actingName());
    }

    private static WorkerOperations operations(Source source, Visitor visitor) {
        return source.instance().workerOperations().actingAs(visitor.actingName());
    }

    View change(Source source, DashboardAction action, Input input, Visitor visitor) {
        Set<Long> ids = input.ids();
        JobChange change = jobChange(action, input);
        JobChanges changes = changes(source, visitor);
        if (change instanceof JobChange.Cancel) {
            return cancelled(changes.cancel(ids));
        }
        List<Job> changed;
        if (change instanceof JobChange.RunNow) {
            changed = changes.runNow(ids);
        } else if (change instanceof JobChange.Complete) {
            changed = changes.complete(ids);
        } else if (change instanceof JobChange.Fail fail) {
            changed = changes.permanentlyFail(ids, fail.reason());
        } else if (change instanceof JobChange.Reschedule reschedule) {
            changed = changes.reschedule(ids, reschedule.rescheduling());
        } else {
            changed = changes.remove(ids);
        }
        List<Long> changedIds = changed.stream().map(Job::id).toList();
        List<Long> skipped = ids.stream().filter(id -> !changedIds.contains(id)).toList();
        return new View()
                .put("changed", changedIds)
                .put("skipped", skipped)
                .put(
                        "text",
                        said(
                                action,
                                ids.size(),
                                changedIds.size(),
                                source.instance().jobQueries(),
                                skipped));
    }

    private static View cancelled(List<Cancellation> answers) {
        Map<Cancellation.State, Long> counts =
                answers.stream().collect(Collectors.groupingBy(Cancellation::state, Collectors.counting()));
        List<String> parts = new ArrayList<>();
        for (Cancellation.State state : Cancellation.State.values()) {
            long count = counts.getOrDefault(state, 0L);
            if (count > 0) {
                parts.add((answers.size() == 1 ? "The job" : jobs(count)) + " " + said(state, count == 1));
            }
        }
        return new View()
                .put("changed", ids(answers, false))
                .put("skipped", ids(answers, true))
                .put("text", String.join(" ", parts));
    }

    private static List<Long> ids(List<Cancellation> answers, boolean gone) {
        return answers.stream()
                .filter(answer -> (answer.state() == Cancellation.State.GONE) == gone)
                .map(Cancellation::jobId)
                .toList();
    }

    private static String said(Cancellation.State state, boolean one) {
        return switch (state) {
            case REMOVED -> one ? "was deleted." : "were deleted.";
            case REQUESTED ->
                one ? "is running: its worker interrupts it." : "are running: their workers interrupt them.";
            case MARKED ->
                one
                        ? "is running in a worker that cannot be notified, and does not run again."
                        : "are running in workers that cannot be notified, and do not run again.";
            case CANCELLED -> one ? "has been cancelled." : "have been cancelled.";
            case COMPLETED -> "succeeded all the same.";
            case GONE -> one ? "no longer exists." : "no longer exist.";
        };
    }

    /** Reads what is to be done to each job. */
    static JobChange jobChange(DashboardAction action, Input input) {
        return switch (action) {
            case RUN_NOW -> new JobChange.RunNow();
            case COMPLETE -> new JobChange.Complete();
            case FAIL -> new JobChange.Fail(input.required("reason"));
            case REMOVE -> new JobChange.Remove();
            case CANCEL -> new JobChange.Cancel();
            case RESCHEDULE ->
                new JobChange.Reschedule(new Rescheduling(
                        input.instant("runAt"),
                        input.integer("priority"),
                        input.integer("attempts"),
                        input.integer("maxAttempts")));
            default -> throw new IllegalArgumentException(action.id() + " is not a change of jobs");
        };
    }

    private static String said(
            DashboardAction action, int wanted, int changed, JobQueries queries, Collection<Long> skipped) {
        String done = switch (action) {
            case RUN_NOW -> changed == 1 ? "is due now" : "are due now";
            case COMPLETE -> changed == 1 ? "was completed" : "were completed";
            case FAIL -> changed == 1 ? "has been failed" : "have been failed";
            case REMOVE -> changed == 1 ? "was deleted" : "were deleted";
            default -> changed == 1 ? "was rescheduled" : "were rescheduled";
        };
        String text = (wanted == 1 && changed == 1 ? "The job " : changed + " of " + jobs(wanted) + " ") + done;
        if (skipped.isEmpty()) {
            return text + ".";
        }
        List<Job> left = queries.find(skipped, 0);
        long running = left.stream().filter(job -> job.lockedAt() != null).count();
        int gone = skipped.size() - left.size();
        List<String> reasons = new ArrayList<>();
        if (running > 0) {
            reasons.add(running + (running == 1 ? " is running" : " are running"));
        }
        if (gone > 0) {
            reasons.add(gone + (gone == 1 ? " no longer exists" : " no longer exist"));
        }
        return reasons.isEmpty() ? text + "." : text + "; " + String.join(", ", reasons) + ".";
    }

    private static String jobs(long number) {
        return number == 1 ? "1 job" : number + " jobs";
    }

    /**
     * Adds a job.
     *
     * @param mayReplace whether the visitor may also reschedule jobs, which a key of one does
     * @param mayCancel whether the visitor may also cancel jobs, which a mode of keys does
     */
    View add(Source source, Input input, Visitor visitor, boolean mayReplace, boolean mayCancel) {
        String task = input.required("task");
        JsonNode payload = payload(input);
        JobSpec spec = JobSpec.builder()
                .queueName(input.text("queue"))
                .jobKey(input.text("key"))
                .jobKeyMode(input.constant("keyMode", JobKeyMode.class))
                .runAt(input.instant("runAt"))
                .priority(input.integer("priority"))
                .maxAttempts(input.integer("maxAttempts"))
                .flags(input.texts("flags"))
                .build();
        if (spec.jobKeyMode() == JobKeyMode.REPLACE_AND_CANCEL && !mayCancel) {
            throw new Refusal(
                    403,
                    "A running job with this key would be cancelled, for which you also need the action "
                            + DashboardAction.CANCEL.id() + ".");
        }
        return source.change(() -> {
            Job former = spec.jobKey() == null ? null : ofKey(source, spec.jobKey());
            if (former != null && !mayReplace) {
                throw mayNotReplace();
            }
            Job job = source.instance().jobScheduler().addJob(task, payload, spec);
            if (job.isSkipped()) {
                return new View().put("id", null).put("text", "The application prevented that the job was added.");
            }
            if (job.revision() > 0 && !mayReplace) {
                // Somebody else has added one with the key in between; the transaction is rolled back.
                throw mayNotReplace();
            }
            String done = done(job, former, spec);
            log.info("{}: {} Its task is {}.", visitor.actingName(), done, task);
            return new View().put("id", job.id()).put("text", done);
        });
    }

    private static JsonNode payload(Input input) {
        String text = input.text("payload");
        if (text != null && text.length() > Json.LONGEST_PAYLOAD) {
            throw new Refusal(
                    413, "payload must not be longer than 10 MB here. Add larger ones through JobScheduler or SQL.");
        }
        return Json.read("payload", text == null ? "{}" : text);
    }

    /** Runs a failed job again with another payload, for a visitor who sees the whole payload that it replaces. */
    View retry(Source source, Input input, PayloadRule payloads, Visitor visitor, boolean mayAdd) {
        if (!mayAdd) {
            throw new Refusal(
                    403,
                    "To retry a job with another payload, you also need the action " + DashboardAction.ADD.id() + ".");
        }
        for (String name : List.of("id", "payload", "updatedAt")) {
            String unused = input.required(name);
        }
        Set<Long> id = Set.of(Objects.requireNonNull(input.number("id")));
        JsonNode payload = payload(input);
        Instant readAs = input.instant("updatedAt");
        return source.change(() -> {
            Job job = source.instance().jobQueries().find(id, payloads.readOfOne()).stream()
                    .findFirst()
                    .orElseThrow(() -> new Refusal(404, "There is no such job."));
            if (!payloads.showsWhole(job, visitor.principal())) {
                throw new Refusal(403, "The payload is hidden or too large to be edited here.");
            }
            if (!job.updatedAt().equals(readAs)) {
                throw new Refusal(409, "The job has been changed meanwhile. Close this, and look at it again.");
            }
            List<Long> changed = changes(source, visitor).retryWith(id, payload).stream()
                    .map(Job::id)
                    .toList();
            return new View()
                    .put("changed", changed)
                    .put(
                            "text",
                            changed.isEmpty()
                                    ? "The job is no longer in state failed."
                                    : "The job is due now, with this payload.");
        });
    }

    private static Refusal mayNotReplace() {
        return new Refusal(
                403,
                "A job with this key exists and would be replaced, for which you also need the action "
                        + DashboardAction.RESCHEDULE.id() + ".");
    }

    private static @Nullable Job ofKey(Source source, String key) {
        JobQuery query = JobQuery.builder().key(key).pageSize(1).payloadLimit(0).build();
        return source.instance().jobQueries().list(query).jobs().stream()
                .findFirst()
                .orElse(null);
    }

    /** A job that runs loses its key to another one; all others are the same job with other values. */
    private static String done(Job job, @Nullable Job former, JobSpec spec) {
        if (former != null && former.id() != job.id()) {
            return "Job " + job.id() + " was added in place of job " + former.id() + ", which "
                    + (spec.jobKeyMode() == JobKeyMode.REPLACE_AND_CANCEL && former.lockedAt() != null
                            ? "is cancelled."
                            : "has lost its key.");
        }
        if (former == null && job.revision() == 0) {
            return "Job " + job.id() + " was added.";
        }
        return spec.jobKeyMode() == JobKeyMode.UNSAFE_DEDUPE
                ? "Job " + job.id() + " had this key before and stays as it is."
                : "Job " + job.id() + " had this key and was replaced.";
    }

    View cleanup(Source source, Input input, Visitor visitor) {
        Set<CleanupTask> tasks = EnumSet.noneOf(CleanupTask.class);
        for (String name : input.texts("tasks")) {
            tasks.add(cleanupTask(name));
        }
        if (tasks.isEmpty()) {
            throw new IllegalArgumentException("tasks is required: a list of at least one task");
        }
        View deleted = new View();
        if (input.flag("dryRun")) {
            CleanupPreview preview = source.read(() -> source.queries().previewCleanup(tasks));
            preview.counts().forEach((task, count) -> deleted.put(task.name(), count));
            long total =
                    preview.counts().values().stream().mapToLong(each -> each).sum();
            return new View()
                    .put("deleted", deleted)
                    .put("skipped", List.of())
                    .put("text", "Would delete " + rows(total) + ".");
        }
        CleanupResult result = operations(source, visitor).cleanup(tasks);
        result.deleted().forEach((task, count) -> deleted.put(task.name(), count));
        long total = result.deleted().values().stream().mapToLong(each -> each).sum();
        List<String> skipped =
                result.skipped().stream().map(Enum::name).sorted().toList();
        return new View()
                .put("deleted", deleted)
                .put("skipped", skipped)
                .put(
                        "text",
                        "Deleted " + rows(total) + "."
                                + (skipped.isEmpty()
                                        ? ""
                                        : " Other transactions were in the way of the rest; try again later."));
    }

    private static CleanupTask cleanupTask(String name) {
        for (CleanupTask task : CleanupTask.values()) {
            if (task.name().equals(name.toUpperCase(Locale.ROOT).replace('-', '_'))) {
                return task;
            }
        }
        throw new IllegalArgumentException(
                "tasks must be among " + List.of(CleanupTask.values()) + ", but one is \"" + name + "\"");
    }

    private static String rows(long number) {
        return number == 1 ? "1 row" : number + " rows";
    }

    View pause(Source source, boolean pause, Input input, Visitor visitor) {
        PauseTarget.Kind kind = input.constant("kind", PauseTarget.Kind.class);
        if (kind == null) {
            throw new IllegalArgumentException("kind is required: task, queue or everything");
        }
        PauseTarget target = new PauseTarget(kind, kind == PauseTarget.Kind.EVERYTHING ? null : input.required("name"));
        WorkerOperations operations = operations(source, visitor);
        boolean changed = pause ? operations.pause(target, input.text("reason")) : operations.resume(target);
        String what = target.toString();
        String name = Character.toUpperCase(what.charAt(0)) + what.substring(1);
        return new View()
                .put("changed", changed)
                .put(
                        "text",
                        name
                                + (pause
                                        ? (changed ? " is paused." : " was paused before.")
                                        : (changed ? " is resumed." : " was not paused.")));
    }

    View signal(Source source, Input input, Visitor visitor) {
        String name = input.required("name");
        String payload = input.text("payload");
        source.instance().jobSignals().send(name, payload == null ? null : Json.read("payload", payload));
        log.info("{}: Signal \"{}\" was sent.", visitor.actingName(), name);
        return new View().put("text", "The signal was sent.");
    }

    View forceUnlock(Source source, Input input, Visitor visitor) {
        List<String> workers = input.texts("workers");
        if (workers.isEmpty()) {
            throw new IllegalArgumentException("workers is required: a list of at least one id");
        }
        operations(source, visitor).forceUnlockWorkers(workers);
        return new View()
                .put(
                        "text",
                        "Released the jobs and queues of "
                                + (workers.size() == 1 ? "1 worker" : workers.size() + " workers") + ".");
    }

    View sweep(Source source, Input input, Visitor visitor) {
        Long millis = input.number("thresholdMs");
        Duration threshold = millis == null ? null : Duration.ofMillis(millis);
        if (threshold != null && threshold.compareTo(SHORTEST_THRESHOLD) < 0) {
            throw new IllegalArgumentException("thresholdMs must be at least " + SHORTEST_THRESHOLD.toMillis()
                    + ", but is " + millis + ": live workers with an older heartbeat would lose their jobs");
        }
        boolean dryRun = input.flag("dryRun");
        SweepResult result = operations(source, visitor).sweep(new SweepOptions(threshold, null, dryRun));
        String text = !result.swept()
                ? "Another sweep is under way."
                : result.workerIds().size() + " dead "
                        + (result.workerIds().size() == 1 ? "worker" : "workers")
                        + (dryRun ? "." : ", " + jobs(result.recoveredJobs()) + " recovered.");
        return new View()
                .put("workers", result.workerIds())
                .put("jobs", result.recoveredJobs())
                .put("text", text);
    }

    /** Returns the worker that has an item: the other ones on the same schema are shown with their items, too. */
    private static WorkerInstance scheduling(Source source, String identifier) {
        return Stream.concat(Stream.of(source.instance()), source.siblings().stream())
                .filter(instance -> instance.worker() != null
                        && instance.worker().cronItems().stream()
                                .anyMatch(item -> item.identifier().equals(identifier)))
                .findFirst()
                .orElse(source.instance());
    }

    View cron(Source source, String what, Input input, Visitor visitor) {
        String id = input.required("identifier");
        RecurringJobs recurring = scheduling(source, id).recurringJobs().actingAs(visitor.actingName());
        return switch (what) {
            case "trigger" -> {
                Job job = recurring.trigger(id);
                yield new View().put("jobId", job.id()).put("text", "Job " + job.id() + " was added.");
            }
            case "pause" -> said(id, recurring.pause(id) ? " is paused." : " was paused before.");
            case "resume" -> said(id, recurring.resume(id) ? " runs again." : " was not paused.");
            case "forget" -> said(id, recurring.delete(id) ? " is forgotten." : " was no longer known.");
            default -> throw new Refusal(404, "There is no such action.");
        };
    }

    private static View said(String id, String text) {
        return new View().put("text", id + text);
    }
}
