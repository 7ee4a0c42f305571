package dev.pgworker.cli;

import java.io.PrintWriter;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Collectors;

import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Parameters;

import dev.pgworker.job.Job;
import dev.pgworker.job.JobProgress;
import dev.pgworker.job.JobQueries;
import dev.pgworker.job.JobWait;
import dev.pgworker.job.RunningJob;
import dev.pgworker.step.JobStep;

/** Shows all that is known of jobs. */
@Command(
        name = "show",
        description = "Show jobs with payload and last error, and why they do not run.",
        footer = {"  worker-cli show 4711 4712"})
final class ShowCommand extends SessionCommand {

    @Parameters(paramLabel = "ID", arity = "1..*", description = "Ids of jobs.")
    private List<String> ids = new ArrayList<>();

    ShowCommand(Session session) {
        super(session);
    }

    @Override
    public Integer call() {
        List<Long> given = ids.stream().map(JobSelection::id).toList();
        JobQueries queries = session.queries();
        List<Map<String, Object>> found = new ArrayList<>();
        int shown = 0;
        List<Long> missing = new ArrayList<>();
        for (long id : given) {
            Optional<Job> job = queries.find(id);
            if (job.isEmpty()) {
                missing.add(id);
            } else if (session.isJson()) {
                found.add(json(queries, job.get()));
            } else {
                if (shown++ > 0) {
                    session.terminal().out().println();
                }
                print(queries, job.get());
            }
        }
        if (session.isJson()) {
            session.writeJson(Json.object("jobs", found));
        }
        missing.forEach(id -> session.say("No job " + id));
        return missing.isEmpty() ? ExitStatus.OK : ExitStatus.NOT_FOUND;
    }

    /** Says beside the job why it does not run, and how far it has come if it does. */
    private static Map<String, Object> json(JobQueries queries, Job job) {
        Map<String, Object> json = new LinkedHashMap<>(Json.job(job, States.of(job)));
        queries.waitOf(job.id())
                .ifPresent(wait -> json.put(
                        "wait",
                        Json.object(
                                "reason", wait.reason().name().toLowerCase(Locale.ROOT),
                                "until", wait.until(),
                                "ahead", wait.ahead(),
                                "text", wait.text())));
        List<JobStep> steps = queries.steps(job.id(), true);
        if (!steps.isEmpty()) {
            json.put("steps", steps.stream().map(ShowCommand::json).toList());
        }
        RunningJob run = running(queries, job);
        if (run != null) {
            JobProgress progress = run.progress();
            json.put(
                    "running",
                    Json.object(
                            "startedAt", run.startedAt(),
                            "done", progress == null ? null : progress.done(),
                            "total", progress == null ? null : progress.total(),
                            "text", progress == null ? null : progress.text(),
                            "updatedAt", progress == null ? null : progress.updatedAt()));
        }
        return json;
    }

    private static Map<String, Object> json(JobStep step) {
        return Json.object(
                "name", step.name(),
                "kind", step.kind().name().toLowerCase(Locale.ROOT),
                "attempt", step.attempt(),
                "startedAt", step.startedAt(),
                "endedAt", step.endedAt(),
                "dueAt", step.dueAt(),
                "timedOut", step.timedOut(),
                "resultType", step.resultType(),
                "result", step.result());
    }

    private static String line(JobStep step) {
        String ended = step.endedAt() == null
                ? (step.kind() == JobStep.Kind.WAIT ? "waits for the signal" : "sleeps")
                        + (step.dueAt() == null ? "" : " until " + Text.time(step.dueAt()))
                : step.timedOut() ? "timed out at " + Text.time(step.endedAt()) : Text.time(step.endedAt());
        return step.name() + ": " + ended + (step.result() == null ? "" : ", " + step.result());
    }

    /** Returns what the job's worker tells of the run; null if it tells nothing. */
    private static @Nullable RunningJob running(JobQueries queries, Job job) {
        return job.lockedAt() == null
                ? null
                : queries.running(1000).stream()
                        .filter(run -> run.job().id() == job.id())
                        .findFirst()
                        .orElse(null);
    }

    private static @Nullable String words(@Nullable JobProgress progress) {
        if (progress == null) {
            return null;
        }
        String count =
                progress.total() == 0 ? String.valueOf(progress.done()) : progress.done() + " of " + progress.total();
        return progress.text() == null ? count : count + ", " + progress.text();
    }

    private void print(JobQueries queries, Job job) {
        print("Job", String.valueOf(job.id()));
        print("Task", job.taskIdentifier());
        print("State", States.of(job));
        print("Waits", queries.waitOf(job.id()).map(JobWait::text).orElse(null));
        RunningJob run = running(queries, job);
        print("Started", run == null ? null : Text.time(run.startedAt()));
        print("Progress", run == null ? null : words(run.progress()));
        print("Queue", job.queueName());
        print("Priority", String.valueOf(job.priority()));
        print("Run at", Text.time(job.runAt()));
        print("Attempts", job.attempts() + " of " + job.maxAttempts());
        print("Recoveries", job.recoveries() == 0 ? null : String.valueOf(job.recoveries()));
        print("Key", job.key());
        print("Revision", job.revision() == 0 ? null : String.valueOf(job.revision()));
        print("Flags", job.flags().isEmpty() ? null : String.join(", ", job.flags()));
        print("Added", Text.time(job.createdAt()));
        print("Changed", Text.time(job.updatedAt()));
        print("Locked", job.lockedAt() == null ? null : Text.time(job.lockedAt()));
        print("Locked by", job.lockedBy());
        print("Last error", job.lastError());
        String steps =
                queries.steps(job.id(), true).stream().map(ShowCommand::line).collect(Collectors.joining("\n"));
        print("Steps", steps.isEmpty() ? null : steps);
        print("Payload", job.payload());
    }

    private void print(String name, @Nullable String value) {
        if (value == null) {
            return;
        }
        PrintWriter out = session.terminal().out();
        out.print(name + ":" + " ".repeat(11 - name.length()));
        out.println(Text.visible(value).strip().replace("\n", "\n" + " ".repeat(12)));
    }
}
