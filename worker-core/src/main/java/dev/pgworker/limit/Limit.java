package dev.pgworker.limit;

import java.math.BigDecimal;
import java.time.Duration;
import java.util.Arrays;
import java.util.Collection;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Collectors;

import org.jspecify.annotations.Nullable;

import dev.pgworker.internal.argument.Arguments;

/**
 * A limit on the jobs of tasks that run at once or start in a period, across all workers; or fair shares of starts. With
 * a field of the payload, a number holds for each of its values apart. Immutable. Several limits may apply to a task: its jobs start
 * when all of them allow it.
 *
 * @since 0.1.0
 */
public final class Limit {

    /** The largest {@link #maxRunning}, {@link #maxStarts} and {@link #burst}. */
    public static final int MOST = 1_000_000;

    private static final int MAX_NAME = 128;
    private static final int MAX_TASKS = 100;
    private static final int MAX_KEYS = 10;
    private static final int MAX_WEIGHTS = 1_000;
    private static final int SHOWN_WEIGHTS = 10;
    private static final double LEAST_WEIGHT = 0.01;
    private static final double MOST_WEIGHT = 100;
    private static final Duration SHORTEST_PERIOD = Duration.ofSeconds(1);
    private static final Duration LONGEST_PERIOD = Duration.ofDays(365);

    /** At least what so many seconds bring fits into a bucket, or it would overflow between two looks. */
    private static final double LEAST_BURST_SECONDS = 0.1;

    /** What it holds by default: a busy machine may be late by so much, and no start is lost. */
    private static final double USUAL_BURST_SECONDS = 0.5;

    private final String name;
    private final List<String> tasks;
    private final List<String> field;
    private final Kind kind;

    private sealed interface Kind {}

    private record Running(int most) implements Kind {}

    private record Rate(int maxStarts, Duration period, int burst) implements Kind {}

    private record Share(Map<String, Double> weights) implements Kind {}

    private Limit(String name, Collection<String> tasks, List<String> field, Kind kind) {
        this.name = requireName(name);
        this.tasks = requireTasks(tasks);
        this.field = field;
        this.kind = kind;
    }

    /**
     * Returns a limit of the jobs that run at the same time.
     *
     * @param name 1 to 128 characters, unique in the schema
     * @param maxRunning 1 to 1,000,000
     * @param tasks the names of 1 to 100 tasks, which share the limit
     * @throws IllegalArgumentException if an argument is out of range
     */
    public static Limit concurrency(String name, int maxRunning, String... tasks) {
        Arguments.requireRange("maxRunning", maxRunning, 1, MOST);
        return new Limit(name, list(tasks), List.of(), new Running(maxRunning));
    }

    /**
     * Returns a limit of the jobs that start in a period. It is a token bucket: in any time, no more jobs start than {@link
     * #burst} and what the rate gives for that time. The burst is what half a second brings, but at least 1, so that
     * starts are spread evenly.
     *
     * @param name 1 to 128 characters, unique in the schema
     * @param maxStarts 1 to 1,000,000
     * @param period 1 second to 365 days
     * @param tasks the names of 1 to 100 tasks, which share the limit
     * @throws IllegalArgumentException if an argument is out of range
     */
    public static Limit rate(String name, int maxStarts, Duration period, String... tasks) {
        Arguments.requireRange("maxStarts", maxStarts, 1, MOST);
        Duration kept = requirePeriod(period);
        return new Limit(
                name, list(tasks), List.of(), new Rate(maxStarts, kept, burst(maxStarts, kept, USUAL_BURST_SECONDS)));
    }

    /**
     * Returns fair shares: jobs start in turn over the values of a field of the payload, however many jobs of each
     * wait. What a value does not use is lent to the others. It has to be given a field by {@link #per(String)}. Values
     * weigh 1 unless {@link #withWeights} sets other weights.
     *
     * @param name 1 to 128 characters, unique in the schema
     * @param tasks the names of 1 to 100 tasks, which share
     * @throws IllegalArgumentException if an argument is out of range
     */
    public static Limit fairShare(String name, String... tasks) {
        return new Limit(name, list(tasks), List.of(), new Share(Map.of()));
    }

    private static List<String> list(String... tasks) {
        return Arrays.asList(Arguments.requireNonNull("tasks", tasks));
    }

    static String requireName(String name) {
        return Arguments.requireGivenText("name", name, MAX_NAME);
    }

    static List<String> requireTasks(Collection<String> tasks) {
        TreeSet<String> sorted = new TreeSet<>(Arguments.requireElements("tasks", tasks));
        if (sorted.isEmpty() || sorted.size() > MAX_TASKS) {
            throw new IllegalArgumentException("tasks must name 1 to " + MAX_TASKS + ", but names " + sorted.size());
        }
        sorted.forEach(task -> Arguments.requireGivenText("tasks", task, MAX_NAME));
        return List.copyOf(sorted);
    }

    static Duration requirePeriod(Duration period) {
        return Arguments.requireSpan("period", period, SHORTEST_PERIOD, LONGEST_PERIOD);
    }

    static List<String> requirePath(List<String> per) {
        if (Arguments.requireNonNull("per", per).size() > MAX_KEYS) {
            throw new IllegalArgumentException("per must have at most " + MAX_KEYS + " names, but has " + per.size());
        }
        per.forEach(each -> Arguments.requireGivenText("per", each, MAX_NAME));
        return List.copyOf(per);
    }

    static Map<String, Double> requireWeights(Map<String, Double> weights) {
        Map<String, Double> sorted = new TreeMap<>(Arguments.<String, Double>requireEntries("weights", weights));
        if (sorted.size() > MAX_WEIGHTS) {
            throw new IllegalArgumentException(
                    "weights must name at most " + MAX_WEIGHTS + " values, but names " + sorted.size());
        }
        sorted.forEach((value, weight) -> {
            Arguments.requireOptionalText("weights", value, MAX_NAME);
            if (!(weight >= LEAST_WEIGHT && weight <= MOST_WEIGHT)) {
                throw new IllegalArgumentException("weights must be between " + text(LEAST_WEIGHT) + " and "
                        + text(MOST_WEIGHT) + ", but that of \"" + value + "\" is " + weight);
            }
        });
        return Collections.unmodifiableMap(sorted);
    }

    private static int burst(int maxStarts, Duration period, double worthSeconds) {
        return Math.max(1, (int) Math.ceil(maxStarts * worthSeconds / (period.toNanos() / 1e9)));
    }

    /**
     * Returns this limit for each value of a field of the payload.
     *
     * @param per the names of a property and of those in it, separated by dots, such as {@code "customer.id"}; numbers are
     *     indexes of arrays
     * @throws IllegalArgumentException if a name is empty, or if there are more than 10
     */
    public Limit per(String per) {
        return per(Arrays.asList(Arguments.requireNonNull("per", per).split("\\.", -1)));
    }

    /**
     * Same as {@link #per(String)}, for names that may contain dots.
     *
     * @param per 1 to 10 names of 1 to 128 characters; none at all for all jobs together
     */
    public Limit per(List<String> per) {
        return new Limit(name, tasks, requirePath(per), kind);
    }

    /**
     * Returns this limit with other numbers of jobs that may start at once after a time without any.
     *
     * @param burst 1 to 1,000,000, and at least a tenth of what a second brings
     * @throws IllegalStateException if this is no limit of a rate
     * @throws IllegalArgumentException if the burst is out of range
     */
    public Limit withBurst(int burst) {
        if (!(kind instanceof Rate rate)) {
            throw new IllegalStateException("burst belongs to a limit of a rate, and limit \"" + name + "\" is none");
        }
        int least = burst(rate.maxStarts, rate.period, LEAST_BURST_SECONDS);
        if (burst < least || burst > MOST) {
            throw new IllegalArgumentException("burst must be between " + least + " and " + MOST + " for "
                    + rate.maxStarts + " starts in " + rate.period + ", but is " + burst);
        }
        return new Limit(name, tasks, field, new Rate(rate.maxStarts, rate.period, burst));
    }

    /**
     * Returns these fair shares with other weights: a value of weight 3 starts three jobs while one of weight 1 starts one.
     *
     * @param weights at most 1,000 values with 0.01 to 100; all others weigh 1. Jobs without the field have the value {@code ""}
     * @throws IllegalStateException if these are no fair shares
     * @throws IllegalArgumentException if a weight is out of range
     */
    public Limit withWeights(Map<String, Double> weights) {
        if (!(kind instanceof Share)) {
            throw new IllegalStateException("weights belong to fair shares, and limit \"" + name + "\" is none");
        }
        return new Limit(name, tasks, field, new Share(requireWeights(weights)));
    }

    /**
     * Returns this limit for other tasks.
     *
     * @param tasks the names of 1 to 100 tasks, which share the limit
     */
    public Limit withTasks(Collection<String> tasks) {
        return new Limit(name, tasks, field, kind);
    }

    /** Returns the name, unique in the schema. */
    public String name() {
        return name;
    }

    /** Returns the tasks that share the limit, in alphabetical order. */
    public List<String> tasks() {
        return tasks;
    }

    /**
     * Returns the path of the payload's field, each value of which has the limit for itself; empty if all jobs share it. Jobs
     * without the field, or where it is null, share one value of their own.
     */
    public List<String> field() {
        return field;
    }

    /** Returns how many jobs run at the same time; null if this limits something else. */
    public @Nullable Integer maxRunning() {
        return kind instanceof Running running ? running.most : null;
    }

    /** Returns how many jobs start in a period; null if this is no limit of a rate. */
    public @Nullable Integer maxStarts() {
        return kind instanceof Rate rate ? rate.maxStarts : null;
    }

    /** Returns the period, kept to the microsecond; null if this is no limit of a rate. */
    public @Nullable Duration period() {
        return kind instanceof Rate rate ? rate.period : null;
    }

    /** Returns how many jobs may start at once after a time without any; null if this is no limit of a rate. */
    public @Nullable Integer burst() {
        return kind instanceof Rate rate ? rate.burst : null;
    }

    /** Returns the weights that are not 1 by default, in the order of the values; null if these are no fair shares. */
    public @Nullable Map<String, Double> weights() {
        return kind instanceof Share share ? share.weights : null;
    }

    /**
     * Returns all but the name, for configuration and pages, as {@link LimitAttributes#limit} reads it. These are {@code tasks},
     * {@code per} as text (as a list where a name has a dot), and {@code maxRunning}, or {@code maxStarts}, {@code period} and {@code burst}, or {@code weights}.
     */
    public Map<String, Object> attributes() {
        Map<String, Object> attributes = new LinkedHashMap<>();
        attributes.put("tasks", tasks);
        if (!field.isEmpty()) {
            attributes.put(
                    "per", field.stream().anyMatch(each -> each.contains(".")) ? field : String.join(".", field));
        }
        if (kind instanceof Running running) {
            attributes.put("maxRunning", running.most);
        } else if (kind instanceof Rate rate) {
            attributes.put("maxStarts", rate.maxStarts);
            attributes.put("period", rate.period);
            attributes.put("burst", rate.burst);
        } else if (kind instanceof Share share) {
            attributes.put("weights", share.weights);
        }
        return attributes;
    }

    @Override
    public boolean equals(@Nullable Object other) {
        return other instanceof Limit that
                && name.equals(that.name)
                && tasks.equals(that.tasks)
                && field.equals(that.field)
                && kind.equals(that.kind);
    }

    @Override
    public int hashCode() {
        return Objects.hash(name, tasks, field, kind);
    }

    /** Returns the name and what is allowed, such as {@code Limit[mail, 3 running per tenant, tasks [send-mail]]}. */
    @Override
    public String toString() {
        return "Limit[" + name + ", " + words() + ", tasks " + tasks + "]";
    }

    /**
     * Returns what is allowed, such as {@code "100 starts in PT1M, burst 1, per tenant"} or {@code "fair shares per tenant, acme
     * 3"}; of many weights the first ones.
     */
    public String words() {
        String per = field.isEmpty() ? "" : " per " + String.join(".", field);
        if (kind instanceof Rate rate) {
            return rate.maxStarts + " starts in " + rate.period + ", burst " + rate.burst
                    + (per.isEmpty() ? "" : "," + per);
        }
        return kind instanceof Share share
                ? "fair shares" + per + words(share.weights)
                : maxRunning() + " running" + per;
    }

    private static String words(Map<String, Double> weights) {
        return weights.entrySet().stream()
                        .limit(SHOWN_WEIGHTS)
                        .map(each -> ", " + each.getKey() + " " + text(each.getValue()))
                        .collect(Collectors.joining())
                + (weights.size() > SHOWN_WEIGHTS ? ", ..." : "");
    }

    private static String text(double number) {
        return BigDecimal.valueOf(number).stripTrailingZeros().toPlainString();
    }
}
