package dev.pgworker.schema;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URISyntaxException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import java.util.UUID;
import java.util.stream.Stream;

import static org.assertj.core.api.Assertions.assertThat;

/** The migrations of a version that differs from this one, on the classpath. */
final class OtherVersion {

    private final Map<String, String> files = new TreeMap<>();

    OtherVersion() {
        try (Stream<Path> ours = Files.list(onClasspath(SchemaMigrator.MIGRATIONS))) {
            for (Path file : ours.toList()) {
                files.put(file.getFileName().toString(), Files.readString(file));
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static Path onClasspath(String directory) {
        try {
            return Path.of(Objects.requireNonNull(OtherVersion.class.getResource("/" + directory))
                    .toURI());
        } catch (URISyntaxException e) {
            throw new IllegalStateException(e);
        }
    }

    /** Adds a file. */
    OtherVersion with(String file, String text) {
        assertThat(files.put(file, text)).isNull();
        return this;
    }

    /** Changes what a file says. */
    OtherVersion with(String file, String ours, String theirs) {
        assertThat(files.get(file)).contains(ours);
        files.computeIfPresent(file, (name, text) -> text.replace(ours, theirs));
        return this;
    }

    /** Puts the files on the classpath, and returns the place. */
    String write() {
        String tests = "dev/pgworker/schema";
        String name = "version-" + UUID.randomUUID();
        try {
            // Where this class is, and not the classes that it tests, which have a directory of that name as well.
            Path root = Path.of(OtherVersion.class
                    .getProtectionDomain()
                    .getCodeSource()
                    .getLocation()
                    .toURI());
            Path directory = Files.createDirectories(root.resolve(tests).resolve(name));
            for (Map.Entry<String, String> file : files.entrySet()) {
                Files.writeString(directory.resolve(file.getKey()), file.getValue());
            }
        } catch (IOException | URISyntaxException e) {
            throw new IllegalStateException(e);
        }
        return tests + "/" + name;
    }
}
