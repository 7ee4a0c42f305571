package dev.pgworker.autoconfigure;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.regex.MatchResult;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;

import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;
import org.springframework.beans.factory.config.YamlPropertiesFactoryBean;
import org.springframework.boot.context.properties.bind.DataObjectPropertyName;
import org.springframework.core.io.ByteArrayResource;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

import dev.pgworker.event.WorkerEvent;

import static org.assertj.core.api.Assertions.assertThat;

/** README and guide show what exists. */
class DocumentationTest {

    private static final Path ROOT = root();
    private static final Pattern CODE =
            Pattern.compile("```(?:java|kotlin)\\R(?!repositories|dependencies|plugins)(.*?)```", Pattern.DOTALL);
    private static final Pattern YAML = Pattern.compile("```yaml\\R(.*?)```", Pattern.DOTALL);
    private static final Pattern LINK = Pattern.compile("\\]\\((?!https?:)([^)#]*)(?:#([^)]+))?\\)");

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
    Stream<DynamicTest> codeStandsInASampleOrTest() throws IOException {
        String sources = sources();
        return pages().stream()
                .flatMap(page -> CODE.matcher(read(page))
                        .results()
                        .map(match -> DynamicTest.dynamicTest(
                                ROOT.relativize(page) + ": "
                                        + match.group(1)
                                                .strip()
                                                .lines()
                                                .findFirst()
                                                .orElse(""),
                                () -> standsIn(sources, match.group(1)))));
    }

    /** A page has the imports of all its snippets in one of them, so they need not stand together anywhere. */
    private static void standsIn(String sources, String snippet) {
        Map<Boolean, List<String>> lines =
                snippet.lines().collect(Collectors.partitioningBy(line -> line.startsWith("import ")));
        assertThat(Objects.requireNonNull(lines.get(true)))
                .as("imports found in samples and tests")
                .allMatch(line -> sources.contains(normalize(line)));
        assertThat(sources.contains(normalize(String.join("\n", Objects.requireNonNull(lines.get(false))))))
                .as("found in a sample or test: " + snippet)
                .isTrue();
    }

    @Test
    void linksLeadSomewhere() throws IOException {
        for (Path page : pages()) {
            LINK.matcher(read(page)).results().forEach(link -> {
                Path target = link.group(1).isEmpty() ? page : page.resolveSibling(link.group(1));
                assertThat(target).as("link in " + page.getFileName()).exists();
                if (link.group(2) != null) {
                    assertThat(anchors(target))
                            .as("link in " + page.getFileName() + " to " + link.group(1))
                            .contains(link.group(2));
                }
            });
        }
    }

    private static Set<String> anchors(Path page) {
        return Pattern.compile("^#+ (.+)$", Pattern.MULTILINE)
                .matcher(read(page))
                .results()
                .map(heading -> heading.group(1)
                        .toLowerCase(Locale.ROOT)
                        .replaceAll("[^\\p{L}\\p{N} _-]", "")
                        .replace(' ', '-'))
                .collect(Collectors.toSet());
    }

    /** Lines of the log, and the first cells of tables that begin with one, are the messages of the code. */
    @Test
    void theTroubleshootingPageQuotesMessagesAsTheyAre() throws IOException {
        String messages;
        try (Stream<Path> core = Files.walk(ROOT.resolve("worker-core/src/main"));
                Stream<Path> boot = Files.walk(ROOT.resolve("worker-spring-boot-autoconfigure/src/main"))) {
            messages = Stream.concat(core, boot)
                    .filter(file -> file.toString().matches(".*\\.(java|sql)"))
                    .map(file -> read(file).replaceAll("\"\\s*\\+\\s*\"", "").replace("\\\"", "\""))
                    .collect(Collectors.joining("\n"));
        }
        List<String> quoted = Pattern.compile(
                        "```text\\R(.*?)```|^\\| `([^`]*[A-Za-z]+ [a-z]+ [^`]*)` \\|",
                        Pattern.DOTALL | Pattern.MULTILINE)
                .matcher(read(ROOT.resolve("docs/troubleshooting.md")))
                .results()
                .map(match -> match.group(1) == null ? match.group(2) : match.group(1))
                .flatMap(String::lines)
                .flatMap(line -> Stream.of(line.split("\\.{3}", -1)))
                .map(part -> part.replaceAll("^\\W+|\\W+$", ""))
                .filter(part -> part.length() > 3)
                .toList();

        assertThat(quoted).hasSizeGreaterThan(40).allMatch(messages::contains);
    }

    @Test
    void yamlNamesPropertiesThatExist() throws IOException {
        Set<String> known = StreamSupport.stream(metadata().spliterator(), false)
                .map(property -> property.path("name").asString())
                .collect(Collectors.toSet());
        // Those of another module, whose test compares them with its metadata.
        Pattern.compile("^\\| `(pgworker\\.dashboard\\.[a-z-]+)`", Pattern.MULTILINE)
                .matcher(read(ROOT.resolve("docs/properties.md")))
                .results()
                .forEach(row -> known.add(row.group(1)));
        // Metadata does not have what the values of a map consist of.
        Stream.of(WorkerProperties.LimitProperties.class.getRecordComponents())
                .map(component -> DataObjectPropertyName.toDashedForm(component.getName()))
                .forEach(property -> known.add("pgworker.limits.*." + property));
        for (Path page : pages()) {
            for (String yaml : YAML.matcher(read(page))
                    .results()
                    .map(match -> match.group(1))
                    .toList()) {
                YamlPropertiesFactoryBean properties = new YamlPropertiesFactoryBean();
                properties.setResources(new ByteArrayResource(yaml.getBytes(StandardCharsets.UTF_8)));
                assertThat(Objects.requireNonNull(properties.getObject()).stringPropertyNames())
                        .as("properties in " + page.getFileName())
                        .allMatch(name -> !name.startsWith("pgworker.")
                                || known.contains(name.replaceAll("\\[\\d+]", "")
                                        .replaceFirst("^pgworker\\.instances\\.[^.]+", "pgworker")
                                        .replaceFirst("^pgworker\\.limits\\.[^.]+", "pgworker.limits.*")
                                        .replaceFirst("^pgworker\\.task-defaults[.\\[].+", "pgworker.task-defaults")));
            }
        }
    }

    @Test
    void theReferenceHasEveryPropertyAsItsMetadataSays() throws IOException {
        Path page = ROOT.resolve("docs/properties.md");
        String tables = PropertiesPage.tables(metadata());
        String text = read(page);
        if (Boolean.getBoolean("pgworker.write-docs")) {
            Files.writeString(page, PropertiesPage.replace(text, tables));
        }

        assertThat(PropertiesPage.tablesOf(read(page)))
                .as("docs/properties.md; -Dpgworker.write-docs=true writes it")
                .isEqualTo(tables);
    }

    @Test
    void contributorsSeeEveryModuleWithItsDescription() throws IOException {
        String modules = Pattern.compile("<module>([^</]+)</module>")
                .matcher(read(ROOT.resolve("pom.xml")))
                .results()
                .map(module -> "| `" + module.group(1) + "` | " + description(module.group(1)) + " |\n")
                .collect(Collectors.joining("", "\n| Module | Contents |\n|---|---|\n", "\n"));
        Path page = ROOT.resolve("CONTRIBUTING.md");
        Pattern table = Pattern.compile("(?s)(?<=<!-- modules -->\n).*(?=<!-- /modules -->)");
        if (Boolean.getBoolean("pgworker.write-docs")) {
            Files.writeString(page, table.matcher(read(page)).replaceFirst(Matcher.quoteReplacement(modules)));
        }

        assertThat(table.matcher(read(page)).results().map(MatchResult::group))
                .as("CONTRIBUTING.md; -Dpgworker.write-docs=true writes it")
                .containsExactly(modules);
    }

    private static String description(String module) {
        Matcher description =
                Pattern.compile("<description>(.*?)</description>").matcher(read(ROOT.resolve(module + "/pom.xml")));
        assertThat(description.find()).as("description of " + module).isTrue();
        return description.group(1);
    }

    @Test
    void theMostCommonPropertiesHaveTheirDefaults() throws IOException {
        Map<String, JsonNode> known = StreamSupport.stream(metadata().spliterator(), false)
                .collect(Collectors.toMap(property -> property.path("name").asString(), property -> property));
        String page = read(ROOT.resolve("docs/properties.md"));
        List<MatchResult> rows = Pattern.compile("^\\| `([a-z.-]+)`[^|]*\\| ([^|]*) \\|", Pattern.MULTILINE)
                .matcher(page.substring(0, page.indexOf("<!-- properties -->")))
                .results()
                .toList();

        assertThat(rows).isNotEmpty();
        for (MatchResult row : rows) {
            assertThat(known).as("properties in the first table").containsKey(row.group(1));
            JsonNode property = Objects.requireNonNull(known.get(row.group(1)));
            if (property.has("defaultValue")) {
                assertThat(row.group(2))
                        .as(row.group(1))
                        .isEqualTo("`" + property.path("defaultValue").asString() + "`");
            }
        }
    }

    private static JsonNode metadata() throws IOException {
        try (InputStream metadata =
                DocumentationTest.class.getResourceAsStream("/META-INF/spring-configuration-metadata.json")) {
            return new JsonMapper().readTree(metadata).path("properties");
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

    private static String sources() throws IOException {
        try (Stream<Path> samples = Files.walk(ROOT.resolve("samples"));
                Stream<Path> tests = Files.walk(ROOT.resolve("worker-spring-boot-autoconfigure/src/test"));
                Stream<Path> kit = Files.walk(ROOT.resolve("worker-test/src/test"));
                Stream<Path> dashboard = Files.walk(ROOT.resolve("worker-dashboard/src"));
                Stream<Path> peers = Files.walk(ROOT.resolve("benchmarks/src/test"))) {
            return Stream.of(samples, tests, kit, dashboard, peers)
                    .flatMap(files -> files)
                    .filter(file -> file.toString().matches(".*\\.(java|kt)"))
                    .map(file -> normalize(read(file)))
                    .collect(Collectors.joining("\n"));
        }
    }

    /** A class of the guide has a file of its own, and is nested in a test. */
    private static String normalize(String text) {
        return text.replaceAll("\\bstatic (?=(?:final )?(?:class|interface|record|enum) )", "")
                .replaceAll("\\s+", "");
    }

    private static String read(Path file) {
        try {
            return Files.readString(file);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
