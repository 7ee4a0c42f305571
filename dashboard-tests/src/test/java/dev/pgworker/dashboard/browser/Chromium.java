package dev.pgworker.dashboard.browser;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;

import org.junit.jupiter.api.extension.ConditionEvaluationResult;
import org.junit.jupiter.api.extension.ExecutionCondition;
import org.junit.jupiter.api.extension.ExtensionContext;

/** The browser of the distribution and its driver. Where there is none, the tests that need one are skipped. */
final class Chromium implements ExecutionCondition {

    private static final List<String> PLACES = List.of("/usr/bin", "/usr/local/bin", "/snap/bin");
    private static final List<String> BROWSERS = List.of("chromium", "chromium-browser", "google-chrome");

    private static final Path SKIPPED = Path.of("target", "skipped.txt");
    private static final String REMEDY =
            "The dashboard's tests in a browser were skipped: there is no Chromium or no chromedriver in "
                    + String.join(", ", PLACES)
                    + ". Install both, on Debian with apt-get install chromium chromium-driver.";

    @Override
    public ConditionEvaluationResult evaluateExecutionCondition(ExtensionContext context) {
        try {
            if (browser().isPresent() && driver().isPresent()) {
                Files.deleteIfExists(SKIPPED);
                return ConditionEvaluationResult.enabled("There is a browser");
            }
            // The build shows it at its end.
            Files.writeString(SKIPPED, REMEDY);
            return ConditionEvaluationResult.disabled(REMEDY);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    static Optional<Path> browser() {
        return BROWSERS.stream().flatMap(Chromium::find).findFirst();
    }

    static Optional<Path> driver() {
        return find("chromedriver").findFirst();
    }

    private static Stream<Path> find(String name) {
        return PLACES.stream().map(place -> Path.of(place, name)).filter(Files::isExecutable);
    }
}
