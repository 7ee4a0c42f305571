package dev.pgworker.crontab;

import java.util.ArrayList;
import java.util.Collection;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** Recurring jobs, each under an identifier of its own. Immutable. */
public final class Crontab {

    /** No recurring jobs. */
    public static final Crontab EMPTY = new Crontab(List.of());

    private final List<CronItem> items;

    private Crontab(List<CronItem> items) {
        this.items = List.copyOf(items);
    }

    /**
     * Joins items.
     *
     * @throws IllegalArgumentException if two have the same identifier; the message names all that are repeated
     */
    public static Crontab of(Collection<CronItem> items) {
        Set<String> seen = new HashSet<>();
        List<String> repeated = new ArrayList<>();
        for (CronItem item : items) {
            if (!seen.add(item.identifier())) {
                repeated.add("\"" + item.identifier() + "\" (task " + item.task() + ")");
            }
        }
        if (!repeated.isEmpty()) {
            throw new IllegalArgumentException("Each cron item must have an identifier of its own; set another for "
                    + String.join(", ", repeated));
        }
        return new Crontab(List.copyOf(items));
    }

    /**
     * Reads the text of a crontab: one item a line.
     *
     * @param source what messages call the text, such as a property or a file
     * @throws CrontabException if anything in it is wrong
     */
    public static Crontab parse(String source, String text) {
        return new Crontab(new CrontabParser(false).parse(source, text));
    }

    /**
     * Reads several texts as one crontab.
     *
     * @param texts by what messages call them
     * @throws CrontabException if anything in them is wrong; it tells the mistakes of all texts
     * @throws IllegalArgumentException as {@link #of}, if texts repeat each other's identifiers
     */
    public static Crontab parse(Map<String, String> texts) {
        CrontabParser parser = new CrontabParser(false);
        List<CronItem> items = new ArrayList<>();
        List<CrontabProblem> problems = new ArrayList<>();
        texts.forEach((source, text) -> {
            try {
                items.addAll(parser.parse(source, text));
            } catch (CrontabException e) {
                problems.addAll(e.problems());
            }
        });
        if (!problems.isEmpty()) {
            throw new CrontabException(problems);
        }
        return of(items);
    }

    /** Returns the items, in their order, unmodifiable. */
    public List<CronItem> items() {
        return items;
    }
}
