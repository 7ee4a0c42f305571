package dev.pgworker.limit;

import java.time.Duration;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.Objects;
import java.util.TreeSet;

import org.jspecify.annotations.Nullable;

import dev.pgworker.internal.argument.Arguments;

/**
 * How many jobs of a task, or of a group of tasks, run at once or start in a period, across all workers of a schema. With a
 * field of the payload, that is for each of its values apart. Immutable. Several limits may apply to a task: its jobs start
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
    private static final Duration SHORTEST_PERIOD = Duration.ofSeconds(1);
    private static final Duration LONGEST_PERIOD = Duration.ofDays(365);

    /** At least what so many seconds bring fits into a bucket, or it would overflow between two looks. */
    private static final double LEAST_BURST_SECONDS = 0.1;

    /** What it holds by default: a busy machine may be late by so much, and no start is lost. */
    private static final double USUAL_BURST_SECONDS = 0.5;

    private final String name;
    private final List<String> tasks;
    private final List<String> field;
    private final @Nullable Integer maxRunning;
    private final @Nullable Rate rate;

    private record Rate(int maxStarts, Duration period, int burst) {}

    private Limit(
            String name, List<String> tasks, List<String> field, @Nullable Integer maxRunning, @Nullable Rate rate) {
        this.name = name;
        this.tasks = tasks;
        this.field = field;
        this.maxRunning = maxRunning;
        this.rate = rate;
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
        return concurrency(name, maxRunning, Arrays.asList(Arguments.requireNonNull("tasks", tasks)));
    }

    /** Same as {@link #concurrency(String, int, String...)}. */
    public static Limit concurrency(String name, int maxRunning, Collection<String> tasks) {
        Arguments.requireRange("maxRunning", maxRunning, 1, MOST);
        return new Limit(requireName(name), requireTasks(tasks), List.of(), maxRunning, null);
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
        return rate(name, maxStarts, period, Arrays.asList(Arguments.requireNonNull("tasks", tasks)));
    }

    /** Same as {@link #rate(String, int, Duration, String...)}. */
    public static Limit rate(String name, int maxStarts, Duration period, Collection<String> tasks) {
        Arguments.requireRange("maxStarts", maxStarts, 1, MOST);
        Duration kept = Arguments.requireSpan("period", period, SHORTEST_PERIOD, LONGEST_PERIOD);
        return new Limit(
                requireName(name),
                requireTasks(tasks),
                List.of(),
                null,
                new Rate(maxStarts, kept, burst(maxStarts, kept, USUAL_BURST_SECONDS)));
    }

    private static String requireName(String name) {
        return Arguments.requireGivenText("name", name, MAX_NAME);
    }

    private static List<String> requireTasks(Collection<String> tasks) {
        TreeSet<String> sorted = new TreeSet<>(Arguments.requireElements("tasks", tasks));
        if (sorted.isEmpty() || sorted.size() > MAX_TASKS) {
            throw new IllegalArgumentException("tasks must name 1 to " + MAX_TASKS + ", but names " + sorted.size());
        }
        sorted.forEach(task -> Arguments.requireGivenText("tasks", task, MAX_NAME));
        return List.copyOf(sorted);
    }

    private static int burst(int maxStarts, Duration period, double worthSeconds) {
        return Math.max(1, (int) Math.ceil(maxStarts * worthSeconds / seconds(period)));
    }

    private static double seconds(Duration period) {
        return period.toNanos() / 1e9;
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
        if (Arguments.requireNonNull("per", per).size() > MAX_KEYS) {
            throw new IllegalArgumentException("per must have at most " + MAX_KEYS + " names, but has " + per.size());
        }
        per.forEach(each -> Arguments.requireGivenText("per", each, MAX_NAME));
        return new Limit(name, tasks, List.copyOf(per), maxRunning, rate);
    }

    /**
     * Returns this limit with other numbers of jobs that may start at once after a time without any.
     *
     * @param burst 1 to 1,000,000, and at least a tenth of what a second brings
     * @throws IllegalStateException if this is no limit of a rate
     * @throws IllegalArgumentException if the burst is out of range
     */
    public Limit withBurst(int burst) {
        if (rate == null) {
            throw new IllegalStateException("burst belongs to a limit of a rate, and limit \"" + name + "\" is none");
        }
        int least = burst(rate.maxStarts, rate.period, LEAST_BURST_SECONDS);
        if (burst < least || burst > MOST) {
            throw new IllegalArgumentException("burst must be between " + least + " and " + MOST + " for "
                    + rate.maxStarts + " starts in " + rate.period + ", but is " + burst);
        }
        return new Limit(name, tasks, field, null, new Rate(rate.maxStarts, rate.period, burst));
    }

    /**
     * Returns this limit for other tasks.
     *
     * @param tasks the names of 1 to 100 tasks, which share the limit
     */
    public Limit withTasks(Collection<String> tasks) {
        return new Limit(name, requireTasks(tasks), field, maxRunning, rate);
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

    /** Returns how many jobs run at the same time; null for a limit of a rate. */
    public @Nullable Integer maxRunning() {
        return maxRunning;
    }

    /** Returns how many jobs start in a period; null for a limit of concurrency. */
    public @Nullable Integer maxStarts() {
        return rate == null ? null : rate.maxStarts;
    }

    /** Returns the period, kept to the microsecond; null for a limit of concurrency. */
    public @Nullable Duration period() {
        return rate == null ? null : rate.period;
    }

    /** Returns how many jobs may start at once after a time without any; null for a limit of concurrency. */
    public @Nullable Integer burst() {
        return rate == null ? null : rate.burst;
    }

    /** Returns whether this limits the jobs that start in a period, rather than those that run at the same time. */
    public boolean isRate() {
        return rate != null;
    }

    @Override
    public boolean equals(@Nullable Object other) {
        return other instanceof Limit that
                && name.equals(that.name)
                && tasks.equals(that.tasks)
                && field.equals(that.field)
                && Objects.equals(maxRunning, that.maxRunning)
                && Objects.equals(rate, that.rate);
    }

    @Override
    public int hashCode() {
        return Objects.hash(name, tasks, field, maxRunning, rate);
    }

    /** Returns the name and what is allowed, such as {@code Limit[mail, 3 running per tenant, tasks [send-mail]]}. */
    @Override
    public String toString() {
        return "Limit[" + name + ", " + words() + ", tasks " + tasks + "]";
    }

    /** Returns what is allowed, such as {@code "100 starts in PT1M, burst 1, per tenant"}. */
    public String words() {
        String per = field.isEmpty() ? "" : " per " + String.join(".", field);
        return rate == null
                ? maxRunning + " running" + per
                : rate.maxStarts + " starts in " + rate.period + ", burst " + rate.burst
                        + (per.isEmpty() ? "" : "," + per);
    }
}
