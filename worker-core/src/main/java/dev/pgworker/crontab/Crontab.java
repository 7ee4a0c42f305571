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
 * A collection of recurring jobs, each with a unique identifier. Immutable.
 *
 * @since 0.1.0
 */
public final class Crontab {

    /** A crontab without recurring jobs. */
    public static final Crontab EMPTY = builder().build();

    private final List<CronItem> items;

    private Crontab(List<CronItem> items) {
        this.items = List.copyOf(items);
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
        items.forEach(builder::item);
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

    /** Returns a copy of this crontab with the given time zone for the items that do not specify one. */
    public Crontab withDefaultZone(ZoneId zone) {
        return new Crontab(
                items.stream().map(item -> item.withDefaultZone(zone)).toList());
    }

    /**
     * Combines texts, annotated methods and single items into a crontab. Not thread-safe.
     *
     * @since 0.1.0
     */
    public static final class Builder {

        private final List<CronItem> items = new ArrayList<>();
        private final List<CrontabProblem> problems = new ArrayList<>();
        private boolean strict;

        private Builder() {}

        /**
         * Sets whether texts that are added after this call are rejected if other Graphile Workers would not understand
         * them. The default is false.
         */
        public Builder strict(boolean strict) {
            this.strict = strict;
            return this;
        }

        /**
         * Adds the items of a text, one per line.
         *
         * @param source the name of the text in messages, such as a property or a file
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
         * @throws CrontabException if a text or an annotation has errors, or if two items have the same identifier; the
         *     exception lists all errors of all sources
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
