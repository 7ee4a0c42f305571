package dev.pgworker.cli;

import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.stream.Collectors;

import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.TypeConversionException;

import dev.pgworker.job.CleanupResult;
import dev.pgworker.job.CleanupTask;

/** Deletes unneeded rows. */
@Command(
        name = "cleanup",
        description = {
            "Delete unneeded rows, of one or more kinds.",
            "Do not use gc_task_identifiers with workers of Node.js."
        },
        footer = {"  worker-cli cleanup gc_job_queues delete_permafailed_jobs --yes"})
final class CleanupCommand extends SessionCommand {

    @Parameters(
            paramLabel = "TASK",
            arity = "0..*",
            split = ",",
            description =
                    "One or more of delete_permafailed_jobs, delete_ended_schedules, gc_job_queues, gc_task_identifiers.")
    private List<String> tasks = new ArrayList<>();

    @Mixin
    private Confirmation confirmation = new Confirmation();

    CleanupCommand(Session session) {
        super(session);
    }

    @Override
    public Integer call() {
        Set<CleanupTask> asked = asked();
        confirmation.require(
                session.terminal(),
                "Clean up schema " + session.schema().name() + " ("
                        + asked.stream().map(CleanupCommand::name).collect(Collectors.joining(", ")) + ")");
        CleanupResult result = session.operations().cleanup(asked);
        if (session.isJson()) {
            session.writeJson(Json.object(
                    "deleted",
                    result.deleted().entrySet().stream()
                            .collect(Collectors.toMap(entry -> name(entry.getKey()), entry -> entry.getValue())),
                    "skipped",
                    result.skipped().stream().map(CleanupCommand::name).toList()));
        } else {
            Table table = new Table("TASK", ">DELETED");
            for (CleanupTask task : asked) {
                Table unused = table.row(
                        name(task), result.skipped().contains(task) ? "skipped" : String.valueOf(result.deleted(task)));
            }
            session.writeTable(table);
        }
        if (!result.skipped().isEmpty()) {
            session.say("Skipped, because others use the tables: "
                    + result.skipped().stream().map(CleanupCommand::name).collect(Collectors.joining(", "))
                    + ". Try again later.");
            return ExitStatus.FAILED;
        }
        return ExitStatus.OK;
    }

    private Set<CleanupTask> asked() {
        if (tasks.isEmpty()) {
            throw CommandFailure.usage("TASK is missing; give one or more of "
                    + EnumSet.allOf(CleanupTask.class).stream()
                            .map(CleanupCommand::name)
                            .collect(Collectors.joining(", ")));
        }
        Names<CleanupTask> names = new Names<>(CleanupTask.class);
        Set<CleanupTask> asked = EnumSet.noneOf(CleanupTask.class);
        for (String task : tasks) {
            try {
                asked.add(names.convert(task));
            } catch (TypeConversionException e) {
                throw CommandFailure.usage("TASK " + e.getMessage());
            }
        }
        return asked;
    }

    private static String name(CleanupTask task) {
        return task.name().toLowerCase(Locale.ROOT);
    }
}
