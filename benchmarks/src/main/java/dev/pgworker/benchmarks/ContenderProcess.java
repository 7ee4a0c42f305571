package dev.pgworker.benchmarks;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/**
 * A process of a contender, told what to do by lines and answering each with a line of {@code =} and JSON.
 *
 * <table>
 * <caption>Commands</caption>
 * <tr><td>create</td><td>create tables</td></tr>
 * <tr><td>start, stop</td><td>begin and end to run jobs</td></tr>
 * <tr><td>add N</td><td>add N jobs one by one; answers the seconds</td></tr>
 * <tr><td>bulk N M</td><td>add N jobs, M in a call; answers the seconds</td></tr>
 * <tr><td>ping N GAP LEAD</td><td>add N stamped jobs, one about every GAP ms, each due LEAD ms later; answers for each
 * its stamp and the microseconds from there until its transaction was told to commit, or N if that is unknown</td></tr>
 * <tr><td>load RATE, added, unload</td><td>begin to add so many jobs a second; how many so far; end and how many</td></tr>
 * <tr><td>ran</td><td>how many jobs this process has run</td></tr>
 * <tr><td>waits</td><td>the stamps of jobs that have begun since the last question, each with the microseconds that it waited</td></tr>
 * <tr><td>heap</td><td>bytes in use</td></tr>
 * </table>
 */
final class ContenderProcess implements AutoCloseable {

    private static final JsonMapper JSON = new JsonMapper();
    private static final int PATIENCE_SECONDS = 300;

    private final String name;
    private final Process process;
    private final PrintWriter commands;
    private final BlockingQueue<String> answers = new LinkedBlockingQueue<>();

    ContenderProcess(String name, List<String> command) throws IOException {
        this.name = name;
        process = new ProcessBuilder(command)
                .redirectError(ProcessBuilder.Redirect.INHERIT)
                .start();
        commands = new PrintWriter(process.outputWriter(StandardCharsets.UTF_8), true);
        Thread reader = new Thread(this::read, "answers of " + name);
        reader.setDaemon(true);
        reader.start();
    }

    private void read() {
        try (BufferedReader lines = process.inputReader(StandardCharsets.UTF_8)) {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                if (line.startsWith("=")) {
                    answers.add(line.substring(1));
                }
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        } finally {
            answers.add("");
        }
    }

    /** Says a command and waits for its answer. */
    JsonNode ask(String command) throws InterruptedException {
        commands.println(command);
        String answer = answers.poll(PATIENCE_SECONDS, TimeUnit.SECONDS);
        if (answer == null || answer.isEmpty()) {
            throw new IllegalStateException(
                    name + (answer == null ? " does not answer \"" : " ended at \"") + command + "\"");
        }
        return JSON.readTree(answer);
    }

    long pid() {
        return process.pid();
    }

    @Override
    public void close() {
        commands.close();
        try {
            if (!process.waitFor(20, TimeUnit.SECONDS)) {
                process.destroyForcibly().waitFor();
            }
        } catch (InterruptedException e) {
            process.destroyForcibly();
            Thread.currentThread().interrupt();
        }
    }
}
