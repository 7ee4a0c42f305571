package dev.pgworker.benchmarks;

import java.util.List;
import java.util.Objects;

import org.jspecify.annotations.Nullable;

/**
 * Graphile Worker for Rust, the program in {@code benchmarks/peers/rust}.
 *
 * @param tuned whether it has the settings of its own performance test, else those that {@link Node} has
 */
record Rust(String name, boolean tuned) implements Contender {

    @Override
    public boolean addsItsOwnWay() {
        return !tuned;
    }

    @Override
    public boolean onGraphileTables() {
        return true;
    }

    @Override
    public boolean hasQueues() {
        return true;
    }

    @Override
    public String mark() {
        return GraphileTables.MARK;
    }

    @Override
    public String unfinished() {
        return GraphileTables.UNFINISHED;
    }

    @Override
    public @Nullable String missing(Options options) {
        return Build.in(options.rustDir(), "--rust-dir", "Cargo.toml", List.of("cargo", "build", "--release"));
    }

    @Override
    public List<String> command(Options options, String jdbcUrl) {
        return List.of(
                Objects.requireNonNull(options.rustDir())
                        .resolve("target/release/rust-peer")
                        .toString(),
                Build.url(jdbcUrl),
                tuned ? "tuned" : "default");
    }
}
