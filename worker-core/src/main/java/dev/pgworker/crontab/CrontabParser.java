package dev.pgworker.crontab;

import java.util.ArrayList;
import java.util.List;

import org.jspecify.annotations.Nullable;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.node.ObjectNode;

import dev.pgworker.crontab.CrontabLine.Word;
import dev.pgworker.internal.argument.Arguments;
import dev.pgworker.internal.pattern.CronPattern;
import dev.pgworker.internal.pattern.CronSchedule;
import dev.pgworker.internal.pattern.ProblemSink;
import dev.pgworker.job.JobRequest;

/** Reads the text of a crontab. It continues after a mistake, so that all can be reported at once. */
final class CrontabParser {

    private final boolean strict;

    /**
     * Creates a parser.
     *
     * @param strict whether to refuse what other Graphile Workers do not understand or understand differently
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
            int start = CrontabLine.skipSpace(lines[i], 0);
            String line = lines[i].substring(start, contentEnd(lines[i], start));
            int before = problems.size();
            ProblemSink sink = (column, offending, message) ->
                    problems.add(new CrontabProblem(source, number, column + 1, offending, message));
            if (strict) {
                SharedGrammar.checkSpaces(lines[i], sink);
            }
            if (line.isEmpty() || line.startsWith("#")) {
                continue;
            }
            CronItem item = parseLine(
                    CrontabLine.of(line),
                    new SourceLocation(source, number, start + 1),
                    (column, offending, message) -> sink.add(start + column, offending, message));
            if (item != null && problems.size() == before) {
                items.add(item);
            }
        }
        return items;
    }

    private @Nullable CronItem parseLine(CrontabLine line, SourceLocation location, ProblemSink problems) {
        if (!line.hasPattern()) {
            problems.add(0, line.text(), wrongCount(line));
            return null;
        }
        List<Word> fields = line.words().subList(0, CrontabLine.FIELDS);
        CronPattern pattern = CronPattern.parse(
                fields.stream().map(Word::text).toList(),
                fields.stream().mapToInt(Word::start).toArray(),
                problems);
        if (strict) {
            SharedGrammar.checkPattern(line, pattern, problems);
        }
        return item(line, location, pattern, problems);
    }

    private static String wrongCount(CrontabLine line) {
        boolean macro = !line.words().isEmpty() && line.words().get(0).text().startsWith("@");
        int fields = line.fields();
        return !macro && fields == CrontabLine.FIELDS
                ? "must have a task after the five fields"
                : CronPattern.wrongCount(fields, macro) + "; then the task";
    }

    /** Returns null if there can be no such item. */
    private @Nullable CronItem item(
            CrontabLine line, SourceLocation location, CronPattern pattern, ProblemSink problems) {
        String task = checkTask(line.task(), problems);
        CrontabOptions options = new CrontabOptions(strict, problems);
        ObjectNode payload = readRest(line.text(), line.task().end(), options, problems);
        if (task == null) {
            return null;
        }
        return new CronItem(
                location,
                options.identifier() == null ? task : options.identifier(),
                new CronSchedule(pattern, options.zone()),
                options.fill(),
                JobRequest.of(task, payload, options.spec()));
    }

    /** Returns null for what cannot be a task. */
    private static @Nullable String checkTask(Word task, ProblemSink problems) {
        if (!task.isTask()) {
            problems.add(
                    task.start(), task.text(), "task must be letters, digits and _ : / -, with a letter or _ at first");
            return null;
        }
        if (task.text().length() > 128) {
            problems.add(task.start(), task.text(), "task must have at most 128 characters");
            return null;
        }
        return task.text();
    }

    /** Reads what follows the task, and returns the payload; null for none. */
    private @Nullable ObjectNode readRest(String line, int from, CrontabOptions options, ProblemSink problems) {
        for (int i = from; i < line.length(); i++) {
            if ("\r\u2028\u2029".indexOf(line.charAt(i)) >= 0) {
                problems.add(
                        i, line.substring(i), "must not contain a line separator; \\u2028 in a string stands for one");
                return null;
            }
        }
        int at = CrontabLine.skipSpace(line, from);
        if (line.startsWith("?", at)) {
            int end = CrontabLine.skipWord(line, at);
            String query = line.substring(at + 1, end);
            if (query.isEmpty() || (strict && query.matches("&+"))) {
                problems.add(at, line.substring(at, end), "must be followed by options, such as ?max=3&fill=2h");
            }
            options.read(query, at + 1);
            at = CrontabLine.skipSpace(line, end);
        }
        if (at == line.length()) {
            return null;
        }
        if (line.charAt(at) == '{') {
            return payload(line, at, problems);
        }
        problems.add(at, line.substring(at), notPayload(line.charAt(at)));
        return null;
    }

    private static String notPayload(char first) {
        return switch (first) {
            case '#' -> "must not be a comment: comments have lines of their own";
            case '?' -> "must not be a second group of options: join them with &, as in ?max=3&fill=2h";
            case '[', '"', '\'' -> "payload must be a JSON5 object { }";
            default -> "must be ?options, joined by &, or a payload { }, after the task";
        };
    }

    private @Nullable ObjectNode payload(String line, int start, ProblemSink problems) {
        String text = line.substring(start);
        try {
            JsonNode value = strict ? Json5.parseExactly(text) : Json5.parse(text);
            if (text.endsWith("}")) {
                checkStorable(value, start, text, problems);
                return (ObjectNode) value;
            }
            problems.add(
                    line.length() - 1, line.substring(line.length() - 1), "payload must end in }, without a comment");
        } catch (Json5.InvalidJson5Exception e) {
            String rest = text.substring(e.offset());
            problems.add(
                    start + e.offset(),
                    rest.isEmpty() ? text : rest,
                    "payload " + (rest.isEmpty() ? "must not end here: it " : "") + e.getMessage());
        }
        return null;
    }

    private static void checkStorable(JsonNode value, int start, String text, ProblemSink problems) {
        try {
            String unused = Arguments.requireStorable("payload", value.toString());
        } catch (IllegalArgumentException e) {
            problems.add(start, text, String.valueOf(e.getMessage()));
        }
    }

    private static int contentEnd(String line, int start) {
        int end = line.length();
        while (end > start && Json5.isSpace(line.charAt(end - 1))) {
            end--;
        }
        return end;
    }
}
