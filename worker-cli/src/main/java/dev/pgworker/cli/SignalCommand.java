package dev.pgworker.cli;

import java.nio.file.Path;
import java.time.Duration;

import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import tools.jackson.databind.util.RawValue;

import dev.pgworker.step.StepSettings;

/** Sends a signal. */
@Command(
        name = "signal",
        description = {
            "Send a signal to the job that has waited longest for it in one of its steps.",
            "If none waits, the signal is kept for the first job that does."
        },
        footer = {"  worker-cli signal approval-7 --payload '{\"by\": \"ann\"}'"})
final class SignalCommand extends SessionCommand {

    @Parameters(index = "0", paramLabel = "NAME", description = "The name, 1 to 128 characters.")
    private String name = "";

    @Option(names = "--payload", paramLabel = "JSON", description = "What the job receives. Default: nothing.")
    private @Nullable String payload;

    @Option(
            names = "--payload-file",
            paramLabel = "FILE",
            description = "A file that holds it, in UTF-8; - for standard input.")
    private @Nullable Path payloadFile;

    @Option(
            names = "--keep-for",
            paramLabel = "DURATION",
            description = "How long to keep it if no job waits, such as 2h, 1s to 3650d. Default: 7d.")
    private @Nullable Duration keepFor;

    SignalCommand(Session session) {
        super(session);
    }

    @Override
    public Integer call() {
        if (payload != null && payloadFile != null) {
            throw CommandFailure.usage("--payload and --payload-file cannot be combined");
        }
        String json = payload != null
                ? Payloads.check("--payload", payload)
                : payloadFile == null ? null : Payloads.read(payloadFile, session.terminal());
        session.signals()
                .send(
                        name,
                        json == null ? null : new RawValue(json),
                        keepFor == null ? StepSettings.DEFAULT.keepSignals() : keepFor);
        if (session.isJson()) {
            session.writeJson(Json.object("sent", name));
        } else {
            session.say("Sent signal " + Text.line(name) + ".");
        }
        return ExitStatus.OK;
    }
}
