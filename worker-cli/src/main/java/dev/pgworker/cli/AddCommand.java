package dev.pgworker.cli;

import java.nio.file.Path;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;

import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import tools.jackson.databind.util.RawValue;

import dev.pgworker.job.Job;
import dev.pgworker.job.JobKeyMode;
import dev.pgworker.job.JobRequest;
import dev.pgworker.job.JobSpec;

/** Adds a job, or one for each line of a file. */
@Command(
        name = "add",
        description = "Add a job, or with --lines one job for each line of a file.",
        footer = {
            "  worker-cli add send_mail --payload '{\"to\": \"ada@example.org\"}' --run-in 10m",
            "  worker-cli add import --payload-file orders.jsonl --lines"
        })
final class AddCommand extends SessionCommand {

    @Parameters(index = "0", paramLabel = "TASK", description = "The task that runs the job, 1 to 128 characters.")
    private String task = "";

    @Option(names = "--payload", paramLabel = "JSON", description = "The payload. Default: {}.")
    private @Nullable String payload;

    @Option(
            names = "--payload-file",
            paramLabel = "FILE",
            description = "A file that holds the payload, in UTF-8; - for standard input.")
    private @Nullable Path payloadFile;

    @Option(names = "--lines", description = "Every line of the file is the payload of a job; all are added, or none.")
    private boolean lines;

    @Mixin
    private RunTime runTime = new RunTime();

    @Option(names = "--queue", paramLabel = "QUEUE", description = "The named queue, whose jobs run one at a time.")
    private @Nullable String queue;

    @Option(
            names = "--max-attempts",
            paramLabel = "N",
            description = "Attempts before it fails permanently, 1 to 32767. Default: 25.")
    private @Nullable Integer maxAttempts;

    @Option(names = "--priority", paramLabel = "N", description = "Smaller runs first, -32768 to 32767. Default: 0.")
    private @Nullable Integer priority;

    @Option(
            names = "--key",
            paramLabel = "KEY",
            description = "At most one waiting job has this job key, 1 to 512 characters.")
    private @Nullable String key;

    @Option(
            names = "--key-mode",
            paramLabel = "MODE",
            description = "What happens to a job that has the key: replace, preserve_run_at, unsafe_dedupe or"
                    + " replace_and_cancel. Default: replace.")
    private @Nullable JobKeyMode keyMode;

    @Option(
            names = "--flag",
            paramLabel = "FLAG",
            description = "A mark by which workers may refuse the job; may be repeated.")
    private List<String> flags = new ArrayList<>();

    AddCommand(Session session) {
        super(session);
    }

    @Override
    public Integer call() {
        if (payload != null && payloadFile != null) {
            throw CommandFailure.usage("--payload and --payload-file cannot be combined");
        }
        if (lines && payloadFile == null) {
            throw CommandFailure.usage("--lines needs --payload-file");
        }
        if (keyMode != null && key == null) {
            throw CommandFailure.usage("--key-mode needs --key");
        }
        if (lines && key != null) {
            throw CommandFailure.usage("--lines cannot be combined with --key, which only one job can have");
        }
        Instant runAt = runTime.instant();
        JobSpec spec = new JobSpec(queue, runAt, maxAttempts, key, keyMode, priority, flags);
        return lines && payloadFile != null ? addLines(payloadFile, spec) : addOne(spec);
    }

    private int addOne(JobSpec spec) {
        String json = "{}";
        if (payload != null) {
            json = Payloads.check("--payload", payload);
        } else if (payloadFile != null) {
            json = Payloads.read(payloadFile, session.terminal());
        }
        Job job = session.scheduler().addJob(task, new RawValue(json), spec);
        if (session.isJson()) {
            session.writeJson(Json.job(job, States.of(job)));
        } else {
            session.terminal().out().println(job.id());
        }
        return ExitStatus.OK;
    }

    private int addLines(Path file, JobSpec spec) {
        long added;
        try (Stream<String> payloads = Payloads.lines(file, session.terminal());
                Progress progress =
                        new Progress(session.terminal(), "Adding jobs", 0, false, read -> "No job has been added.")) {
            added = session.scheduler().addJobs(payloads.map(json -> {
                progress.advance(1);
                return JobRequest.of(task, new RawValue(json), spec);
            }));
        }
        if (session.isJson()) {
            session.writeJson(Json.object("count", added));
        } else {
            session.say("Added " + Text.count(added, "job") + ".");
        }
        return ExitStatus.OK;
    }
}
