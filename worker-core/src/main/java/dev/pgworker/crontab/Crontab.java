package dev.pgworker.crontab;

import java.time.ZoneId;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Predicate;

import dev.pgworker.task.JobHandler;

/**
 * Recurring jobs, each under an identifier of its own. Immutable.
 *
 * @since 0.1.0
 */
public final class Crontab {

    /** No recurring jobs. */
    public static final Crontab EMPTY = builder().build();

    private final List<CronItem> items;

    private Crontab(List<CronItem> items) {
        this.items = List.copyOf(items);
    }

    /** Returns a builder of a crontab that may come from several sources. */
    public static Builder builder() {
        return new Builder();
    }

    /**
     * Joins items.
     *
     * @throws CrontabException if two have the same identifier; it names all that are repeated
     */
    public static Crontab of(Collection<CronItem> items) {
        Builder builder = builder();
        items.forEach(builder::item);
        return builder.build();
    }

    /**
     * Reads the text of a crontab: one item a line.
     *
     * @param source what messages call the text, such as a property or a file
     * @throws CrontabException if anything in it is wrong
     */
    public static Crontab parse(String source, String text) {
        return builder().text(source, text).build();
    }

    /** Returns the items, in their order, unmodifiable. */
    public List<CronItem> items() {
        return items;
    }

    /** Returns this crontab with the given zone for the items that have none of their own. */
    public Crontab withDefaultZone(ZoneId zone) {
        return new Crontab(
                items.stream().map(item -> item.withDefaultZone(zone)).toList());
    }

    /**
     * Joins texts, annotated methods and single items. Not thread-safe.
     *
     * @since 0.1.0
     */
    public static final class Builder {

        private final List<CronItem> items = new ArrayList<>();
        private final List<CrontabProblem> problems = new ArrayList<>();
        private boolean strict;

        private Builder() {}

        /**
         * Sets whether texts that are added from here on are refused if other Graphile Workers would not understand them;
         * false unless set.
         */
        public Builder strict(boolean strict) {
            this.strict = strict;
            return this;
        }

        /**
         * Adds the items of a text, one a line.
         *
         * @param source what messages call the text, such as a property or a file
         */
        public Builder text(String source, String text) {
            items.addAll(new CrontabParser(strict).parse(source, text, problems));
            return this;
        }

        /** Adds the items that {@link CronJob} annotations on the methods of a class declare. */
        public Builder methods(Class<?> type) {
            return methods(type, handler -> true);
        }

        /**
         * Adds the items that {@link CronJob} annotations on some of the methods of a class declare.
         *
         * @param wanted whether to add the items of a method, by its annotation
         */
        public Builder methods(Class<?> type, Predicate<JobHandler> wanted) {
            items.addAll(new CronJobMethods(problems, wanted).find(type));
            return this;
        }

        /** Adds an item. */
        public Builder item(CronItem item) {
            items.add(item);
            return this;
        }

        /**
         * Returns the crontab.
         *
         * @throws CrontabException if anything is wrong in a text or an annotation, or if two items have the same
         *     identifier; it tells all mistakes of all sources
         */
        public Crontab build() {
            List<CrontabProblem> all = new ArrayList<>(problems);
            addRepetitions(all);
            if (!all.isEmpty()) {
                throw new CrontabException(inOrder(all));
            }
            return new Crontab(items);
        }

        private void addRepetitions(List<CrontabProblem> all) {
            Map<String, SourceLocation> taken = new HashMap<>();
            for (CronItem item : items) {
                SourceLocation location = item.location();
                SourceLocation earlier = taken.putIfAbsent(item.identifier(), location);
                if (earlier != null) {
                    all.add(new CrontabProblem(
                            location.source(),
                            location.line(),
                            location.column(),
                            item.identifier(),
                            "identifier is taken by " + earlier + "; set another id"));
                }
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
