package dev.pgworker.dashboard.browser;

import java.util.Map;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import dev.pgworker.job.Job;

import static org.assertj.core.api.Assertions.assertThat;

/** Every page in both colour schemes, on wide and on narrow screens, without violations. */
class AccessibilityTest extends DashboardTest {

    @ParameterizedTest
    @ValueSource(
            strings = {
                "",
                "jobs",
                "jobs?state=failed",
                "jobs?key=nothing",
                "jobs/{failed}",
                "jobs/{ended}",
                "history",
                "queues",
                "tasks",
                "recurring",
                "workers",
                "maintenance",
                "nothing/here"
            })
    void hasNoViolations(String page) {
        Job failed = stock.failed("print_label");
        stock.reminder("ada");
        stock.retrying("print_label");
        stock.queued("invoices", 2);
        stock.heldBy("dead-worker");
        Job ended = shop.jobs().addJob("send_mail", Map.of("to", "ada"));
        browser.await(() -> !stock.exists(ended));

        browser.open(page.replace("{failed}", "" + failed.id()).replace("{ended}", "" + ended.id()));
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
    }

    @ParameterizedTest
    @ValueSource(strings = {"Add job", "?"})
    void neitherHaveDialogs(String button) {
        browser.open("jobs");
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
    }
}
