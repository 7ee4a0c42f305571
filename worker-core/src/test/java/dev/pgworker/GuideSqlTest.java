package dev.pgworker;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.Statement;
import java.util.Objects;
import java.util.regex.Pattern;
import java.util.stream.Stream;

import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;
import org.junit.jupiter.api.extension.RegisterExtension;

import dev.pgworker.testing.TestSchema;

import static org.assertj.core.api.Assertions.assertThat;

/** The SQL of the guide's pages for operators works on the schema as it is installed. */
class GuideSqlTest {

    private static final Pattern SQL = Pattern.compile("```sql\\R(.*?)```", Pattern.DOTALL);

    /** The query of a scaler stands in the folded text of a manifest. */
    private static final Pattern QUERY = Pattern.compile("query: >-\\R(.*?)\\R {6}\\w", Pattern.DOTALL);

    @RegisterExtension
    final TestSchema db = new TestSchema();

    @TestFactory
    Stream<DynamicTest> sqlWorks() throws IOException {
        Path docs = docs();
        return Stream.of(
                        "adding-jobs.md",
                        "handlers.md",
                        "history.md",
                        "kubernetes.md",
                        "pausing.md",
                        "schedules.md",
                        "troubleshooting.md")
                .flatMap(page -> Stream.concat(texts(docs.resolve(page), SQL), texts(docs.resolve(page), QUERY))
                        .map(sql -> DynamicTest.dynamicTest(
                                page + ": " + sql.strip().lines().findFirst().orElse(""), () -> run(sql))));
    }

    private void run(String sql) throws Exception {
        try (Connection connection = db.dataSource().getConnection();
                Statement statement = connection.createStatement()) {
            connection.setAutoCommit(false);
            assertThat(statement.execute(
                            sql.replace("graphile_worker", db.schema().name())))
                    .isTrue();
            connection.rollback();
        }
    }

    private static Stream<String> texts(Path page, Pattern pattern) {
        try {
            return pattern.matcher(Files.readString(page)).results().map(match -> match.group(1)).toList().stream();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static Path docs() {
        Path directory = Path.of("").toAbsolutePath();
        while (!Files.exists(directory.resolve("docs/kubernetes.md"))) {
            directory = Objects.requireNonNull(directory.getParent());
        }
        return directory.resolve("docs");
    }
}
