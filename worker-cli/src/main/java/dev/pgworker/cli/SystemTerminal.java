package dev.pgworker.cli;

import java.io.BufferedOutputStream;
import java.io.Console;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.OutputStreamWriter;
import java.io.PrintWriter;
import java.nio.charset.Charset;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.function.IntSupplier;

import org.jspecify.annotations.Nullable;

/** The terminal, pipes or files that the process was started with. UTF-8, unless the terminal has another encoding. */
final class SystemTerminal implements Terminal {

    private final @Nullable Console console;
    private final Output output = new Output();
    private final PrintWriter out;
    private final PrintWriter err;
    private final Map<String, String> environment;
    private final IntSupplier detectedWidth;

    /**
     * Opens it.
     *
     * @param detectedWidth asks the terminal for its width
     */
    SystemTerminal(Map<String, String> environment, IntSupplier detectedWidth) {
        this.environment = environment;
        this.detectedWidth = detectedWidth;
        this.console = console();
        Charset charset = console == null ? StandardCharsets.UTF_8 : console.charset();
        this.out = new PrintWriter(new OutputStreamWriter(output, charset));
        this.err = new PrintWriter(new OutputStreamWriter(System.err, charset), true);
    }

    /** Returns the console if standard input and output both are one; from Java 22 on there is one in any case. */
    @SuppressWarnings("SystemConsoleNull") // asked isTerminal where there is that
    private static @Nullable Console console() {
        Console console = System.console();
        if (console == null) {
            return null;
        }
        try {
            boolean terminal = (boolean) Console.class.getMethod("isTerminal").invoke(console);
            return terminal ? console : null;
        } catch (ReflectiveOperationException e) {
            return console;
        }
    }

    @Override
    public InputStream in() {
        return System.in;
    }

    @Override
    public PrintWriter out() {
        return out;
    }

    @Override
    public PrintWriter err() {
        return err;
    }

    @Override
    public boolean isInteractive() {
        return console != null;
    }

    @Override
    public int width() {
        String columns = environment.get("COLUMNS");
        if (columns != null && columns.matches("[1-9][0-9]{0,4}")) {
            return Integer.parseInt(columns);
        }
        return detectedWidth.getAsInt();
    }

    @Override
    public @Nullable String ask(String question) {
        return console == null ? null : console.readLine("%s", question);
    }

    @Override
    public char @Nullable [] askPassword(String question) {
        return console == null ? null : console.readPassword("%s", question);
    }

    @Override
    public void flush() {
        out.flush();
        IOException failure = output.failure;
        if (failure != null) {
            boolean nobodyReads = String.valueOf(failure.getMessage()).contains("Broken pipe");
            throw new CommandFailure(
                    nobodyReads ? ExitStatus.BROKEN_PIPE : ExitStatus.FAILED,
                    "Standard output cannot be written: " + failure.getMessage(),
                    failure);
        }
    }

    /** Standard output, which remembers why it failed: a {@code PrintWriter} only says that it did. */
    private static final class Output extends OutputStream {

        private final OutputStream file = new BufferedOutputStream(new FileOutputStream(FileDescriptor.out), 1 << 16);
        private @Nullable IOException failure;

        @Override
        public void write(int b) throws IOException {
            write(new byte[] {(byte) b}, 0, 1);
        }

        @Override
        public void write(byte[] bytes, int offset, int length) throws IOException {
            attempt(() -> file.write(bytes, offset, length));
        }

        @Override
        public void flush() throws IOException {
            attempt(file::flush);
        }

        private void attempt(Action action) throws IOException {
            try {
                action.run();
            } catch (IOException e) {
                if (failure == null) {
                    failure = e;
                }
                throw e;
            }
        }
    }

    @FunctionalInterface
    private interface Action {
        void run() throws IOException;
    }
}
