package dev.pgworker.cli;

import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;

import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

import dev.pgworker.limit.JobLimits;
import dev.pgworker.limit.Limit;
import dev.pgworker.limit.LimitAttributes;
import dev.pgworker.limit.LimitStatus;
import dev.pgworker.limit.LimitUsage;

/** Looks at the limits of the database, and makes, changes or deletes them. */
@Command(
        name = "limits",
        description = "List, show, create, update and delete limits across all workers.",
        footer = {"  worker-cli limits list", "  worker-cli help limits put"})
final class LimitsCommand {

    /** Lists limits. */
    @Command(
            name = "list",
            description = "List limits by name, with their usage.",
            footer = {"  worker-cli limits list"})
    static final class ListLimits extends SessionCommand {

        ListLimits(Session session) {
            super(session);
        }

        @Override
        public Integer call() {
            List<LimitStatus> found = session.limits().list();
            if (session.isJson()) {
                session.writeJson(Json.object(
                        "limits", found.stream().map(LimitsCommand::json).toList()));
                return ExitStatus.OK;
            }
            Table table = new Table("LIMIT", "TASKS", "ALLOWS", "PHASE", "=USED", "=WAITING");
            found.forEach(status -> {
                Limit limit = status.limit();
                Table unused = table.row(
                        status.name(),
                        limit == null ? null : String.join(", ", limit.tasks()),
                        limit == null ? null : limit.words(),
                        phase(status),
                        status.used(),
                        status.waiting());
            });
            session.writeTable(table);
            return ExitStatus.OK;
        }
    }

    /** Shows a limit and how much of it is used. */
    @Command(
            name = "show",
            description = "Show a limit, and the usage of each value of its field.",
            footer = {"  worker-cli limits show partner --limit 20"})
    static final class Show extends SessionCommand {

        @Parameters(paramLabel = "LIMIT", description = "The name, as limits list shows it.")
        private String name = "";

        @Option(
                names = {"-n", "--limit"},
                paramLabel = "N",
                description = "Largest number of values, 1 to 1000. Default: ${DEFAULT-VALUE}.")
        private int most = 100;

        @Option(names = "--after", paramLabel = "VALUE", description = "Begin after this value.")
        private @Nullable String after;

        Show(Session session) {
            super(session);
        }

        @Override
        public Integer call() {
            if (most < 1 || most > 1000) {
                throw CommandFailure.usage("--limit must be between 1 and 1000, but is " + most);
            }
            JobLimits limits = session.limits();
            Optional<LimitStatus> found = limits.find(name);
            if (found.isEmpty()) {
                session.say("No limit " + Text.line(name));
                return ExitStatus.NOT_FOUND;
            }
            List<LimitUsage> values = limits.usage(name, after, most);
            if (session.isJson()) {
                Map<String, Object> json = json(found.get());
                json.put("values", values.stream().map(Show::view).toList());
                session.writeJson(json);
                return ExitStatus.OK;
            }
            Limit limit = found.get().limit();
            session.say((limit == null ? Text.line(name) : Text.line(limit.toString())) + ", " + phase(found.get()));
            Table table = new Table("VALUE", "=USED", "=WAITING", "=TOKENS", "=NEXT START");
            values.forEach(value -> {
                Table unused = table.row(
                        value.value(),
                        value.used(),
                        value.waiting(),
                        value.tokens() == null ? null : String.format(Locale.ROOT, "%.1f", value.tokens()),
                        Text.seconds(value.nextStart()));
            });
            session.writeTable(table);
            return ExitStatus.OK;
        }

        private static Map<String, Object> view(LimitUsage value) {
            return Json.object(
                    "value", value.value(),
                    "used", value.used(),
                    "waiting", value.waiting(),
                    "tokens", value.tokens(),
                    "nextStart", value.nextStart());
        }
    }

    /** Makes or changes a limit. */
    @Command(
            name = "put",
            description = {
                "Create a limit, or update the one of this name.",
                "An application that declares the limit restores it at startup."
            },
            footer = {
                "  worker-cli limits put mail --task send-mail --max-running 10 --per tenant",
                "  worker-cli limits put turns --task index --per tenant --weights acme=3"
            })
    static final class Put extends SessionCommand {

        @Parameters(paramLabel = "LIMIT", description = "The name.")
        private String name = "";

        @Option(
                names = "--task",
                required = true,
                paramLabel = "TASK",
                description = "A task that shares the limit; repeatable.")
        private List<String> tasks = List.of();

        @Option(names = "--max-running", paramLabel = "N", description = "How many jobs run at the same time.")
        private @Nullable String maxRunning;

        @Option(names = "--max-starts", paramLabel = "N", description = "How many jobs start in a period.")
        private @Nullable String maxStarts;

        @Option(names = "--period", paramLabel = "DURATION", description = "The period, such as 1m, 1s to 365d.")
        private @Nullable String period;

        @Option(
                names = "--burst",
                paramLabel = "N",
                description = "How many jobs may start at once after a time without any.")
        private @Nullable String burst;

        @Option(
                names = "--per",
                paramLabel = "FIELD",
                description =
                        "The field of the payload each value of which has the limit for itself, such as customer.id.")
        private @Nullable String per;

        @Option(
                names = "--weights",
                arity = "0..1",
                fallbackValue = "",
                paramLabel = "WEIGHTS",
                description =
                        "Fair shares: jobs start in turn over the values of the field, by weights such as acme=3,globex=0.5;"
                                + " the others weigh 1.")
        private @Nullable String weights;

        Put(Session session) {
            super(session);
        }

        @Override
        public Integer call() {
            Map<String, @Nullable Object> attributes = new HashMap<>();
            attributes.put("tasks", tasks);
            attributes.put("maxRunning", maxRunning);
            attributes.put("maxStarts", maxStarts);
            attributes.put("period", period);
            attributes.put("burst", burst);
            attributes.put("per", per);
            attributes.put("weights", weights);
            Limit limit;
            try {
                limit = LimitAttributes.limit(name, attributes);
            } catch (IllegalArgumentException e) {
                throw CommandFailure.usage(String.valueOf(e.getMessage()));
            }
            LimitStatus status = session.limits().put(limit);
            if (session.isJson()) {
                session.writeJson(json(status));
            } else {
                session.say(
                        "Limit " + Text.line(status.name()) + ": " + Text.line(limit.words()) + ", " + phase(status));
            }
            return ExitStatus.OK;
        }
    }

    /** Deletes limits. */
    @Command(
            name = "delete",
            description = {
                "Delete limits; jobs that wait for them become available.",
                "An application that declares the limit restores it at startup."
            },
            footer = {"  worker-cli limits delete mail --yes"})
    static final class Delete extends SessionCommand {

        @Parameters(paramLabel = "LIMIT", arity = "1..*", description = "Names, as limits list shows them.")
        private List<String> names = List.of();

        @Mixin
        private Confirmation confirmation = new Confirmation();

        Delete(Session session) {
            super(session);
        }

        @Override
        public Integer call() {
            confirmation.require(session.terminal(), "Delete " + Text.count(names.size(), "limit"));
            JobLimits limits = session.limits();
            return session.change(
                    "limit",
                    names,
                    name -> limits.find(name).isPresent(),
                    limits::delete,
                    "deleted",
                    "was deleted already");
        }
    }

    private static String phase(LimitStatus status) {
        return status.phase().name().toLowerCase(Locale.ROOT);
    }

    private static Map<String, Object> json(LimitStatus status) {
        Map<String, Object> json = status.attributes();
        json.computeIfPresent("period", (name, period) -> period.toString());
        return json;
    }
}
