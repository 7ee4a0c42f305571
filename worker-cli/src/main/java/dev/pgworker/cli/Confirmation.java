package dev.pgworker.cli;

import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Option;

/** Asks before something is done that cannot be taken back. */
final class Confirmation {

    @Option(
            names = {"-y", "--yes"},
            description = "Do not ask for confirmation. Needed without a terminal.")
    private boolean yes;

    /**
     * Returns if it shall be done.
     *
     * @param what what will happen, as the beginning of a question, such as "Complete 3 jobs"
     */
    void require(Terminal terminal, String what) {
        if (yes) {
            return;
        }
        if (!terminal.isInteractive()) {
            throw new CommandFailure(
                    ExitStatus.NOT_CONFIRMED,
                    what + "? There is no terminal to ask: add --yes to do it. Nothing was done.");
        }
        String answer = terminal.ask(what + "? [y/N] ");
        if (!isYes(answer)) {
            throw new CommandFailure(ExitStatus.NOT_CONFIRMED, "Nothing was done.");
        }
    }

    private static boolean isYes(@Nullable String answer) {
        return answer != null
                && (answer.strip().equalsIgnoreCase("y") || answer.strip().equalsIgnoreCase("yes"));
    }
}
