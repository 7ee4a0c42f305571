package dev.pgworker.benchmarks;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.List;
import java.util.Objects;

import org.jspecify.annotations.Nullable;

/**
 * Graphile Worker for Node.js, concurrency 24.
 *
 * @param batched whether it fetches and completes in batches, with the settings of its own performance test
 */
record Node(String name, boolean batched, int processes) implements Contender {

    @Override
    public int divisor() {
        return batched ? 1 : 10;
    }

    @Override
    public boolean addsItsOwnWay() {
        return batched && processes == 1;
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
        Path directory = options.nodeDir();
        if (directory == null) {
            return "no --node-dir";
        }
        if (!Files.isDirectory(directory.resolve("node_modules/graphile-worker"))) {
            return "no node_modules/graphile-worker in " + directory;
        }
        try {
            int exit = new ProcessBuilder("node", "--version")
                    .redirectErrorStream(true)
                    .redirectOutput(ProcessBuilder.Redirect.DISCARD)
                    .start()
                    .waitFor();
            return exit == 0 ? null : "node --version fails";
        } catch (IOException e) {
            return "no node on the PATH";
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return "interrupted";
        }
    }

    @Override
    public List<String> command(Options options, String jdbcUrl) {
        return List.of(
                "node",
                "--max-old-space-size=512",
                script().toString(),
                Objects.requireNonNull(options.nodeDir()).toString(),
                Build.url(jdbcUrl),
                batched ? "batched" : "unbatched");
    }

    private static Path script() {
        try (InputStream source = Objects.requireNonNull(Node.class.getResourceAsStream("worker.mjs"))) {
            Path file = Files.createTempFile("worker", ".mjs");
            file.toFile().deleteOnExit();
            Files.copy(source, file, StandardCopyOption.REPLACE_EXISTING);
            return file;
        } catch (IOException e) {
            throw new UncheckedIOException("The script for Node.js could not be written", e);
        }
    }
}
