package dev.pgworker.crontab;

import java.util.List;
import java.util.function.Consumer;

import org.jspecify.annotations.Nullable;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.node.ObjectNode;

import dev.pgworker.internal.argument.Arguments;
import dev.pgworker.internal.pattern.CronPattern;
import dev.pgworker.job.JobKeyMode;

/** The attributes of one {@link CronJob}. Reading goes on after a mistake, so that all can be told at once. */
final class CronJobAttributes {

    private final String source;
    private final CronJob schedule;
    private final List<CrontabProblem> problems;

    /**
     * Prepares reading.
     *
     * @param source the class and method, for messages
     * @param problems takes what is wrong
     */
    CronJobAttributes(String source, CronJob schedule, List<CrontabProblem> problems) {
        this.source = source;
        this.schedule = schedule;
        this.problems = problems;
    }

    /** Returns the item that runs the given task, or null if an attribute is wrong. */
    @Nullable CronItem item(String task) {
        int before = problems.size();
        check("task", task, Arguments::requireIdentifier);
        CronPattern pattern =
                CronPattern.parse(schedule.value(), (column, text, message) -> add("pattern", text, message));
        // With a wrong task the item is dropped, but the other attributes are read all the same.
        CronItem.Builder<Object> item = CronItem.of(problems.size() > before ? "unknown" : task)
                .location(new SourceLocation(source, 0, 0))
                .pattern(pattern);
        setOptions(item);
        return problems.size() > before ? null : item.build();
    }

    private void setOptions(CronItem.Builder<Object> item) {
        set("id", schedule.id(), item::id);
        set("zone", schedule.zone(), zone -> item.zone(CrontabOptions.zone("zone", zone)));
        set("fill", schedule.fill(), fill -> item.fill(CrontabOptions.fill(fill)));
        set("maxAttempts", number(schedule.maxAttempts()), text -> item.maxAttempts(schedule.maxAttempts()));
        set("queueName", schedule.queueName(), item::queueName);
        set("priority", number(schedule.priority()), text -> item.priority(schedule.priority()));
        set("jobKey", schedule.jobKey(), key -> item.jobKey(key, schedule.jobKeyMode()));
        if (schedule.jobKey().isEmpty() && schedule.jobKeyMode() != JobKeyMode.REPLACE) {
            add("jobKeyMode", schedule.jobKeyMode().name(), "jobKeyMode requires a jobKey");
        }
        set("payload", schedule.payload(), payload -> item.payload(object(payload)));
        List<String> flags = List.of(schedule.flags());
        set("flags", flags.isEmpty() ? "" : flags.toString(), text -> item.flags(schedule.flags()));
    }

    /** Sets an attribute unless it has been left out. */
    private void set(String attribute, String value, Consumer<String> set) {
        if (!value.isEmpty()) {
            check(attribute, value, set);
        }
    }

    private void check(String attribute, String value, Consumer<String> use) {
        try {
            use.accept(value);
        } catch (IllegalArgumentException e) {
            add(attribute, value, String.valueOf(e.getMessage()));
        }
    }

    private void add(String attribute, String text, String message) {
        problems.add(new CrontabProblem(source + ", " + attribute, 0, 0, text, message));
    }

    private static String number(int value) {
        return value == 0 ? "" : Integer.toString(value);
    }

    private static ObjectNode object(String payload) {
        try {
            JsonNode value = Json5.parse(payload);
            if (value instanceof ObjectNode object) {
                return object;
            }
            throw new IllegalArgumentException("payload must be a JSON5 object { }");
        } catch (Json5.InvalidJson5Exception e) {
            throw new IllegalArgumentException(
                    "payload " + e.getMessage() + ", at \"" + payload.substring(e.offset()) + "\"", e);
        }
    }
}
