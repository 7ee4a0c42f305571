package dev.pgworker.guide;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import java.util.stream.Stream;

import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import dev.pgworker.guide.GuideStyle.Rule;

import static org.assertj.core.api.Assertions.assertThat;

/** README, guide, samples, public Javadoc and messages are written by the rules of {@link GuideStyle}. */
class GuideStyleTest {

    private static final Path ROOT = root();

    /** Has figures, each with the machine on which it was measured. */
    private static final String FIGURES = "docs/performance.md";

    private static final Pattern PUBLIC_TYPE = Pattern.compile("^public ", Pattern.MULTILINE);
    private static final Pattern ALL_PUBLIC =
            Pattern.compile("^public (?:sealed )?(?:interface|enum|@interface|record)", Pattern.MULTILINE);

    /** A comment, annotations, and the line of the declaration. */
    private static final Pattern JAVADOC =
            Pattern.compile("/\\*\\*((?:(?!\\*/).)*)\\*/\\s*(?:@\\w+(?:\\([^)]*\\))?\\s+)*([^\\n]*)", Pattern.DOTALL);

    private static final Pattern COMMENT = Pattern.compile("/\\*.*?\\*/", Pattern.DOTALL);
    /** Line comments that follow each other are one. */
    private static final Pattern COMMENT_OR_LINES =
            Pattern.compile("/\\*.*?\\*/|(?:(?://|--)[^\\n]*\\n\\s*)+", Pattern.DOTALL);

    private static final Pattern TEXT = Pattern.compile("\"((?:[^\"\\\\\\n]|\\\\.)*)\"");

    private static Path root() {
        Path directory = Path.of("").toAbsolutePath();
        while (!Files.exists(directory.resolve("CONTRIBUTING.md"))) {
            directory = Objects.requireNonNull(directory.getParent());
        }
        return directory;
    }

    @TestFactory
    Stream<DynamicTest> pagesAreInPlainEnglish() throws IOException {
        try (Stream<Path> top = Files.list(ROOT);
                Stream<Path> docs = Files.list(ROOT.resolve("docs"));
                Stream<Path> samples = Files.list(ROOT.resolve("samples"))) {
            return Stream.of(
                            top,
                            docs,
                            samples.map(sample -> sample.resolve("README.md")).filter(Files::exists))
                    .flatMap(pages -> pages)
                    .filter(page -> page.toString().endsWith(".md"))
                    .map(page -> ROOT.relativize(page).toString().replace('\\', '/'))
                    .sorted()
                    .toList()
                    .stream()
                    .map(page -> DynamicTest.dynamicTest(page, () -> check(page)));
        }
    }

    private static void check(String page) {
        List<String> problems = GuideStyle.problemsOfPage(read(ROOT.resolve(page)), page.equals(FIGURES));
        assertThat(problems).as(page).isEmpty();
    }

    @Test
    void firstSentencesOfPublicJavadocAreInPlainEnglish() throws IOException {
        List<String> problems = new ArrayList<>();
        for (Path file : sources()) {
            String source = read(file);
            if (!file.toString().contains("internal")
                    && PUBLIC_TYPE.matcher(source).find()) {
                boolean all = ALL_PUBLIC.matcher(source).find();
                for (MatchResult javadoc : JAVADOC.matcher(source).results().toList()) {
                    String declaration = javadoc.group(2);
                    if (declaration.matches("(?:public|protected|package) .*")
                            || (all && !declaration.matches("(?:private|static final) .*"))) {
                        GuideStyle.problemsOfJavadoc(javadoc.group(1))
                                .forEach(problem -> problems.add(file.getFileName() + ": " + problem));
                    }
                }
            }
        }
        assertThat(problems).isEmpty();
    }

    @Test
    void messagesAreInPlainEnglish() throws IOException {
        List<String> problems = new ArrayList<>();
        for (Path file : sources()) {
            String code = COMMENT.matcher(read(file)).replaceAll("").replaceAll("\"\\s*\\+\\s*\"", "");
            for (MatchResult text : TEXT.matcher(code).results().toList()) {
                // Fewer words are names, keys and patterns.
                if (text.group(1).split(" ", -1).length > 2) {
                    GuideStyle.problemsOfText(text.group(1))
                            .forEach(problem -> problems.add(file.getFileName() + ": " + problem));
                }
            }
        }
        assertThat(problems).isEmpty();
    }

    @Test
    void commentsOfTheCoreAreInPlainEnglish() {
        List<String> problems = files(ROOT.resolve("worker-core/src/main"), ".*\\.(?:java|sql)")
                .flatMap(file -> COMMENT_OR_LINES
                        .matcher(read(file))
                        .results()
                        .flatMap(comment -> GuideStyle.problemsOfComment(comment.group()).stream())
                        .map(problem -> file.getFileName() + ": " + problem))
                .toList();
        assertThat(problems).isEmpty();
    }

    private static List<Path> sources() throws IOException {
        try (Stream<Path> modules = Files.list(ROOT)) {
            return modules.map(module -> module.resolve("src/main/java"))
                    .filter(sources -> sources.getName(sources.getNameCount() - 4)
                                    .toString()
                                    .startsWith("worker-")
                            && Files.isDirectory(sources))
                    .flatMap(directory -> files(directory, ".*\\.java"))
                    .toList();
        }
    }

    private static Stream<Path> files(Path directory, String names) {
        try (Stream<Path> files = Files.walk(directory)) {
            return files.filter(file -> file.toString().matches(names)).toList().stream();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** Each rule finds what it is for. */
    @ParameterizedTest
    @CsvSource(delimiter = '|', textBlock = """
                    startup | A wrong value stops the start.
                    told | Workers are told at the commit.
                    tell | The log tells the reason.
                    say | The message says which one.
                    persons | Whoever adds a job waits.
                    whose | Use a table of yours.
                    catch up | It makes up for missed runs.
                    create | It makes a schedule.
                    stands in | The name stands in the log.
                    example | A trigger, for instance, does that.
                    continue | The job goes on.
                    no longer | It does not run any more.
                    at most | It waits for ten seconds at most.
                    idioms | The worker waits in vain.
                    do without | It does without a lock.
                    listener | This is the connection that listens.
                    marketing | Simply add it.
                    riddle | What is wrong fails.
                    figures | It runs 5,000 jobs/s.
                    emoji | Done \u2705
                    25 | One two three four five six seven eight nine ten one two three four five six seven eight nine ten one two three four five six.
                    """)
    void eachRuleFindsWhatItIsFor(String rule, String sentence) {
        assertThat(GuideStyle.problemsOfPage("# Page\n\n" + sentence + "\n", false))
                .singleElement()
                .asString()
                .contains(rule);
    }

    @Test
    void everyRuleHasAnExample() {
        assertThat(GuideStyle.RULES).hasSize(20).extracting(Rule::name).containsAll(GuideStyle.IN_COMMENTS);
    }

    @Test
    void commentsAreReadOverTheirLines() {
        assertThat(GuideStyle.problemsOfComment("// The job goes\n    // on.\n"))
                .hasSize(1);
        assertThat(GuideStyle.problemsOfComment("/**\n * The job goes\n * on.\n */"))
                .hasSize(1);
        assertThat(GuideStyle.problemsOfComment("-- It waits for ten seconds at most.\n"))
                .isEmpty();
    }

    @Test
    void codeMarksAndAddressesAreNoSentences() {
        assertThat(GuideStyle.problemsOfPage("""
                        # Page

                        <!-- absent: Somebody --> A `tells` is [code](somebody-says.md).

                            nobody says this

                        ```sh
                        echo somebody
                        ```

                        | A | B |
                        |---|---|
                        | one | two |
                        """, false)).isEmpty();
        assertThat(GuideStyle.problemsOfPage("| A | |\n|---|---|\n", false)).hasSize(1);
    }

    private static String read(Path file) {
        try {
            return Files.readString(file);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
