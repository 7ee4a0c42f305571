package dev.pgworker.benchmarks;

import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

import org.jspecify.annotations.Nullable;

/**
 * What the command line says.
 *
 * @param jobs how many jobs a run has; slow contenders get a fraction of it
 * @param runs how often each contender runs
 * @param contenders names of the contenders in the order in which they take turns; empty for the scenario's own choice
 * @param jdbcUrl an existing database, whose role may create others; null to start a server
 * @param nodeDir the directory whose node_modules holds graphile-worker; null to go without
 * @param rustDir the directory of the Rust worker's program; null to go without
 * @param riverDir the directory of River's program; null to go without
 * @param json where to write the results
 * @param pings how many jobs measure a latency
 * @param rate jobs a second of a soak
 * @param minutes how long a soak lasts
 * @param warmUpSeconds how long a worker drains jobs before it is measured
 * @param idleSeconds how long a worker without jobs is watched
 * @param heapMegabytes the fixed heap of each JVM
 * @param timeoutSeconds when a drain that is not done is cut off
 */
record Options(
        int jobs,
        int runs,
        List<String> contenders,
        @Nullable String jdbcUrl,
        @Nullable Path nodeDir,
        @Nullable Path rustDir,
        @Nullable Path riverDir,
        @Nullable Path json,
        int pings,
        int rate,
        int minutes,
        int warmUpSeconds,
        int idleSeconds,
        int heapMegabytes,
        int timeoutSeconds) {

    private static final Map<String, String> DEFAULTS = Map.of(
            "jobs", "100000", "runs", "3", "pings", "500", "rate", "30000", "minutes", "10", "warm-up", "10", "idle",
            "60", "heap", "512", "timeout", "120");
    private static final List<String> WITHOUT_DEFAULT =
            List.of("contenders", "jdbc-url", "node-dir", "rust-dir", "river-dir", "json");

    /**
     * Reads {@code --name value} pairs.
     *
     * @throws IllegalArgumentException if one is unknown, has no value or a wrong one; the message names it
     */
    static Options parse(List<String> arguments) {
        Map<String, String> given = new LinkedHashMap<>(DEFAULTS);
        for (int i = 0; i < arguments.size(); i += 2) {
            String name = arguments.get(i).replaceFirst("^--", "");
            if (!arguments.get(i).startsWith("--") || !(DEFAULTS.containsKey(name) || WITHOUT_DEFAULT.contains(name))) {
                throw new IllegalArgumentException("unknown option " + arguments.get(i) + ", known: --"
                        + String.join(" --", WITHOUT_DEFAULT) + " --" + String.join(" --", DEFAULTS.keySet()));
            }
            if (i + 1 == arguments.size()) {
                throw new IllegalArgumentException("--" + name + " needs a value");
            }
            given.put(name, arguments.get(i + 1));
        }
        String contenders = given.get("contenders");
        return new Options(
                atLeast(1, given, "jobs"),
                atLeast(1, given, "runs"),
                contenders == null ? List.of() : List.of(contenders.split(",")),
                given.get("jdbc-url"),
                path(given.get("node-dir")),
                path(given.get("rust-dir")),
                path(given.get("river-dir")),
                path(given.get("json")),
                atLeast(1, given, "pings"),
                atLeast(1, given, "rate"),
                atLeast(1, given, "minutes"),
                atLeast(0, given, "warm-up"),
                atLeast(1, given, "idle"),
                atLeast(1, given, "heap"),
                atLeast(1, given, "timeout"));
    }

    /** Returns the same with another heap. */
    Options withHeap(int megabytes) {
        return new Options(
                jobs,
                runs,
                contenders,
                jdbcUrl,
                nodeDir,
                rustDir,
                riverDir,
                json,
                pings,
                rate,
                minutes,
                warmUpSeconds,
                idleSeconds,
                megabytes,
                timeoutSeconds);
    }

    private static @Nullable Path path(@Nullable String value) {
        return value == null ? null : Path.of(value).toAbsolutePath();
    }

    private static int atLeast(int least, Map<String, String> given, String name) {
        String value = given.get(name);
        try {
            int number = Integer.parseInt(String.valueOf(value));
            if (number >= least) {
                return number;
            }
        } catch (NumberFormatException e) {
            // the same message as for a number that is too small
        }
        throw new IllegalArgumentException(
                "--" + name + " must be an integer of at least " + least + ", but is " + value);
    }
}
