package dev.pgworker.crontab;

import java.time.DateTimeException;
import java.time.Duration;
import java.time.Instant;
import java.time.OffsetDateTime;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.Function;

import org.jspecify.annotations.Nullable;
import org.springframework.format.datetime.standard.DurationFormatterUtils;
import org.springframework.scheduling.annotation.Scheduled;

import dev.pgworker.internal.pattern.CronPattern;
import dev.pgworker.internal.pattern.CronSchedule;
import dev.pgworker.schedule.Misfire;
import dev.pgworker.schedule.Recurrence;
import dev.pgworker.schedule.Schedule;

/** What one {@link CronJob} declares: an item of a crontab, or a schedule. */
final class CronJobAttributes {

    private final CronJob given;
    private final AttributeReader reader;

    CronJobAttributes(CronJob given, AttributeReader reader) {
        this.given = given;
        this.reader = reader;
    }

    /** Adds what is declared for the given task, unless that is switched off or an attribute is wrong. */
    void declare(String task, List<CronItem> items, List<DeclaredSchedule> schedules) {
        When when = when();
        CronJobOptions options = CronJobOptions.read(task, given, reader);
        if (when != null && when.attribute.equals("value") && !hasAttributesOfSchedules()) {
            addItem(when, options, items);
        } else {
            addSchedule(when, options, schedules);
        }
    }

    /**
     * The attribute that sets when, and its text with placeholders replaced.
     *
     * @param pattern the five fields of {@code value}; null if they are wrong or if there are none
     */
    private record When(
            String attribute, String text, @Nullable CronPattern pattern) {

        boolean isOff() {
            return text.equals(Scheduled.CRON_DISABLED);
        }

        boolean isLocal() {
            return attribute.equals("value") || attribute.equals("cron");
        }
    }

    /** Returns null if not exactly one attribute sets when, or if that is wrong. */
    private @Nullable When when() {
        Map<String, String> all = new LinkedHashMap<>();
        all.put("value", given.value());
        all.put("cron", given.cron());
        all.put("fixedRate", given.fixedRate());
        all.put("fixedDelay", given.fixedDelay());
        all.values().removeIf(String::isEmpty);
        if (all.size() != 1) {
            reader.add(
                    String.join(", ", all.keySet()),
                    "exactly one of value, cron, fixedRate and fixedDelay must be set");
            return null;
        }
        String attribute = all.keySet().iterator().next();
        return reader.read(
                attribute,
                all.getOrDefault(attribute, ""),
                text -> new When(attribute, text, pattern(attribute, text)));
    }

    private @Nullable CronPattern pattern(String attribute, String text) {
        if (!attribute.equals("value") || text.equals(Scheduled.CRON_DISABLED)) {
            return null;
        }
        CronPattern pattern =
                CronPattern.parse(text, (column, wrong, message) -> reader.add(attribute, wrong, message));
        return reader.hasProblems() ? null : pattern;
    }

    private boolean hasAttributesOfSchedules() {
        return given.overlap().length > 0
                || given.misfire() != Misfire.SKIP
                || !(given.origin() + given.jitter() + given.startsAt() + given.endsAt()).isEmpty();
    }

    private void addItem(When when, CronJobOptions options, List<CronItem> items) {
        if (when.pattern != null && !reader.hasProblems()) {
            items.add(new CronItem(
                    reader.location(),
                    options.name(),
                    new CronSchedule(when.pattern, options.zone()),
                    Objects.requireNonNullElse(options.fill(), Duration.ZERO),
                    options.job()));
        }
    }

    private void addSchedule(@Nullable When when, CronJobOptions options, List<DeclaredSchedule> schedules) {
        Recurrence recurrence = recurrence(when, options.zone());
        Duration jitter = reader.read("jitter", given.jitter(), text -> duration("jitter", text));
        Instant startsAt = reader.read("startsAt", given.startsAt(), text -> instant("startsAt", text));
        Instant endsAt = reader.read("endsAt", given.endsAt(), text -> instant("endsAt", text));
        if (given.overlap().length > 1) {
            reader.add("overlap", Arrays.toString(given.overlap()), "overlap must be one of ALLOW, QUEUE and SKIP");
        }
        if (!given.fill().isEmpty() && given.misfire() == Misfire.SKIP) {
            reader.add(
                    "fill",
                    given.fill(),
                    "fill requires misfire RUN_ALL, for each missed execution, or RUN_ONCE, for the last of them");
        }
        if (when == null || recurrence == null || reader.hasProblems()) {
            return;
        }
        try {
            Schedule schedule = Schedule.builder(options.name(), recurrence, options.task(), options.payload())
                    .spec(options.spec())
                    .overlap(given.overlap().length == 0 ? null : given.overlap()[0])
                    .misfire(given.misfire())
                    .backfill(options.fill())
                    .jitter(Objects.requireNonNullElse(jitter, Duration.ZERO))
                    .startsAt(startsAt)
                    .endsAt(endsAt)
                    .build();
            schedules.add(new DeclaredSchedule(reader.location(), schedule, when.isLocal() && options.zone() == null));
        } catch (IllegalArgumentException e) {
            reader.add(options.name(), String.valueOf(e.getMessage()));
        }
    }

    /** Returns null if it is switched off or wrong. */
    private @Nullable Recurrence recurrence(@Nullable When when, @Nullable ZoneId zone) {
        Instant origin = reader.read("origin", given.origin(), text -> instant("origin", text));
        if (when == null) {
            return null;
        }
        if (!given.origin().isEmpty() && !when.attribute.equals("fixedRate")) {
            reader.add("origin", given.origin(), "origin requires fixedRate");
        }
        if (!given.zone().isEmpty() && !when.isLocal()) {
            reader.add("zone", given.zone(), "zone requires value or cron");
        }
        if (when.isOff()) {
            return null;
        }
        ZoneId local = zone == null ? ZoneOffset.UTC : zone;
        return switch (when.attribute) {
            case "value" -> when.pattern == null ? null : read(when, text -> Recurrence.crontab(text, local));
            case "cron" -> read(when, text -> Recurrence.cron(text, local));
            case "fixedRate" ->
                read(
                        when,
                        text -> Recurrence.fixedRate(
                                duration("fixedRate", text), origin == null ? Instant.EPOCH : origin));
            default -> read(when, text -> Recurrence.fixedDelay(duration("fixedDelay", text)));
        };
    }

    private @Nullable Recurrence read(When when, Function<String, Recurrence> parser) {
        try {
            return parser.apply(when.text);
        } catch (IllegalArgumentException e) {
            reader.add(when.attribute, when.text, String.valueOf(e.getMessage()));
            return null;
        }
    }

    private static Duration duration(String name, String text) {
        try {
            return DurationFormatterUtils.detectAndParse(text.strip());
        } catch (IllegalArgumentException | ArithmeticException e) {
            throw new IllegalArgumentException(name + " must be a duration such as 90m, 1h30m or PT90M", e);
        }
    }

    private static Instant instant(String name, String text) {
        try {
            return OffsetDateTime.parse(text.strip()).toInstant();
        } catch (DateTimeException e) {
            throw new IllegalArgumentException(
                    name + " must be an instant such as 2026-01-01T06:00:00Z or 2026-01-01T06:00:00+01:00", e);
        }
    }
}
