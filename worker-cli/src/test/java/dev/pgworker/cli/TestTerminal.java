package dev.pgworker.cli;

import java.io.ByteArrayInputStream;
import java.io.InputStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Runs commands in this JVM and keeps what they write. */
final class TestTerminal implements Terminal {

    final Map<String, String> environment = new HashMap<>();
    final Deque<String> answers = new ArrayDeque<>();
    final List<String> questions = new ArrayList<>();
    boolean interactive;
    int width = 100;
    byte[] input = new byte[0];

    /** Thrown where the output ends, null for nowhere. */
    CommandFailure broken;

    private StringWriter out = new StringWriter();
    private StringWriter err = new StringWriter();
    private PrintWriter outWriter = new PrintWriter(out);
    private PrintWriter errWriter = new PrintWriter(err, true);

    TestTerminal(String url) {
        environment.put("PGWORKER_URL", url);
    }

    /** Runs a command on a fresh pair of outputs and returns its exit status. */
    int run(String... args) {
        out = new StringWriter();
        err = new StringWriter();
        outWriter = new PrintWriter(out);
        errWriter = new PrintWriter(err, true);
        return WorkerCli.run(WorkerCli.create(this, environment), this, args);
    }

    TestTerminal input(String text) {
        input = text.getBytes(StandardCharsets.UTF_8);
        return this;
    }

    String output() {
        outWriter.flush();
        return out.toString();
    }

    String errors() {
        errWriter.flush();
        return err.toString();
    }

    @Override
    public InputStream in() {
        return new ByteArrayInputStream(input);
    }

    @Override
    public PrintWriter out() {
        return outWriter;
    }

    @Override
    public PrintWriter err() {
        return errWriter;
    }

    @Override
    public boolean isInteractive() {
        return interactive;
    }

    @Override
    public int width() {
        return width;
    }

    @Override
    public String ask(String question) {
        questions.add(question);
        return answers.poll();
    }

    @Override
    public char[] askPassword(String question) {
        String answer = interactive ? ask(question) : null;
        return answer == null ? null : answer.toCharArray();
    }

    @Override
    public void flush() {
        outWriter.flush();
        if (broken != null) {
            throw broken;
        }
    }
}
