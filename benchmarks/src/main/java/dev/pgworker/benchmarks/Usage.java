package dev.pgworker.benchmarks;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.List;
import java.util.OptionalLong;
import java.util.stream.Stream;

/** What processes use, as Linux tells in {@code /proc}. Numbers are NaN where they cannot be known. */
final class Usage {

    private static final double TICKS_PER_SECOND = 100; // USER_HZ, the same on all common architectures
    // Positions in /proc/PID/stat, counted after the command's name.
    private static final int PARENT = 1;
    private static final int USER = 11;
    private static final int CHILDREN_SYSTEM = 14;

    private Usage() {}

    /** Returns the id of the server's first process, if the server runs on this machine. */
    static OptionalLong postmaster(Connection connection) throws SQLException {
        try (Statement statement = connection.createStatement();
                ResultSet row = statement.executeQuery("select pg_backend_pid()")) {
            row.next();
            long backend = row.getLong(1);
            Path command = Path.of("/proc/" + backend + "/comm");
            if (Files.isReadable(command) && Files.readString(command).startsWith("postgres")) {
                return OptionalLong.of(Long.parseLong(stat(backend)[PARENT]));
            }
        } catch (IOException e) {
            // another process, which has ended
        }
        return OptionalLong.empty();
    }

    /** Returns the CPU seconds of a process and its children, living and dead. */
    static double cpuOfTree(OptionalLong parent) {
        if (parent.isEmpty()) {
            return Double.NaN;
        }
        return ProcessHandle.of(parent.getAsLong()).stream()
                .flatMap(handle -> Stream.concat(Stream.of(handle), handle.descendants()))
                .mapToDouble(handle -> cpu(handle.pid()))
                .sum();
    }

    /** Returns the CPU seconds of processes. */
    static double cpuOf(List<ContenderProcess> processes) {
        return processes.stream().mapToDouble(process -> cpu(process.pid())).sum();
    }

    private static double cpu(long pid) {
        if (!Files.isDirectory(Path.of("/proc/self"))) {
            return Double.NaN;
        }
        try {
            String[] fields = stat(pid);
            long ticks = 0;
            for (int i = USER; i <= CHILDREN_SYSTEM; i++) {
                ticks += Long.parseLong(fields[i]);
            }
            return ticks / TICKS_PER_SECOND;
        } catch (IOException e) {
            return 0; // it has ended, and its parent counts it
        }
    }

    private static String[] stat(long pid) throws IOException {
        String line = Files.readString(Path.of("/proc/" + pid + "/stat"));
        return line.substring(line.lastIndexOf(')') + 2).split(" ");
    }

    /** Returns the megabytes that processes hold in memory. */
    static double residentMegabytes(List<ContenderProcess> processes) {
        return processes.stream()
                .mapToDouble(process -> residentMegabytes(process.pid()))
                .sum();
    }

    private static double residentMegabytes(long pid) {
        Path status = Path.of("/proc/" + pid + "/status");
        if (!Files.isReadable(status)) {
            return Double.NaN;
        }
        try {
            return Files.readAllLines(status).stream()
                    .filter(line -> line.startsWith("VmRSS:"))
                    .mapToDouble(line -> Double.parseDouble(line.replaceAll("[^0-9]", "")) / 1024)
                    .sum();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
