package dev.pgworker.dashboard.browser;

import java.util.List;
import java.util.Map;
import java.util.stream.Stream;

import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.openqa.selenium.Keys;

import dev.pgworker.job.Job;

import static org.assertj.core.api.Assertions.assertThat;

/** Every page in both colour schemes, on wide and on narrow screens, without violations. */
class AccessibilityTest extends DashboardTest {

    private static final List<String> PAGES = List.of(
            "",
            "jobs",
            "jobs?state=failed",
            "jobs?key=nothing",
            "jobs/{failed}",
            "jobs/{ended}",
            "jobs/{stepped}",
            "jobs/{flow}",
            "jobs/{large-flow}",
            "history?task=send_mail",
            "queues",
            "tasks",
            "recurring",
            "recurring/schedule?name=nightly-mail",
            "recurring/schedule?name=broken",
            "recurring/schedule?name=nothing",
            "limits",
            "limits/limit?name=mail",
            "limits/limit?name=nothing",
            "workers",
            "maintenance",
            "nothing/here");

    @TestFactory
    Stream<DynamicTest> noPageHasViolations() {
        Job failed = stock.failed("print_label");
        stock.reminder("ada");
        stock.retrying("print_label");
        stock.queued("invoices", 2);
        stock.heldBy("dead-worker");
        stock.schedules();
        stock.limited();
        Job stepped = stock.stepped();
        long flow = stock.flow(3);
        long largeFlow = stock.flow(60);
        Job ended = shop.jobs().addJob("send_mail", Map.of("to", "ada"));
        browser.await(() -> !stock.exists(ended));
        return PAGES.stream()
                .map(page -> page.replace("{failed}", "" + failed.id())
                        .replace("{ended}", "" + ended.id())
                        .replace("{stepped}", "" + stepped.id())
                        .replace("{flow}", "" + flow)
                        .replace("{large-flow}", "" + largeFlow))
                .map(page -> DynamicTest.dynamicTest("/" + page, () -> hasNoViolations(page)));
    }

    private void hasNoViolations(String page) {
        browser.prefer("light");
        browser.resize(1280, 900);
        browser.open(page);
        browser.await("main h1");
        browser.await(() -> browser.all("main .skeleton").isEmpty());

        for (int width : new int[] {1280, 375}) {
            browser.resize(width, 900);
            assertThat(browser.violations(null)).as("%s at %d", page, width).isEmpty();
            assertThat(browser.run(
                            "return document.documentElement.scrollWidth > document.documentElement.clientWidth"))
                    .as("something hangs over at %d", width)
                    .isEqualTo(false);
        }
        // Only colours differ, and they are the same at every width.
        browser.prefer("dark");
        assertThat(browser.violations("color-contrast")).as("%s, dark", page).isEmpty();
        // The browser itself tells of what does not exist.
        assertThat(browser.complaints()).allMatch(text -> page.contains("nothing") && text.contains("404"));
    }

    @ParameterizedTest
    @ValueSource(strings = {"Add job", "New schedule", "New limit", "?"})
    void neitherHaveDialogs(String button) {
        browser.open(Map.of("New schedule", "recurring", "New limit", "limits").getOrDefault(button, "jobs"));
        browser.await("main h1");
        if (button.equals("?")) {
            browser.keys("?");
        } else {
            browser.press("main", button);
        }
        browser.await("dialog");
        assertThat(browser.violations(null)).isEmpty();
        browser.prefer("dark");
        assertThat(browser.violations("color-contrast")).as("dark").isEmpty();
        browser.keys(Keys.ESCAPE);
        browser.await(() -> browser.all("dialog").isEmpty());
    }
}
