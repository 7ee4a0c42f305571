package dev.pgworker.benchmarks;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

import org.jspecify.annotations.Nullable;

/** Builds a contender's program with the compiler that is on the PATH. */
final class Build {

    private Build() {}

    /**
     * Runs a build in a directory.
     *
     * @param directory where the program's sources are; null if the option that names it is not given
     * @param option this option
     * @param file a file that must be there
     * @return why there is no program, or null if there is
     */
    static @Nullable String in(@Nullable Path directory, String option, String file, List<String> command) {
        if (directory == null) {
            return "no " + option;
        }
        if (!Files.exists(directory.resolve(file))) {
            return "no " + file + " in " + directory;
        }
        String words = String.join(" ", command);
        System.err.println(directory + ": " + words);
        try {
            int exit = new ProcessBuilder(command)
                    .directory(directory.toFile())
                    .redirectErrorStream(true)
                    .redirectOutput(ProcessBuilder.Redirect.to(directory
                            .resolve(Files.createDirectories(directory.resolve("target"))
                                    .resolve("build.log"))
                            .toFile()))
                    .start()
                    .waitFor();
            return exit == 0 ? null : words + " fails, see target/build.log in " + directory;
        } catch (IOException e) {
            return "no " + command.get(0) + " on the PATH";
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return "interrupted";
        }
    }

    /** Returns a JDBC URL as other drivers know it; they read user and password among the parameters, too. */
    static String url(String jdbcUrl) {
        return jdbcUrl.replaceFirst("^jdbc:postgresql:", "postgres:");
    }
}
