package dev.pgworker.cli;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;

import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** Which jobs to change: those with the ids given, or all that pass filters. */
final class JobSelection {

    /** What the id of a job must be. */
    static final String ID_RULE = "must be a whole number from 1 to " + Long.MAX_VALUE;

    @Parameters(
            paramLabel = "ID",
            arity = "0..*",
            description = "Ids of jobs; - reads them from standard input, with spaces or line breaks between.")
    private List<String> ids = new ArrayList<>();

    @Mixin
    private JobFilters filters = new JobFilters();

    @Option(names = "--all", description = "All jobs, if there is neither an id nor another filter.")
    private boolean all;

    JobFilters filters() {
        return filters;
    }

    /** Returns whether ids are given; fails unless there is exactly one kind of choice. */
    boolean hasIds() {
        if (ids.isEmpty() && filters.isEmpty() && !all) {
            throw CommandFailure.usage(
                    "ID is missing: give ids of jobs, a filter (" + JobFilters.NAMES + "), or --all");
        }
        if (!ids.isEmpty() && !(filters.isEmpty() && !all)) {
            throw CommandFailure.usage("ID cannot be combined with " + JobFilters.NAMES + " or --all");
        }
        return !ids.isEmpty();
    }

    /** Returns the ids, without repetitions. */
    List<Long> ids(Terminal terminal) {
        return ids(ids, terminal);
    }

    /** Reads ids, without repetitions; {@code -} stands for those on standard input. */
    static List<Long> ids(List<String> ids, Terminal terminal) {
        Set<Long> parsed = new LinkedHashSet<>();
        for (String given : ids) {
            if (given.equals("-")) {
                parsed.addAll(standardInput(terminal));
            } else {
                parsed.add(id(given));
            }
        }
        return List.copyOf(parsed);
    }

    private static List<Long> standardInput(Terminal terminal) {
        List<Long> read = new ArrayList<>();
        BufferedReader reader = new BufferedReader(new InputStreamReader(terminal.in(), StandardCharsets.UTF_8));
        try {
            for (String line = reader.readLine(); line != null; line = reader.readLine()) {
                for (String word : line.strip().split("[\\s,]+")) {
                    if (!word.isEmpty()) {
                        read.add(id(word));
                    }
                }
            }
        } catch (IOException e) {
            throw new CommandFailure(ExitStatus.FAILED, "Standard input cannot be read: " + Reasons.of(e), e);
        }
        return read;
    }

    /** Reads the id of a job. */
    static long id(String text) {
        try {
            long id = Long.parseLong(text);
            if (id > 0) {
                return id;
            }
        } catch (NumberFormatException e) {
            throw wrong(text);
        }
        throw wrong(text);
    }

    private static CommandFailure wrong(String text) {
        return CommandFailure.usage("ID " + ID_RULE + ", but is '" + Text.cut(Text.line(text), 60) + "'");
    }
}
