package dev.pgworker.cli;

import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.function.Predicate;

import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

import dev.pgworker.job.Job;
import dev.pgworker.job.JobSpec;
import dev.pgworker.schedule.JobSchedules;
import dev.pgworker.schedule.Recurrence;
import dev.pgworker.schedule.Schedule;
import dev.pgworker.schedule.ScheduleQuery;
import dev.pgworker.schedule.ScheduleStatus;

/** Looks at the schedules of the database, and pauses, triggers or deletes them. */
@Command(name = "schedules", description = "Look at schedules of the database, and pause, trigger or delete them.")
final class SchedulesCommand {

    /** Lists schedules. */
    @Command(name = "list", description = "List schedules in the order of their names.")
    static final class ListSchedules extends SessionCommand {

        @Option(names = "--prefix", paramLabel = "TEXT", description = "Those whose names begin with this.")
        private @Nullable String prefix;

        @Option(names = "--task", paramLabel = "TASK", description = "Those of this task.")
        private @Nullable String task;

        @Option(names = "--paused", negatable = true, description = "Those that are paused, or are not.")
        private @Nullable Boolean paused;

        @Option(
                names = "--problem",
                negatable = true,
                description = "Those that are not executed for a problem, or are.")
        private @Nullable Boolean problem;

        @Option(
                names = {"-n", "--limit"},
                paramLabel = "N",
                description = "Largest number of rows, 1 to 1000. Default: ${DEFAULT-VALUE}.")
        private int limit = 100;

        @Option(names = "--after", paramLabel = "NAME", description = "Begin after this name.")
        private @Nullable String after;

        ListSchedules(Session session) {
            super(session);
        }

        @Override
        public Integer call() {
            if (limit < 1 || limit > 1000) {
                throw CommandFailure.usage("--limit must be between 1 and 1000, but is " + limit);
            }
            List<ScheduleStatus> found =
                    session.schedules().list(new ScheduleQuery(prefix, task, paused, problem, after, limit));
            String next = found.size() < limit ? null : found.get(limit - 1).name();
            if (session.isJson()) {
                session.writeJson(Json.object(
                        "schedules", found.stream().map(SchedulesCommand::json).toList(), "next", next));
                return ExitStatus.OK;
            }
            Table table = new Table("SCHEDULE", "TASK", "WHEN", "=NEXT RUN", "=LAST RUN", "=PAUSED SINCE", "PROBLEM");
            found.forEach(status -> {
                Schedule schedule = status.schedule();
                Table unused = table.row(
                        status.name(),
                        schedule == null ? null : schedule.job().identifier(),
                        schedule == null ? null : when(schedule.recurrence()),
                        Text.seconds(status.nextRun()),
                        Text.seconds(status.lastRun()),
                        Text.seconds(status.pausedSince()),
                        status.problem());
            });
            session.writeTable(table);
            if (next != null) {
                session.say("There may be more: --after " + Text.line(next));
            }
            return ExitStatus.OK;
        }
    }

    /** Shows a schedule and its next runs. */
    @Command(name = "show", description = "Show a schedule and when it runs next.")
    static final class Show extends SessionCommand {

        @Parameters(paramLabel = "SCHEDULE", description = "The name, as schedules list shows it.")
        private String name = "";

        @Option(
                names = "--runs",
                paramLabel = "N",
                description = "How many of the next runs to tell, 0 to 1000. Default: ${DEFAULT-VALUE}.")
        private int runs = 5;

        Show(Session session) {
            super(session);
        }

        @Override
        public Integer call() {
            if (runs < 0 || runs > 1000) {
                throw CommandFailure.usage("--runs must be between 0 and 1000, but is " + runs);
            }
            Optional<ScheduleStatus> found = session.schedules().find(name);
            if (found.isEmpty()) {
                session.say("No schedule " + Text.line(name));
                return ExitStatus.NOT_FOUND;
            }
            Map<String, Object> json = json(found.get());
            json.put("nextRuns", nextRuns(found.get()).stream().map(Text::time).toList());
            if (session.isJson()) {
                session.writeJson(json);
            } else {
                Table table = new Table("=WHAT", "VALUE");
                json.forEach((what, value) -> {
                    for (Object one : value instanceof List<?> several ? several : List.of(value)) {
                        Table unused = table.row(what, one);
                    }
                });
                session.writeTable(table);
            }
            return ExitStatus.OK;
        }

        /** Begins with the run that the database knows; while it is paused, with the first that would be due. */
        private List<Instant> nextRuns(ScheduleStatus status) {
            List<Instant> next = new ArrayList<>();
            Schedule schedule = status.schedule();
            if (schedule != null && runs > 0) {
                Instant known = status.nextRun();
                if (known != null) {
                    next.add(known);
                }
                if (next.size() < runs) {
                    next.addAll(schedule.next(known == null ? session.queries().now() : known, runs - next.size()));
                }
            }
            return next;
        }
    }

    /** Pauses schedules. */
    @Command(
            name = "pause",
            description = "Pause schedules until they are resumed. What is due meanwhile is passed over.")
    static final class Pause extends SessionCommand {

        @Parameters(paramLabel = "SCHEDULE", arity = "1..*", description = "Names, as schedules list shows them.")
        private List<String> names = List.of();

        Pause(Session session) {
            super(session);
        }

        @Override
        public Integer call() {
            JobSchedules schedules = session.schedules();
            return change(session, schedules, names, schedules::pause, "paused", "was paused already");
        }
    }

    /** Ends pauses. */
    @Command(name = "resume", description = "End the pause of schedules.")
    static final class Resume extends SessionCommand {

        @Parameters(paramLabel = "SCHEDULE", arity = "1..*", description = "Names, as schedules list shows them.")
        private List<String> names = List.of();

        Resume(Session session) {
            super(session);
        }

        @Override
        public Integer call() {
            JobSchedules schedules = session.schedules();
            return change(session, schedules, names, schedules::resume, "resumed", "was not paused");
        }
    }

    /** Deletes schedules. */
    @Command(
            name = "delete",
            description = {
                "Delete schedules; their jobs remain.",
                "One that an application declares comes back when the application starts."
            })
    static final class Delete extends SessionCommand {

        @Parameters(paramLabel = "SCHEDULE", arity = "1..*", description = "Names, as schedules list shows them.")
        private List<String> names = List.of();

        @Mixin
        private Confirmation confirmation = new Confirmation();

        Delete(Session session) {
            super(session);
        }

        @Override
        public Integer call() {
            confirmation.require(session.terminal(), "Delete " + Text.count(names.size(), "schedule"));
            JobSchedules schedules = session.schedules();
            return change(session, schedules, names, schedules::delete, "deleted", "was deleted already");
        }
    }

    /** Runs a schedule's job at once. */
    @Command(
            name = "trigger",
            description = "Add a job of a schedule that runs at once, even if the schedule is paused.")
    static final class Trigger extends SessionCommand {

        @Parameters(paramLabel = "SCHEDULE", description = "The name, as schedules list shows it.")
        private String name = "";

        @Option(
                names = "--payload",
                paramLabel = "JSON",
                description = "A JSON object instead of the schedule's payload.")
        private @Nullable String payload;

        Trigger(Session session) {
            super(session);
        }

        @Override
        public Integer call() {
            JsonNode object = payload == null ? null : object(payload);
            JobSchedules schedules = session.schedules();
            if (schedules.find(name).isEmpty()) {
                session.say("No schedule " + Text.line(name));
                return ExitStatus.NOT_FOUND;
            }
            Job job = object == null ? schedules.trigger(name) : schedules.trigger(name, object);
            if (session.isJson()) {
                session.writeJson(Json.job(job, States.of(job)));
            } else {
                session.terminal().out().println(job.id());
            }
            return ExitStatus.OK;
        }

        private static JsonNode object(String payload) {
            JsonNode object = new JsonMapper().readTree(Payloads.check("--payload", payload));
            if (!object.isObject()) {
                throw CommandFailure.usage("--payload must be a JSON object { }");
            }
            return object;
        }
    }

    private static int change(
            Session session,
            JobSchedules schedules,
            List<String> names,
            Predicate<String> change,
            String done,
            String notNeeded) {
        Predicate<String> isKnown = name -> schedules.find(name).isPresent();
        return session.change("schedule", names, isKnown, change, done, notNeeded);
    }

    /** Returns in one line when a schedule is due. */
    private static String when(Recurrence recurrence) {
        String expression = recurrence.expression();
        if (expression != null) {
            return expression + " " + recurrence.zone();
        }
        return name(recurrence.kind()).replace('_', ' ') + " " + recurrence.every();
    }

    private static Map<String, Object> json(ScheduleStatus status) {
        Map<String, Object> json = Json.object("name", status.name());
        Schedule schedule = status.schedule();
        if (schedule != null) {
            json.putAll(json(schedule));
        }
        json.putAll(Json.object(
                "declared", status.declared(),
                "nextRun", status.nextRun(),
                "lastRun", status.lastRun(),
                "lastJobId", status.lastJobId(),
                "pausedSince", status.pausedSince(),
                "pausedBy", status.pausedBy(),
                "problem", status.problem(),
                "createdAt", status.createdAt(),
                "updatedAt", status.updatedAt()));
        return json;
    }

    private static Map<String, Object> json(Schedule schedule) {
        Recurrence recurrence = schedule.recurrence();
        JobSpec spec = schedule.job().spec();
        return Json.object(
                "task", schedule.job().identifier(),
                "kind", name(recurrence.kind()),
                "expression", recurrence.expression(),
                "zone", text(recurrence.zone()),
                "every", text(recurrence.every()),
                "origin", recurrence.origin(),
                "overlap", name(schedule.overlap()),
                "misfire", name(schedule.misfire()),
                "backfill", text(schedule.backfill()),
                "jitter", schedule.jitter().isZero() ? null : schedule.jitter().toString(),
                "startsAt", schedule.startsAt(),
                "endsAt", schedule.endsAt(),
                "queue", spec.queueName(),
                "priority", spec.priority(),
                "maxAttempts", spec.maxAttempts(),
                "key", spec.jobKey(),
                "flags", spec.flags().isEmpty() ? null : spec.flags());
    }

    private static @Nullable String text(@Nullable Object value) {
        return value == null ? null : value.toString();
    }

    private static String name(Enum<?> constant) {
        return constant.name().toLowerCase(Locale.ROOT);
    }
}
