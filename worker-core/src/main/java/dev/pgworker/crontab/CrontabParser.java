package dev.pgworker.crontab;

import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

import org.jspecify.annotations.Nullable;
import tools.jackson.databind.node.ObjectNode;

import dev.pgworker.internal.pattern.CronPattern;
import dev.pgworker.internal.pattern.CronSchedule;
import dev.pgworker.internal.pattern.ProblemSink;
import dev.pgworker.job.JobRequest;

/** Reads the text of a crontab. It goes on after a mistake, so that all can be told at once. */
final class CrontabParser {

    private static final String SPACE = "[\\s\\x0b\\p{Zs}\\ufeff\\u2028\\u2029]";
    private static final Pattern LINE = Pattern.compile(
            "([0-9*/,-]+)S+([0-9*/,-]+)S+([0-9*/,-]+)S+([0-9*/,-]+)S+([0-9*/,-]+)S+(.*)".replace("S", SPACE));
    private static final Pattern COMMAND =
            Pattern.compile("(?<task>[_a-zA-Z][_a-zA-Z0-9:/_-]*)(?:S+\\?(?<options>[^s]+))?(?:S+(?<payload>\\{.*\\}))?"
                    .replace("[^s]", "[^" + SPACE.substring(1))
                    .replace("S+", SPACE + "+"));

    private final boolean strict;

    /**
     * Creates a parser.
     *
     * @param strict whether to refuse what other Graphile Workers do not understand
     */
    CrontabParser(boolean strict) {
        this.strict = strict;
    }

    /**
     * Reads a crontab.
     *
     * @param source the name of the text in messages
     * @param problems takes what is wrong
     * @return the items of the lines in which nothing is wrong
     */
    List<CronItem> parse(String source, String text, List<CrontabProblem> problems) {
        List<CronItem> items = new ArrayList<>();
        String[] lines = text.split("\r?\n", -1);
        for (int i = 0; i < lines.length; i++) {
            int number = i + 1;
            int start = indent(lines[i]);
            String line = lines[i].substring(start, contentEnd(lines[i], start));
            if (line.isEmpty() || line.startsWith("#")) {
                continue;
            }
            int before = problems.size();
            ProblemSink sink = (column, offending, message) ->
                    problems.add(new CrontabProblem(source, number, start + column + 1, offending, message));
            CronItem item = parseLine(line, new SourceLocation(source, number, start + 1), sink);
            if (item != null && problems.size() == before) {
                items.add(item);
            }
        }
        return items;
    }

    private @Nullable CronItem parseLine(String line, SourceLocation location, ProblemSink problems) {
        Matcher matcher = LINE.matcher(line);
        if (!matcher.matches()) {
            problems.add(0, line, "must be minute, hour, day of month, month, day of week, then the task");
            return null;
        }
        List<String> fields = new ArrayList<>();
        int[] columns = new int[5];
        for (int i = 0; i < 5; i++) {
            fields.add(matcher.group(i + 1));
            columns[i] = matcher.start(i + 1);
        }
        CronPattern pattern = CronPattern.parse(fields, columns, problems);
        Matcher command = COMMAND.matcher(line).region(matcher.start(6), line.length());
        if (!command.matches()) {
            problems.add(
                    matcher.start(6),
                    matcher.group(6),
                    "must be a task of letters, digits and _ : / -,"
                            + " then optionally ?options, then optionally a payload { }");
            return null;
        }
        return item(location, pattern, command, problems);
    }

    /** Returns null if there can be no such item. */
    private @Nullable CronItem item(
            SourceLocation location, CronPattern pattern, Matcher command, ProblemSink problems) {
        CrontabOptions options = new CrontabOptions(strict, problems);
        if (command.group("options") != null) {
            options.read(command.group("options"), command.start("options"));
        }
        ObjectNode payload = null;
        if (command.group("payload") != null) {
            try {
                payload = (ObjectNode) Json5.parse(command.group("payload"));
            } catch (Json5.InvalidJson5Exception e) {
                String rest = command.group("payload").substring(e.offset());
                problems.add(command.start("payload") + e.offset(), rest, "payload " + e.getMessage());
            }
        }
        String task = command.group("task");
        if (task.length() > 128) {
            problems.add(command.start("task"), task, "task must have at most 128 characters");
            return null;
        }
        String identifier = options.identifier() == null ? task : options.identifier();
        return new CronItem(
                location,
                identifier,
                new CronSchedule(pattern, options.zone()),
                options.fill(),
                JobRequest.of(task, payload, options.spec()));
    }

    private static int indent(String line) {
        int at = 0;
        while (at < line.length() && Json5.isSpace(line.charAt(at))) {
            at++;
        }
        return at;
    }

    private static int contentEnd(String line, int start) {
        int end = line.length();
        while (end > start && Json5.isSpace(line.charAt(end - 1))) {
            end--;
        }
        return end;
    }
}
