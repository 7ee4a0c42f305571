package dev.pgworker.autoconfigure;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;

import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

import dev.pgworker.event.WorkerEvent;

import static org.assertj.core.api.Assertions.assertThat;

/** README and guide show what exists. */
class DocumentationTest {

    private static final Path ROOT = root();
    private static final Pattern JAVA = Pattern.compile("```java\\R(.*?)```", Pattern.DOTALL);
    private static final Pattern LINK = Pattern.compile("\\]\\((?!https?:)([^)#]+)");

    private static Path root() {
        Path directory = Path.of("").toAbsolutePath();
        while (!Files.exists(directory.resolve("CONTRIBUTING.md"))) {
            directory = Objects.requireNonNull(directory.getParent());
        }
        return directory;
    }

    private static List<Path> pages() throws IOException {
        try (Stream<Path> root = Files.list(ROOT);
                Stream<Path> docs = Files.list(ROOT.resolve("docs"))) {
            return Stream.concat(root, docs)
                    .filter(page -> page.toString().endsWith(".md"))
                    .toList();
        }
    }

    @TestFactory
    Stream<DynamicTest> javaStandsInASampleOrTest() throws IOException {
        String sources = sources();
        return pages().stream()
                .flatMap(page -> JAVA.matcher(read(page))
                        .results()
                        .map(match -> DynamicTest.dynamicTest(
                                ROOT.relativize(page) + ": "
                                        + match.group(1)
                                                .strip()
                                                .lines()
                                                .findFirst()
                                                .orElse(""),
                                () -> assertThat(sources.contains(normalize(match.group(1))))
                                        .as("found in a sample or test: " + match.group(1))
                                        .isTrue())));
    }

    @Test
    void linksLeadSomewhere() throws IOException {
        for (Path page : pages()) {
            LINK.matcher(read(page))
                    .results()
                    .forEach(link -> assertThat(page.resolveSibling(link.group(1)))
                            .as("link in " + page.getFileName())
                            .exists());
        }
    }

    @Test
    void theReadmeHasEveryPropertyWithItsDefault() throws IOException {
        String readme = read(ROOT.resolve("README.md"));
        JsonNode metadata = new JsonMapper()
                .readTree(getClass().getResourceAsStream("/META-INF/spring-configuration-metadata.json"));
        for (JsonNode property : metadata.path("properties")) {
            String name = property.path("name").asString();
            if (property.has("defaultValue")) {
                assertThat(readme)
                        .contains("| `" + name + "` | `"
                                + property.path("defaultValue").asString() + "` |");
            } else if (!name.matches(".*\\.(user|password)")) {
                assertThat(readme).contains("| `" + name + "`");
            }
        }
    }

    @Test
    void theGuideTablesEveryEvent() {
        Set<String> tabled = Pattern.compile("^\\| `([A-Z]\\w+)` \\|", Pattern.MULTILINE)
                .matcher(read(ROOT.resolve("docs/events.md")))
                .results()
                .map(match -> match.group(1))
                .collect(Collectors.toSet());
        assertThat(tabled)
                .isEqualTo(events(WorkerEvent.class).map(Class::getSimpleName).collect(Collectors.toSet()));
    }

    private static Stream<Class<?>> events(Class<?> type) {
        return type.isSealed()
                ? Stream.of(type.getPermittedSubclasses()).flatMap(DocumentationTest::events)
                : Stream.of(type);
    }

    @Test
    void theSlowTestsAreListed() throws IOException {
        Set<String> listed = Pattern.compile("`(\\w+Test)` \\| \\d+")
                .matcher(read(ROOT.resolve("CONTRIBUTING.md")))
                .results()
                .map(match -> match.group(1))
                .collect(Collectors.toSet());
        try (Stream<Path> tests = Files.walk(ROOT.resolve("worker-core/src/test"))) {
            assertThat(tests.filter(file -> file.toString().endsWith(".java"))
                            .filter(file -> read(file).contains("@Tag(\"slow\")"))
                            .map(file -> file.getFileName().toString().replace(".java", "")))
                    .containsExactlyInAnyOrderElementsOf(listed);
        }
    }

    private static String sources() throws IOException {
        try (Stream<Path> samples = Files.walk(ROOT.resolve("samples"));
                Stream<Path> tests = Files.walk(ROOT.resolve("worker-spring-boot-autoconfigure/src/test"))) {
            return Stream.concat(samples, tests)
                    .filter(file -> file.toString().endsWith(".java"))
                    .map(file -> normalize(read(file)))
                    .collect(Collectors.joining("\n"));
        }
    }

    private static String normalize(String text) {
        return text.replaceAll("\\s+", "");
    }

    private static String read(Path file) {
        try {
            return Files.readString(file);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
