package dev.pgworker.cli;

import java.io.InputStream;
import java.io.PrintWriter;

import org.jspecify.annotations.Nullable;

/** Where a command reads and writes. */
interface Terminal {

    /** Returns standard input, not buffered. */
    InputStream in();

    /** Returns standard output: results and nothing else. */
    PrintWriter out();

    /** Returns standard error: failures, questions, progress. */
    PrintWriter err();

    /** Returns whether somebody sits in front of it, so that questions are answered and lines may be overwritten. */
    boolean isInteractive();

    /** Returns how many columns a line has. */
    int width();

    /** Asks a question and returns the answer; null if there is none any more. */
    @Nullable String ask(String question);

    /** Asks for a password, without showing it; null if there is no answer any more. */
    char @Nullable [] askPassword(String question);

    /** Fails unless all that was written so far has arrived, so that a long output ends with its reader. */
    void flush();
}
