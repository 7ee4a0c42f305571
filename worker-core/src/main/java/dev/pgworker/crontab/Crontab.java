package dev.pgworker.crontab;

import java.time.ZoneId;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Predicate;
import java.util.function.UnaryOperator;

import dev.pgworker.internal.argument.Arguments;
import dev.pgworker.schedule.Schedule;
import dev.pgworker.task.JobHandler;

/**
 * A collection of recurring jobs, each with a unique identifier. Immutable.
 *
 * @since 0.1.0
 */
public final class Crontab {

    /** A crontab without recurring jobs. */
    public static final Crontab EMPTY = builder().build();

    private final List<CronItem> items;
    private final List<DeclaredSchedule> schedules;

    private Crontab(List<CronItem> items, List<DeclaredSchedule> schedules) {
        this.items = List.copyOf(items);
        this.schedules = List.copyOf(schedules);
    }

    /** Returns a builder of a crontab that can combine several sources. */
    public static Builder builder() {
        return new Builder();
    }

    /**
     * Returns a crontab with the given items.
     *
     * @throws CrontabException if two items have the same identifier; the message lists all that are repeated
     */
    public static Crontab of(Collection<CronItem> items) {
        Builder builder = builder();
        Arguments.requireList("items", items).forEach(builder::item);
        return builder.build();
    }

    /**
     * Parses the text of a crontab, with one item per line.
     *
     * @param source the name of the text in messages, such as a property or a file
     * @throws CrontabException if the text has errors
     */
    public static Crontab parse(String source, String text) {
        return builder().text(source, text).build();
    }

    /** Returns the items in their order, as an unmodifiable list. */
    public List<CronItem> items() {
        return items;
    }

    /**
     * Returns the schedules in their order, as an unmodifiable list. These are those of {@link CronJob} annotations with
     * attributes that an item of a crontab does not have, and those that were added. One that does not specify a time zone is in UTC.
     */
    public List<Schedule> schedules() {
        return schedules.stream().map(DeclaredSchedule::schedule).toList();
    }

    /**
     * Returns a copy of this crontab with the given time zone for the items, and for the schedules of annotations, that do not
     * specify one.
     */
    public Crontab withDefaultZone(ZoneId zone) {
        return new Crontab(
                items.stream().map(item -> item.withDefaultZone(zone)).toList(),
                schedules.stream()
                        .map(schedule -> schedule.withDefaultZone(zone))
                        .toList());
    }

    /**
     * Combines texts, annotated methods and single items into a crontab. Not thread-safe.
     *
     * @since 0.1.0
     */
    public static final class Builder {

        private final List<CronItem> items = new ArrayList<>();
        private final List<DeclaredSchedule> schedules = new ArrayList<>();
        private final List<CrontabProblem> problems = new ArrayList<>();
        private boolean strict;
        private UnaryOperator<String> resolver = UnaryOperator.identity();

        private Builder() {}

        /**
         * Sets whether to reject later texts that Graphile Workers on Node.js or in Rust would reject, ignore or read
         * differently. The default is false.
         */
        public Builder strict(boolean strict) {
            this.strict = strict;
            return this;
        }

        /**
         * Sets what replaces placeholders in the attributes of annotations that are added after this call. The default
         * replaces nothing.
         *
         * @param resolver returns the text with its placeholders replaced, or throws an {@code IllegalArgumentException} if
         *     it cannot; that is reported as an error of the attribute
         */
        public Builder resolver(UnaryOperator<String> resolver) {
            this.resolver = Arguments.requireNonNull("resolver", resolver);
            return this;
        }

        /**
         * Adds the items of a text, one per line.
         *
         * @param source the name of the text in messages, such as a property or a file
         */
        public Builder text(String source, String text) {
            items.addAll(new CrontabParser(strict).parse(source, Arguments.requireNonNull("text", text), problems));
            return this;
        }

        /** Adds the items and schedules that {@link CronJob} annotations on the methods of a class declare. */
        public Builder methods(Class<?> type) {
            return methods(type, handler -> true);
        }

        /**
         * Adds the items and schedules that {@link CronJob} annotations on some of the methods of a class declare.
         *
         * @param wanted whether to add what a method declares, by its annotation
         */
        public Builder methods(Class<?> type, Predicate<JobHandler> wanted) {
            Arguments.requireNonNull("type", type);
            Arguments.requireNonNull("wanted", wanted);
            CronJobMethods methods = new CronJobMethods(resolver, problems).read(type, wanted);
            items.addAll(methods.items());
            schedules.addAll(methods.schedules());
            return this;
        }

        /** Adds an item. */
        public Builder item(CronItem item) {
            items.add(Arguments.requireNonNull("item", item));
            return this;
        }

        /** Adds a schedule. */
        public Builder schedule(Schedule schedule) {
            String source = "a Schedule of task "
                    + Arguments.requireNonNull("schedule", schedule).job().identifier();
            schedules.add(new DeclaredSchedule(new SourceLocation(source, 0, 0), schedule, false));
            return this;
        }

        /**
         * Returns the crontab.
         *
         * @throws CrontabException if a text or an annotation has errors, or if an identifier is used twice, by items or
         *     schedules; the exception lists all errors of all sources
         */
        public Crontab build() {
            List<CrontabProblem> all = new ArrayList<>(problems);
            addRepetitions(all);
            if (!all.isEmpty()) {
                throw new CrontabException(inOrder(all));
            }
            return new Crontab(items, schedules);
        }

        private void addRepetitions(List<CrontabProblem> all) {
            Map<String, SourceLocation> taken = new HashMap<>();
            items.forEach(item -> addRepetition(item.identifier(), item.location(), taken, all));
            schedules.forEach(declared -> addRepetition(declared.schedule().name(), declared.location(), taken, all));
        }

        private static void addRepetition(
                String identifier,
                SourceLocation location,
                Map<String, SourceLocation> taken,
                List<CrontabProblem> all) {
            SourceLocation earlier = taken.putIfAbsent(identifier, location);
            if (earlier != null) {
                all.add(new CrontabProblem(
                        location.source(),
                        location.line(),
                        location.column(),
                        identifier,
                        "identifier is taken by " + earlier + "; set another id"));
            }
        }

        /** Brings the problems of each source together, in the order of its lines. */
        private static List<CrontabProblem> inOrder(List<CrontabProblem> problems) {
            List<String> sources =
                    problems.stream().map(CrontabProblem::source).distinct().toList();
            return problems.stream()
                    .sorted(Comparator.<CrontabProblem>comparingInt(problem -> sources.indexOf(problem.source()))
                            .thenComparingInt(CrontabProblem::line)
                            .thenComparingInt(CrontabProblem::column))
                    .toList();
        }
    }
}
