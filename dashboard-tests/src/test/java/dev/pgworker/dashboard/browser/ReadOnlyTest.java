package dev.pgworker.dashboard.browser;

import org.junit.jupiter.api.Test;

import dev.pgworker.job.Job;
import dev.pgworker.testsupport.TestPostgres;

import static org.assertj.core.api.Assertions.assertThat;

/** As the dashboard is unless properties say otherwise: nothing can be changed, payloads are hidden, nothing is kept. */
class ReadOnlyTest extends DashboardTest {

    @Test
    void nothingCanBeChangedAndPayloadsAreHidden() {
        try (Shop careful = new Shop(
                TestPostgres.newDatabase("readonly"),
                "pgworker.dashboard.allow-actions=false",
                "pgworker.dashboard.payloads=hidden",
                "pgworker.history.enabled=false",
                "pgworker.statistics.enabled=false")) {
            Job job = new Stock(careful).failed("print_label");
            browser.use(careful.dashboard());

            browser.load("jobs/" + job.id());

            browser.awaitText("main", "Payloads are hidden");
            assertThat(browser.text("main")).doesNotContain("4242");
            browser.awaitText(".sidebar", "Read-only");
            browser.press("main", "Retry");
            assertThat(careful.queries().find(job.id()).orElseThrow().attempts())
                    .isEqualTo(25);
            browser.open("history");
            browser.awaitText("main", "pgworker.history.enabled=true");
            browser.open("");
            browser.awaitText("main", "pgworker.statistics.enabled=true");
            assertThat(browser.violations(null)).isEmpty();
            browser.checkQuiet();
            // Before the application goes away, of which the console would tell.
            browser.use(shop.dashboard());
            browser.load("");
        }
    }
}
