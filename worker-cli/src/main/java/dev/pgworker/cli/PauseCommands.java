package dev.pgworker.cli;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.function.Predicate;

import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

import dev.pgworker.job.Pause;
import dev.pgworker.job.PauseTarget;
import dev.pgworker.job.WorkerOperations;

/** Pauses tasks, queues or everything, resumes them, and lists what is paused. */
final class PauseCommands {

    private PauseCommands() {}

    /** What is to be paused or resumed. */
    static final class Targets {

        @Option(names = "--task", paramLabel = "TASK", description = "A task, for PgWorker. May be repeated.")
        private List<String> tasks = new ArrayList<>();

        @Option(
                names = "--queue",
                paramLabel = "QUEUE",
                description = "A named queue, for all workers. May be repeated.")
        private List<String> queues = new ArrayList<>();

        @Option(names = "--everything", description = "All tasks, for PgWorker.")
        private boolean everything;

        /** Does the same with each; all are checked first. */
        int each(Session session, Predicate<PauseTarget> change, String done, String notNeeded) {
            List<PauseTarget> targets = new ArrayList<>();
            try {
                tasks.forEach(task -> targets.add(PauseTarget.task(task)));
                queues.forEach(queue -> targets.add(PauseTarget.queue(queue)));
            } catch (IllegalArgumentException e) {
                throw CommandFailure.usage("--" + e.getMessage());
            }
            if (everything) {
                targets.add(PauseTarget.everything());
            }
            if (targets.isEmpty()) {
                throw CommandFailure.usage("--task, --queue or --everything is required");
            }
            List<String> changed = new ArrayList<>();
            for (PauseTarget target : targets) {
                boolean needed = change.test(target);
                if (needed) {
                    changed.add(target.toString());
                }
                session.say(Text.visible(target.toString()).replace("\n", "\\n") + " " + (needed ? done : notNeeded));
            }
            if (session.isJson()) {
                session.writeJson(Json.object("changed", changed));
            }
            return ExitStatus.OK;
        }
    }

    /** Pauses. */
    @Command(
            name = "pause",
            description = {
                "Stop starting jobs of the given tasks or queues, or all jobs, until you resume them.",
                "Running jobs continue."
            },
            footer = {"  worker-cli pause --task charge_card --reason \"The bank is down\""})
    static final class PauseCommand extends SessionCommand {

        @Mixin
        private Targets targets = new Targets();

        @Option(names = "--reason", paramLabel = "TEXT", description = "Why, shown with the jobs.")
        private @Nullable String reason;

        PauseCommand(Session session) {
            super(session);
        }

        @Override
        public Integer call() {
            WorkerOperations operations = session.operations();
            return targets.each(session, target -> operations.pause(target, reason), "paused", "was paused already");
        }
    }

    /** Resumes. */
    @Command(
            name = "resume",
            description = "End pauses.",
            footer = {"  worker-cli resume --task charge_card"})
    static final class Resume extends SessionCommand {

        @Mixin
        private Targets targets = new Targets();

        Resume(Session session) {
            super(session);
        }

        @Override
        public Integer call() {
            WorkerOperations operations = session.operations();
            return targets.each(session, operations::resume, "resumed", "was not paused");
        }
    }

    /** Lists what is paused. */
    @Command(
            name = "pauses",
            description = "List pauses.",
            footer = {"  worker-cli pauses"})
    static final class ListPauses extends SessionCommand {

        ListPauses(Session session) {
            super(session);
        }

        @Override
        public Integer call() {
            List<Pause> pauses = session.queries().pauses();
            if (session.isJson()) {
                session.writeJson(Json.object(
                        "pauses",
                        pauses.stream()
                                .map(pause -> Json.object(
                                        "kind", kind(pause),
                                        "name", pause.target().name(),
                                        "since", pause.since(),
                                        "by", pause.by(),
                                        "reason", pause.reason()))
                                .toList()));
                return ExitStatus.OK;
            }
            Table table = new Table("WHAT", "NAME", "=PAUSED SINCE", "BY", "REASON");
            pauses.forEach(pause -> {
                Table unused = table.row(
                        kind(pause), pause.target().name(), Text.seconds(pause.since()), pause.by(), pause.reason());
            });
            session.writeTable(table);
            return ExitStatus.OK;
        }

        private static String kind(Pause pause) {
            return pause.target().kind().name().toLowerCase(Locale.ROOT);
        }
    }
}
