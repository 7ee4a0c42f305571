package dev.pgworker.cli;

import java.time.Instant;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.function.Predicate;

import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import tools.jackson.databind.util.RawValue;

import dev.pgworker.job.Job;
import dev.pgworker.job.JobSpec;
import dev.pgworker.schedule.Recurrence;
import dev.pgworker.schedule.RecurringJob;
import dev.pgworker.schedule.RecurringJob.Origin;
import dev.pgworker.schedule.RecurringJobs;
import dev.pgworker.schedule.RecurringQuery;
import dev.pgworker.schedule.Schedule;

/** Looks at recurring jobs, whatever declares them, and pauses, triggers or deletes them. */
@Command(
        name = "recurring",
        description = "Look at recurring jobs of crontabs and the database, and pause, trigger or delete them.",
        footer = {"  worker-cli recurring list", "  worker-cli help recurring trigger"})
final class RecurringCommand {

    /** Lists recurring jobs. */
    @Command(
            name = "list",
            description = "List recurring jobs in the order of their ids.",
            footer = {"  worker-cli recurring list --prefix reminders/ --paused"})
    static final class ListAll extends SessionCommand {

        @Option(names = "--prefix", paramLabel = "TEXT", description = "Those whose ids begin with this.")
        private @Nullable String prefix;

        @Option(names = "--task", paramLabel = "TASK", description = "Those of this task.")
        private @Nullable String task;

        @Option(
                names = "--origin",
                paramLabel = "ORIGIN",
                split = ",",
                description = "Those of these origins, with commas between: crontab, declared, database.")
        private Set<Origin> origins = EnumSet.noneOf(Origin.class);

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

        @Option(names = "--after", paramLabel = "ID", description = "Begin after this id.")
        private @Nullable String after;

        ListAll(Session session) {
            super(session);
        }

        @Override
        public Integer call() {
            if (limit < 1 || limit > 1000) {
                throw CommandFailure.usage("--limit must be between 1 and 1000, but is " + limit);
            }
            List<RecurringJob> found =
                    session.recurring().list(new RecurringQuery(prefix, task, paused, problem, origins, after, limit));
            String next =
                    found.size() < limit ? null : found.get(found.size() - 1).id();
            if (session.isJson()) {
                session.writeJson(Json.object(
                        "recurring", found.stream().map(RecurringCommand::json).toList(), "next", next));
                return ExitStatus.OK;
            }
            Table table =
                    new Table("ID", "ORIGIN", "TASK", "WHEN", "=NEXT RUN", "=LAST RUN", "=PAUSED SINCE", "PROBLEM");
            found.forEach(status -> {
                Schedule schedule = status.schedule();
                Table unused = table.row(
                        status.id(),
                        name(status.origin()),
                        status.task(),
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

    /** Shows a recurring job and its next runs. */
    @Command(
            name = "show",
            description = "Show a recurring job and when it runs next.",
            footer = {"  worker-cli recurring show reminders/acme --runs 10"})
    static final class Show extends SessionCommand {

        @Parameters(paramLabel = "ID", description = "The id, as recurring list shows it.")
        private String id = "";

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
            Optional<RecurringJob> found = session.recurring().find(id);
            if (found.isEmpty()) {
                session.say("No recurring job " + Text.line(id));
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
        private List<Instant> nextRuns(RecurringJob status) {
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

    /** Pauses recurring jobs. */
    @Command(
            name = "pause",
            description =
                    "Pause recurring jobs in all PgWorkers until they are resumed. What is due meanwhile is passed over.",
            footer = {"  worker-cli recurring pause rollup reminders/acme"})
    static final class Pause extends SessionCommand {

        @Parameters(paramLabel = "ID", arity = "1..*", description = "Ids, as recurring list shows them.")
        private List<String> ids = List.of();

        Pause(Session session) {
            super(session);
        }

        @Override
        public Integer call() {
            RecurringJobs recurring = session.recurring();
            return change(session, recurring, ids, recurring::pause, "paused", "was paused already");
        }
    }

    /** Ends pauses. */
    @Command(
            name = "resume",
            description = "End the pause of recurring jobs.",
            footer = {"  worker-cli recurring resume rollup"})
    static final class Resume extends SessionCommand {

        @Parameters(paramLabel = "ID", arity = "1..*", description = "Ids, as recurring list shows them.")
        private List<String> ids = List.of();

        Resume(Session session) {
            super(session);
        }

        @Override
        public Integer call() {
            RecurringJobs recurring = session.recurring();
            return change(session, recurring, ids, recurring::resume, "resumed", "was not paused");
        }
    }

    /** Deletes schedules, and forgets items that no crontab has any more. */
    @Command(
            name = "delete",
            description = {
                "Delete schedules; their jobs remain. One that an application declares comes back when the application starts.",
                "Forget items that have left every crontab. A running worker that still has one registers it again."
            },
            footer = {"  worker-cli recurring delete reminders/acme --yes"})
    static final class Delete extends SessionCommand {

        @Parameters(paramLabel = "ID", arity = "1..*", description = "Ids, as recurring list shows them.")
        private List<String> ids = List.of();

        @Mixin
        private Confirmation confirmation = new Confirmation();

        Delete(Session session) {
            super(session);
        }

        @Override
        public Integer call() {
            confirmation.require(session.terminal(), "Delete " + Text.count(ids.size(), "recurring job"));
            RecurringJobs recurring = session.recurring();
            return change(session, recurring, ids, recurring::delete, "deleted", "was deleted already");
        }
    }

    /** Runs the job of a schedule at once. */
    @Command(
            name = "trigger",
            description = "Add a job of a schedule that runs at once, even if the schedule is paused.",
            footer = {"  worker-cli recurring trigger reminders/acme --payload '{\"tenant\": \"acme\"}'"})
    static final class Trigger extends SessionCommand {

        @Parameters(paramLabel = "ID", description = "The id, as recurring list shows it.")
        private String id = "";

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
            RawValue object = payload == null ? null : object(payload);
            RecurringJobs recurring = session.recurring();
            Optional<RecurringJob> found = recurring.find(id);
            if (found.isEmpty()) {
                session.say("No recurring job " + Text.line(id));
                return ExitStatus.NOT_FOUND;
            }
            if (found.get().origin() == Origin.CRONTAB) {
                throw CommandFailure.usage("ID must be that of a schedule, but " + Text.line(id)
                        + " is an item of a crontab. Only an application that has the crontab can trigger it.");
            }
            Job job = object == null ? recurring.trigger(id) : recurring.trigger(id, object);
            if (session.isJson()) {
                session.writeJson(Json.job(job, States.of(job)));
            } else {
                session.terminal().out().println(job.id());
            }
            return ExitStatus.OK;
        }

        private static RawValue object(String payload) {
            if (!Payloads.check("--payload", payload).stripLeading().startsWith("{")) {
                throw CommandFailure.usage("--payload must be a JSON object { }");
            }
            return new RawValue(payload);
        }
    }

    private static int change(
            Session session,
            RecurringJobs recurring,
            List<String> ids,
            Predicate<String> change,
            String done,
            String notNeeded) {
        Predicate<String> isKnown = id -> recurring.find(id).isPresent();
        return session.change("recurring job", ids, isKnown, change, done, notNeeded);
    }

    /** Returns in one line when a schedule is due. */
    private static String when(Recurrence recurrence) {
        String expression = recurrence.expression();
        if (expression != null) {
            return expression + " " + recurrence.zone();
        }
        return name(recurrence.kind()).replace('_', ' ') + " " + recurrence.every();
    }

    private static Map<String, Object> json(RecurringJob status) {
        Map<String, Object> json = Json.object("id", status.id(), "origin", name(status.origin()));
        Schedule schedule = status.schedule();
        if (schedule != null) {
            json.putAll(json(schedule));
        }
        json.putAll(Json.object(
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
                "rateOrigin", recurrence.origin(),
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
