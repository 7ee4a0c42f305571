package dev.pgworker;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;

import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

import static org.assertj.core.api.Assertions.assertThat;

/**
 * A page that says "There is no ..." names what must not exist, in a mark such as {@code <!-- absent: Broker -->} in the same sentence: a word
 * of the code that would come with the feature. So the feature cannot be added while the page denies it.
 */
class GuideAbsenceTest {

    private static final Pattern DENIAL = Pattern.compile("There (?:is|are) no [^.|]*");
    private static final Pattern MARK = Pattern.compile("<!-- absent: (\\w+) -->");
    private static final Path ROOT = Path.of("..");

    private static final List<String> pages = new ArrayList<>();

    @BeforeAll
    static void read() throws IOException {
        pages.add(Files.readString(ROOT.resolve("README.md")));
        try (Stream<Path> files = Files.list(ROOT.resolve("docs"))) {
            for (Path file :
                    files.filter(file -> file.toString().endsWith(".md")).toList()) {
                pages.add(Files.readString(file));
            }
        }
        pages.replaceAll(page -> page.replaceAll("(?s)```.*?```", ""));
    }

    @Test
    void everyDenialIsMarked() {
        for (String page : pages) {
            assertThat(DENIAL.matcher(page).results())
                    .allSatisfy(denial -> assertThat(denial.group()).containsPattern(MARK));
        }
    }

    @Test
    void whatIsDeniedDoesNotExist() throws IOException {
        String code = code();
        List<String> denied = new ArrayList<>();
        for (String page : pages) {
            for (Matcher mark = MARK.matcher(page); mark.find(); ) {
                denied.add(mark.group(1));
            }
        }

        assertThat(denied)
                .isNotEmpty()
                .allSatisfy(word -> assertThat(code).doesNotContainPattern("\\b" + word + "\\b"));
    }

    private static String code() throws IOException {
        StringBuilder code = new StringBuilder();
        try (Stream<Path> modules = Files.list(ROOT)) {
            for (Path module : modules.filter(
                            module -> module.getFileName().toString().startsWith("worker-"))
                    .toList()) {
                Path sources = module.resolve("src/main");
                if (Files.isDirectory(sources)) {
                    try (Stream<Path> files = Files.walk(sources)) {
                        for (Path file : files.filter(file -> file.toString().matches(".*\\.(java|sql)"))
                                .toList()) {
                            code.append(Files.readString(file));
                        }
                    }
                }
            }
        }
        return code.toString();
    }
}
