package dev.pgworker.dashboard.browser;

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

    @Override
    public ConditionEvaluationResult evaluateExecutionCondition(ExtensionContext context) {
        return browser().isPresent() && driver().isPresent()
                ? ConditionEvaluationResult.enabled("There is a browser")
                : ConditionEvaluationResult.disabled("There is no Chromium or no chromedriver in " + PLACES
                        + ": install them, on Debian with apt-get install chromium chromium-driver");
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
