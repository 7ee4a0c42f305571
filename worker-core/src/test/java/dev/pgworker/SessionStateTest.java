package dev.pgworker;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

import static org.assertj.core.api.Assertions.assertThat;

/**
 * Nothing of ours stays on a session, which a connection pooler may give to others: the sources contain no statement that sets up a
 * session, but where the session is known to be nobody else's.
 */
@Tag("any-postgres")
class SessionStateTest {

    private static final Pattern OF_THE_SESSION = Pattern.compile(
            "set_config\\([^)]*, *false\\)"
                    + "|\\bset session\\b|(?-i:\"set (?!local |transaction )[a-z_]+)"
                    + "|setTransactionIsolation\\(|setSchema\\(|setCatalog\\(|setClientInfo\\("
                    + "|pg_(try_)?advisory_lock(_shared)?\\("
                    + "|create (global |local )?temp(orary)? |\\bwith hold\\b|\"prepare |setPrepareThreshold\\("
                    + "|execute\\(\"listen ",
            Pattern.CASE_INSENSITIVE);

    /** Who makes sure that the session is nobody else's, or that the transaction which is pinned leaves nothing. */
    private static final Set<String> KNOWN = Set.of(
            "SessionLimits.java",
            "Pooler.java",
            "NotificationListener.java",
            "PinnedConnection.java",
            "InitializedDataSource.java");

    @Test
    void noSourceSetsUpASession() throws IOException {
        List<String> found = new ArrayList<>();
        Path root = Path.of("").toAbsolutePath().getParent();
        try (Stream<Path> files = Files.walk(root)) {
            for (Path file : files.filter(SessionStateTest::isOurs).toList()) {
                Matcher matcher =
                        OF_THE_SESSION.matcher(Files.readString(file).replaceAll("(?m)^ *(--|//|\\*|/\\*\\*).*$", ""));
                while (matcher.find()) {
                    found.add(root.relativize(file) + ": " + matcher.group());
                }
            }
        }
        assertThat(found).isEmpty();
    }

    private static boolean isOurs(Path file) {
        String path = file.toString().replace('\\', '/');
        return path.matches(".*/worker-[a-z-]+/src/main/.*\\.(java|sql)")
                && !KNOWN.contains(file.getFileName().toString());
    }

    @Test
    void theRuleFindsWhatItIsFor() {
        assertThat(Stream.of(
                        "set_config('lock_timeout', ?, false)",
                        "set_config(%L, %L, false)",
                        "set_config('pgworker.history_kept', 'x', false)",
                        "select pg_catalog.pg_try_advisory_lock(1)",
                        "connection.setTransactionIsolation(8)",
                        "statement.execute(\"set role x\")",
                        "create temporary table t"))
                .allMatch(text -> OF_THE_SESSION.matcher(text).find());
        assertThat(Stream.of(
                        "set_config('lock_timeout', ?, true)",
                        "pg_try_advisory_xact_lock(1)",
                        "\"set local lock_timeout = 1\""))
                .noneMatch(text -> OF_THE_SESSION.matcher(text).find());
    }
}
