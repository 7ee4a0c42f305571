package dev.pgworker;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

import static org.assertj.core.api.Assertions.assertThat;

/** docs/architecture.md names what is there: packages, threads, classes and files, and each term of the glossary once. */
@Tag("any-postgres")
class ArchitecturePageTest {

    private static final Path ROOT = Path.of("..");

    /** Classes of others that the page names. */
    private static final Set<String> OTHERS =
            Set.of("JdbcClient", "TaskScheduler", "ScheduledTaskRegistrar", "Trigger");

    private final String page = read(ROOT.resolve("docs/architecture.md"));

    @Test
    void everyLayerIsInTheTable() {
        Set<String> named = new TreeSet<>(cells(section("Layers"), 1));

        assertThat(named).isEqualTo(new TreeSet<>(ArchitectureTest.LAYERS.keySet()));
    }

    @Test
    void everyThreadIsInTheTable() throws IOException {
        Pattern thread = Pattern.compile("\"(worker-[a-z0-9-]+)\"");
        Set<String> started = new TreeSet<>();
        for (Path file : sources("worker-core/src/main")) {
            thread.matcher(read(file)).results().map(result -> result.group(1)).forEach(started::add);
        }
        // With a number behind it.
        started.remove("worker-direct-");
        started.remove("worker-job-");
        started.remove("worker-schedule-");
        started.addAll(List.of("worker-direct-1", "worker-direct-2", "worker-job-1", "worker-schedule-1"));

        assertThat(new TreeSet<>(cells(section("Threads and who owns what"), 1)))
                .isEqualTo(started);
    }

    @Test
    void everyClassThatIsNamedIsThere() throws IOException {
        Set<String> classes = new HashSet<>();
        for (Path file : sources(".")) {
            String name = file.getFileName().toString();
            classes.add(name.substring(0, name.length() - ".java".length()));
        }

        assertThat(code(page))
                .filteredOn(name -> name.matches("[A-Z][a-z]\\w+(\\.\\w+)?") && !OTHERS.contains(name))
                .isNotEmpty()
                .allSatisfy(name -> assertThat(classes).contains(name.split("\\.")[0]));
    }

    /** In a sequence diagram it ends the statement, and what follows is no statement. */
    @Test
    void noDiagramHasASemicolon() {
        List<String> diagrams = Pattern.compile("```mermaid\n(.*?)```", Pattern.DOTALL)
                .matcher(page)
                .results()
                .map(result -> result.group(1))
                .toList();

        assertThat(diagrams)
                .isNotEmpty()
                .allSatisfy(diagram -> assertThat(diagram).doesNotContain(";"));
    }

    @Test
    void everyFunctionThatIsNamedIsThere() throws IOException {
        String schema;
        try (Stream<Path> files =
                Files.list(ROOT.resolve("worker-core/src/main/resources/dev/pgworker/schema/migration"))) {
            schema = files.map(ArchitecturePageTest::read).collect(Collectors.joining());
        }

        assertThat(code(page))
                .filteredOn(name -> name.matches("pgworker_[a-z_]*[a-z]"))
                .isNotEmpty()
                .allSatisfy(name -> assertThat(schema).contains(name + "("));
    }

    @Test
    void everyChapterIsListedAndThere() {
        Set<String> listed = Pattern.compile("^- \\[(.+?)]\\(#", Pattern.MULTILINE)
                .matcher(page)
                .results()
                .map(result -> result.group(1))
                .collect(Collectors.toCollection(TreeSet::new));
        Set<String> there = Pattern.compile("^## (.+)$", Pattern.MULTILINE)
                .matcher(page)
                .results()
                .map(result -> result.group(1))
                .collect(Collectors.toCollection(TreeSet::new));

        assertThat(listed).isEqualTo(there).isNotEmpty();
    }

    @Test
    void theGlossaryListsEachTermOnceInOrder() {
        List<String> terms = Pattern.compile("^\\| ([a-z][a-z -]+) \\|", Pattern.MULTILINE)
                .matcher(section("Glossary"))
                .results()
                .map(result -> result.group(1))
                .toList();

        assertThat(terms).hasSizeGreaterThan(20).isSorted().doesNotHaveDuplicates();
    }

    private String section(String title) {
        int start = page.indexOf("\n## " + title + "\n");
        assertThat(start).as("chapter %s", title).isPositive();
        int end = page.indexOf("\n## ", start + 1);
        return page.substring(start, end < 0 ? page.length() : end);
    }

    /** Returns what stands as code in a column of the tables of a text. */
    private static List<String> cells(String text, int column) {
        List<String> cells = new ArrayList<>();
        for (String line : text.split("\n")) {
            if (line.startsWith("| `")) {
                cells.addAll(code(line.split("\\|")[column]));
            }
        }
        return cells;
    }

    private static List<String> code(String text) {
        return Pattern.compile("`([^`\n]+)`")
                .matcher(text)
                .results()
                .map((MatchResult result) -> result.group(1))
                .toList();
    }

    private static List<Path> sources(String below) throws IOException {
        try (Stream<Path> files = Files.walk(ROOT.resolve(below))) {
            return files.filter(file -> file.toString().endsWith(".java"))
                    .filter(file -> !file.toString().contains("/target/"))
                    .toList();
        }
    }

    private static String read(Path file) {
        try {
            return Files.readString(file);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
