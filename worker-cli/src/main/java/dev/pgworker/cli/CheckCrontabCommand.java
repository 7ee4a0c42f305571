package dev.pgworker.cli;

import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.DateTimeException;
import java.time.Instant;
import java.time.ZoneId;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.List;

import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.ITypeConverter;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.TypeConversionException;

import dev.pgworker.crontab.CronItem;
import dev.pgworker.crontab.Crontab;
import dev.pgworker.crontab.CrontabException;

/** Checks a crontab, without any database. */
@Command(
        name = "check",
        description =
                "Check a crontab and show when its jobs run next. Needs no database. Exit status 1 if there are errors.",
        footer = {"  worker-cli crontab check src/main/resources/crontab --zone Europe/Berlin"})
final class CheckCrontabCommand extends SessionCommand {

    @Parameters(index = "0", paramLabel = "FILE", description = "The crontab; - for standard input.")
    private Path file = Path.of("-");

    @Option(
            names = "--runs",
            paramLabel = "N",
            description = "How many of the next runs to tell, 0 to 1000. Default: ${DEFAULT-VALUE}.")
    private int runs = 3;

    @Option(
            names = "--zone",
            paramLabel = "ZONE",
            converter = ZoneConverter.class,
            description =
                    "Whose local time patterns without the option tz mean, as pgworker.crontab-zone. Default: UTC.")
    private ZoneId zone = ZoneId.of("UTC");

    @Option(
            names = "--from",
            paramLabel = "TIME",
            converter = Times.TimeConverter.class,
            description = "Tell the runs after this time. Default: now.")
    private @Nullable Instant from;

    @Option(names = "--strict", description = "Refuse what workers of Node.js and Rust would not understand.")
    private boolean strict;

    CheckCrontabCommand(Session session) {
        super(session);
    }

    @Override
    public Integer call() {
        if (runs < 0 || runs > 1000) {
            throw CommandFailure.usage("--runs must be between 0 and 1000, but is " + runs);
        }
        String name = file.toString().equals("-") ? "standard input" : file.toString();
        Crontab crontab;
        try {
            crontab =
                    Crontab.builder().strict(strict).text(name, read()).build().withDefaultZone(zone);
        } catch (CrontabException e) {
            return tellProblems(e);
        }
        if (session.isJson()) {
            session.writeJson(Json.object(
                    "items",
                    crontab.items().stream()
                            .map(item -> Json.object(
                                    "identifier", item.identifier(),
                                    "task", item.task(),
                                    "schedule", item.schedule(),
                                    "zone", String.valueOf(item.zone()),
                                    "next", next(item)))
                            .toList()));
        } else {
            Table table = new Table("ITEM", "TASK", "=SCHEDULE", "ZONE", "=NEXT RUNS");
            for (CronItem item : crontab.items()) {
                List<String> next = next(item);
                Table first = table.row(
                        item.identifier(),
                        item.task(),
                        item.schedule(),
                        item.zone(),
                        next.isEmpty() ? (runs == 0 ? null : "never") : next.get(0));
                next.stream().skip(1).forEach(run -> {
                    Table unused = first.row(null, null, null, null, run);
                });
            }
            session.writeTable(table);
            session.say("The crontab is right: " + Text.count(crontab.items().size(), "item") + ".");
        }
        return ExitStatus.OK;
    }

    private List<String> next(CronItem item) {
        List<String> next = new ArrayList<>();
        Instant after = from == null ? Instant.now() : from;
        while (next.size() < runs) {
            Instant due = item.nextDue(after);
            if (due == null) {
                break;
            }
            next.add(due.truncatedTo(ChronoUnit.MINUTES).toString());
            after = due;
        }
        return next;
    }

    private int tellProblems(CrontabException failure) {
        if (session.isJson()) {
            session.writeJson(Json.object(
                    "problems",
                    failure.problems().stream()
                            .map(problem -> Json.object(
                                    "line", problem.line(),
                                    "column", problem.column(),
                                    "text", problem.text(),
                                    "message", problem.message()))
                            .toList()));
        }
        failure.problems().forEach(problem -> session.say(Text.line(problem.toString())));
        return ExitStatus.FAILED;
    }

    private String read() {
        try (InputStream in = file.toString().equals("-") ? session.terminal().in() : Files.newInputStream(file)) {
            return StandardCharsets.UTF_8
                    .newDecoder()
                    .decode(ByteBuffer.wrap(in.readAllBytes()))
                    .toString();
        } catch (CharacterCodingException e) {
            throw new CommandFailure(ExitStatus.USAGE, "FILE " + file + " cannot be read: it is not UTF-8", e);
        } catch (IOException e) {
            throw new CommandFailure(ExitStatus.USAGE, "FILE " + file + " cannot be read: " + Reasons.of(e), e);
        }
    }

    /** Reads the id of a zone. */
    static final class ZoneConverter implements ITypeConverter<ZoneId> {
        @Override
        public ZoneId convert(String text) {
            try {
                return ZoneId.of(text);
            } catch (DateTimeException e) {
                throw new TypeConversionException("'" + text + "' must be a time zone, such as Europe/Berlin or UTC");
            }
        }
    }
}
