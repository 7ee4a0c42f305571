package dev.pgworker.dashboard.browser;

import java.util.List;

import org.junit.jupiter.api.Test;
import org.openqa.selenium.Keys;

import dev.pgworker.job.Job;

import static org.assertj.core.api.Assertions.assertThat;

/** Without a mouse, and in two tabs. */
class KeyboardTest extends DashboardTest {

    @Test
    void aFailedJobIsFoundAndRunAgain() {
        Job job = stock.failed("print_label");
        browser.load("");
        browser.await("main .tiles");

        browser.tabTo("main .tile.is-failed");
        browser.keys(Keys.ENTER);
        browser.await(() -> browser.address().equals("jobs?state=failed"));
        browser.await("main tr[data-id]");
        browser.keys("j");
        browser.await(() -> hasFocus("main .row-link"));
        browser.keys(Keys.ENTER);
        browser.await(() -> browser.address().equals("jobs/" + job.id()));
        browser.await("main .error-view");
        browser.tabTo("main .page-actions .button.primary");
        browser.keys(Keys.SPACE);

        browser.awaitText("main h1", "ready");
        assertThat(stock.now(job).attempts()).isLessThan(25);
    }

    @Test
    void aDialogKeepsTheFocusAndGivesItBack() {
        Job job = stock.label(1);
        browser.load("jobs/" + job.id());
        browser.await("main .page-actions .menu");
        browser.tabTo("main .menu > button");
        browser.keys(Keys.ENTER);
        browser.await(() -> hasFocus("[role=menuitem]"));
        browser.keys(Keys.ARROW_DOWN, Keys.ARROW_DOWN, Keys.ENTER);
        browser.awaitText("dialog", "cannot be undone");
        for (int i = 0; i < 5; i++) {
            browser.keys(Keys.TAB);
            assertThat(hasFocus("dialog *") || hasFocus("body"))
                    .as("nothing behind the dialog has the focus")
                    .isTrue();
        }
        browser.keys(Keys.ESCAPE);
        browser.await(() -> browser.all("dialog").isEmpty());
        browser.await(() -> hasFocus("main .menu > button"));
        assertThat(stock.exists(job)).isTrue();
    }

    @Test
    void shortcutsLeadToEveryPage() {
        browser.load("");
        browser.await("main h1");
        for (List<String> shortcut : List.of(
                List.of("j", "jobs"),
                List.of("h", "history"),
                List.of("q", "queues"),
                List.of("t", "tasks"),
                List.of("r", "recurring"),
                List.of("l", "limits"),
                List.of("w", "workers"),
                List.of("m", "maintenance"))) {
            browser.keys("g", shortcut.get(0));
            browser.await(() -> browser.address().equals(shortcut.get(1)));
        }
        browser.keys("g", "j");
        browser.await("main input[type=search]");
        browser.keys("/");
        browser.await(() -> hasFocus("input[type=search]"));
    }

    /** What one of them does, the other one shows by itself. */
    @Test
    void twoTabsShowTheSame() {
        Job job = stock.failed("print_label");
        browser.load("jobs?state=failed");
        browser.await("main tr[data-id='" + job.id() + "']");
        String first = browser.tab();
        browser.newTab();
        try {
            browser.load("jobs/" + job.id());
            browser.press("main", "Retry");
            browser.awaitText("main h1", "ready");
        } finally {
            browser.closeTab();
            browser.goTo(first);
        }
        browser.awaitText("main tr[data-id='" + job.id() + "']", "ready");
    }

    private boolean hasFocus(String css) {
        return Boolean.TRUE.equals(browser.run("return document.activeElement.matches(arguments[0])", css));
    }
}
