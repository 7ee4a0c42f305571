package dev.pgworker.benchmarks;

import java.util.List;
import java.util.Objects;

import org.jspecify.annotations.Nullable;

/** River for Go, the program in {@code benchmarks/peers/river}: 2,000 handlers, fetches at most every 2 ms. */
record River(String name) implements Contender {

    private static final String PROGRAM = "target/river";

    @Override
    public String mark() {
        return "select coalesce(max(id), 0) from river_job";
    }

    /** Finished jobs stay in its table. */
    @Override
    public String unfinished() {
        return "select exists (select from river_job where state in ('available', 'running', 'retryable', 'scheduled')"
                + " and id > ?)";
    }

    @Override
    public @Nullable String missing(Options options) {
        return Build.in(options.riverDir(), "--river-dir", "go.mod", List.of("go", "build", "-o", PROGRAM, "."));
    }

    @Override
    public List<String> command(Options options, String jdbcUrl) {
        return List.of(
                Objects.requireNonNull(options.riverDir()).resolve(PROGRAM).toString(), Build.url(jdbcUrl));
    }
}
