package dev.pgworker.schema;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.Pattern;
import java.util.stream.Stream;

import org.junit.jupiter.api.Test;

import static org.assertj.core.api.Assertions.assertThat;

/** How the migrations are written. */
class MigrationTextTest {

    /** A comment, a name, a literal with escapes, or a plain one. */
    private static final Pattern TOKEN =
            Pattern.compile("--[^\n]*|\"[^\"]*\"|[eE]'(?:[^'\\\\]|\\\\.|'')*'|(?<plain>'(?:[^']|'')*')");

    private static final Pattern EQUALS_NULL =
            Pattern.compile("(?i)\\b(?:when|where|and|or|on|if) [\\w.]+ (?:=|<>) null\\b");

    /** It would mean something else where standard_conforming_strings is off, and be warned of. */
    @Test
    void noPlainLiteralHasABackslash() throws IOException {
        for (Path file : files()) {
            assertThat(TOKEN.matcher(Files.readString(file))
                            .results()
                            .map(token -> token.group(1))
                            .filter(plain -> plain != null && plain.contains("\\")))
                    .as(file.toString())
                    .isEmpty();
        }
    }

    /** It would mean something else where transform_null_equals is on. */
    @Test
    void nothingIsComparedWithALiteralNull() throws IOException {
        for (Path file : files()) {
            assertThat(EQUALS_NULL.matcher(Files.readString(file)).results().map(found -> found.group()))
                    .as(file.toString())
                    .isEmpty();
        }
    }

    private static List<Path> files() throws IOException {
        try (Stream<Path> files = Files.list(Path.of("src/main/resources", SchemaMigrator.MIGRATIONS))) {
            List<Path> all = files.toList();
            assertThat(all).hasSizeGreaterThan(10);
            return all;
        }
    }
}
