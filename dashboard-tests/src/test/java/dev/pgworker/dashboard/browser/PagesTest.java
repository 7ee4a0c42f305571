package dev.pgworker.dashboard.browser;

import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.openqa.selenium.WebElement;

import dev.pgworker.job.Job;

import static org.assertj.core.api.Assertions.assertThat;

/** Every page shows what there is. */
class PagesTest extends DashboardTest {

    @Test
    void theOverviewTellsStatesWorkersAndWhatNeedsAttention() {
        stock.label(1);
        stock.reminder("ada");
        stock.retrying("charge_card");
        stock.failed("charge_card");

        browser.open("");

        browser.awaitText("main .tiles", "Failed");
        browser.awaitText(".attention", "failed permanently");
        browser.awaitText("main", "Throughput");
        browser.awaitText("main", "Running now");
        browser.awaitText(".connection", "Live");
        assertThat(browser.find("main .tile.is-failed .tile-number").getText()).isEqualTo("1");
        assertThat(browser.find("main .tile.is-retrying .tile-number").getText())
                .isEqualTo("1");
        assertThat(browser.find("main .tile.is-scheduled .tile-number").getText())
                .isEqualTo("1");
        assertThat(browser.all("main canvas")).isNotEmpty();

        browser.click("main .tile.is-failed");
        browser.awaitText("main table", "charge_card");
        assertThat(browser.address()).isEqualTo("jobs?state=failed");
    }

    /** What happens shows by itself. */
    @Test
    void theOverviewIsLive() {
        browser.open("");
        browser.awaitText(".connection", "Live");
        browser.awaitText("main .tile.is-scheduled", "Scheduled");
        browser.run("window.notReloaded = true");

        stock.reminder("grace");

        browser.await(() ->
                browser.find("main .tile.is-scheduled .tile-number").getText().equals("1"));
        assertThat(browser.run("return window.notReloaded")).isEqualTo(true);
    }

    @Test
    void aRunningJobShowsItsProgress() {
        Shop.Handlers.mayEnd = new CountDownLatch(1);
        Job job = shop.jobs().addJob("import_catalog", Map.of("progress", "page 3 of acme.csv"));
        try {
            browser.open("jobs/" + job.id());
            browser.awaitText("main .situation", "page 3 of acme.csv");
            browser.awaitText("main .situation", "3 / 10");
            browser.awaitText("main h1", "running");

            browser.open("");
            browser.awaitText("main #running ~ *, main section[aria-labelledby=running]", "page 3 of acme.csv");
        } finally {
            Shop.Handlers.mayEnd.countDown();
        }
        browser.open("jobs/" + job.id());
        browser.awaitText("main h1", "succeeded");
        browser.awaitText("main .timeline", "Result");
        browser.awaitText("main .timeline", "acme.csv");
    }

    @Test
    void jobsAreFilteredSortedAndPaged() {
        for (int i = 0; i < 60; i++) {
            stock.label(i);
        }
        Job reminder = stock.reminder("ada");
        Job failed = stock.failed("charge_card");

        browser.open("jobs");
        browser.await(() -> rows().size() == 50);
        assertThat(rows().get(0)).isEqualTo(String.valueOf(failed.id()));
        browser.press("main", "Next");
        browser.await(() -> rows().size() == 12);

        browser.load("jobs?state=scheduled");
        browser.await(() -> rows().equals(List.of(String.valueOf(reminder.id()))));
        browser.open("jobs?key=reminder%3Aada");
        browser.await(() -> rows().equals(List.of(String.valueOf(reminder.id()))));
        browser.open("jobs?flag=mail");
        browser.await(() -> rows().equals(List.of(String.valueOf(reminder.id()))));
        browser.open("jobs?search=SO-10481");
        browser.await(() -> rows().equals(List.of(String.valueOf(failed.id()))));
        browser.open("jobs?task=print_label&sort=oldest");
        browser.await(() -> rows().size() == 50);
        assertThat(rows()).isSortedAccordingTo(java.util.Comparator.comparingLong(Long::parseLong));

        browser.open("jobs");
        browser.type("main input[type=search]", "reminder:ada");
        browser.keys(org.openqa.selenium.Keys.ENTER);
        browser.await(() -> rows().equals(List.of(String.valueOf(reminder.id()))));
        assertThat(browser.address()).isEqualTo("jobs?search=reminder%3Aada");
        browser.back();
        browser.await(() -> rows().size() == 50);
    }

    @Test
    void aJobTellsWhyItFailed() {
        Job job = stock.failed("charge_card");

        browser.open("jobs/" + job.id());

        browser.awaitText("main .error-message", "The payment gateway did not answer for order SO-10481");
        assertThat(browser.all("main .frame.own").stream().map(WebElement::getText))
                .anyMatch(text -> text.contains("com.example.shop.PaymentGateway.read(PaymentGateway.java:41)"));
        assertThat(browser.text("main .json")).contains("\"order\"", "\"SO-10481\"", "92.4");
        assertThat(browser.text("main aside")).contains("25 of 25");
    }

    /** The reason is what a list of failed jobs is read for. */
    @Test
    void theFailedListSaysWhy() {
        Job job = stock.failed("charge_card");

        browser.open("jobs?state=failed&sort=updated");

        browser.await(() -> browser.rows().equals(List.of(String.valueOf(job.id()))));
        assertThat(browser.text("main td.c-error"))
                .isEqualTo("The payment gateway did not answer for order SO-10481 (IllegalStateException)");
        assertThat(browser.find("main td.c-error").getSize().width).isGreaterThan(340);
        browser.resize(375, 900);
        browser.open("jobs/" + job.id());
        browser.await("main .frame.text");
        assertThat(browser.run("""
                        const frames = document.querySelector("main .frames").getBoundingClientRect();
                        return [...document.querySelectorAll("main .frame.text")].every(line => {
                          const text = document.createRange();
                          text.selectNodeContents(line);
                          return text.getBoundingClientRect().right <= frames.right;
                        })
                        """)).as("causes are wrapped").isEqualTo(true);
    }

    @Test
    void theErrorOfAJobThatGotAttemptsBackHasNoNumber() {
        Job job = stock.failed("print_label");
        browser.open("jobs/" + job.id());
        browser.awaitText("main section[aria-labelledby=error]", "attempt 25 of 25");

        browser.press("main", "Retry");

        browser.awaitText("main h1", "ready");
        browser.awaitNoText("main section[aria-labelledby=error]", "attempt");
    }

    @Test
    void aTimeWithoutEndIsNever() {
        Job job = stock.label(1);
        stock.change("update graphile_worker._private_jobs set run_at = 'infinity' where id = ?", job.id());
        browser.open("jobs?state=scheduled");
        browser.awaitText("main td.c-due", "never");
        stock.change("update graphile_worker._private_jobs set run_at = '12026-01-01 00:00Z' where id = ?", job.id());
        browser.press("main", "Refresh");
        browser.awaitText("main td.c-due", "year 12026");
    }

    @Test
    void theChosenTabIsInSight() {
        stock.failed("print_label", 3);
        browser.resize(375, 900);
        browser.load("jobs?state=failed");
        browser.awaitText("main .tabs [aria-current]", "3");
        browser.await(() -> Boolean.TRUE.equals(browser.run("""
                const tab = document.querySelector("main .tabs [aria-current]").getBoundingClientRect();
                const tabs = document.querySelector("main .tabs").getBoundingClientRect();
                return tab.left >= tabs.left - 1 && tab.right <= tabs.right + 1;
                """)));
    }

    @Test
    void aWorkerThatDoesNotExistIsSaidOnce() {
        browser.load("jobs?instance=nothing");
        browser.awaitText("main", "There is no worker instance nothing");
        assertThat(browser.all("main .notice")).isEmpty();
        browser.press("main", "reports");
        browser.await(() -> browser.address().equals("?instance=reports"));
        browser.awaitText("main .tiles", "Ready");
    }

    /** A browser has six connections for all of its windows, unless the server speaks HTTP/2. These are seven. */
    @Test
    @Tag("thorough")
    void manyWindowsAreLiveAtOnce() {
        String first = browser.tab();
        List<String> others = new java.util.ArrayList<>();
        try {
            for (int i = 0; i < 6; i++) {
                others.add(browser.newWindow());
                browser.load("");
                browser.awaitText("main .tiles", "Ready");
                browser.awaitText(".connection", "Live");
            }
        } finally {
            for (String other : others) {
                browser.goTo(other);
                browser.closeTab();
            }
            browser.goTo(first);
        }
    }

    @Test
    void aJobTellsWhatItWaitsFor() {
        List<Job> queued = stock.queued("invoices", 2);
        Job flagged = stock.flagged();
        Job later = stock.reminder("alan");

        for (Job job : List.of(queued.get(1), flagged, later)) {
            browser.open("jobs/" + job.id());
            browser.await("main .situation p");
        }
        browser.open("jobs/" + flagged.id());
        browser.awaitText("main .situation", "forbid");
    }

    @Test
    void theHistoryHasWhatEnded() {
        Job mail = shop.jobs().addJob("send_mail", Map.of("to", "ada@example.com"));

        browser.open("jobs/" + mail.id());
        browser.awaitText("main h1", "succeeded");
        browser.open("history?task=send_mail");
        browser.awaitText("main table", "ada@example.com");
        browser.open("history?outcome=failed");
        browser.awaitNoText("main", "ada@example.com");
    }

    @Test
    void queuesTasksWorkersAndScheduleAreListed() {
        stock.queued("invoices", 3);
        browser.open("queues");
        browser.awaitText("main table", "invoices");
        browser.awaitText("main table", "3");

        browser.open("tasks");
        browser.awaitText("main table", "number_invoice");
        browser.awaitText("main table", "send_mail");

        browser.open("workers");
        browser.awaitText("main", "this instance");

        browser.open("recurring");
        browser.awaitText("main table", "nightly-mail");
        browser.awaitText("main table", "04:00");
        browser.press("main", "nightly-mail");
        browser.awaitText("main table", "everybody");

        browser.open("maintenance");
        browser.awaitText("main", "Clean up");
        browser.awaitText("main", "Force unlock");
    }

    @Test
    void schedulesAreFilteredPagedAndTellWhatIsWrong() {
        stock.schedules();
        for (int i = 10; i < 70; i++) {
            shop.schedules().put(stock.yearly("tenant-" + i, "send_mail").build());
        }
        browser.open("recurring");
        browser.awaitText("main", "nightly-mail");
        browser.await(() -> rows().size() == 2 + 50);
        browser.press("main", "Next");
        browser.await(() -> rows().size() == 14);
        browser.open("recurring?prefix=tenant-1");
        browser.await(() -> rows().size() == 10);
        browser.open("recurring?show=paused");
        browser.await(() -> rows().equals(List.of("resting")));
        browser.open("recurring?task=sync_stock");
        browser.await(() -> rows().equals(List.of("stock")));
        browser.awaitText("main table", "1 hour after the end of the previous job");

        browser.open("");
        browser.click(".attention a[href*='broken']");
        browser.awaitText("main .notice.error", "The queue is too long");
    }

    @Test
    void aLimitTellsHowMuchOfItIsUsedAndByWhom() {
        stock.limited();
        browser.open("limits");
        browser.awaitText("main table tr[data-id=mail]", "1 running per tenant");
        browser.awaitNoText("main table tr[data-id=mail]", "is being put into effect");
        browser.click("main table tr[data-id=mail] .row-link");
        browser.awaitText("main table tr[data-id=acme]", "0 of 1");
        browser.awaitText("main table tr[data-id=acme] .c-waiting", "3");
        browser.awaitText("main table tr[data-id=bolt] .c-waiting", "1");
        browser.press("main aside", "limited_mail");
        browser.await(() -> rows().size() == 4);
        browser.click("main tr .row-link");
        browser.awaitText("main .situation", "limit");
    }

    @Test
    void anotherWorkerOfTheApplicationIsShown() {
        browser.open("workers");
        browser.await("select").click();
        browser.keys("reports", org.openqa.selenium.Keys.ENTER);
        browser.await(() -> browser.address().equals("workers?instance=reports"));
        browser.awaitText("main", "this instance");
    }

    @Test
    void coloursAreThoseOfTheSystemUntilOthersAreChosen() {
        browser.open("queues");
        assertThat(scheme()).isEqualTo("light rgb(251, 251, 252)");
        browser.prefer("dark");
        assertThat(scheme()).isEqualTo("dark rgb(16, 17, 20)");
        browser.open("tasks");
        assertThat(scheme()).startsWith("dark");

        browser.press("Colours: system");
        browser.await(() -> scheme().startsWith("light"));
        browser.open("queues");
        assertThat(scheme()).startsWith("light");
        browser.press("Colours: light");
        browser.await(() -> scheme().startsWith("dark"));
        browser.prefer("light");
        assertThat(scheme()).startsWith("dark");
        browser.press("Colours: dark");
        browser.await(() -> scheme().startsWith("light"));
    }

    private String scheme() {
        return (String)
                browser.run(
                        "return document.documentElement.dataset.theme + ' ' + getComputedStyle(document.body).backgroundColor");
    }

    @Test
    void whatDoesNotExistIsSaid() {
        browser.open("nothing/here");
        browser.awaitText("main h1", "");
        assertThat(browser.text("main")).isNotBlank();
        browser.open("jobs/9007199254740991");
        browser.awaitText("main", "There is no job #9007199254740991");
        // The browser itself tells of the 404.
        assertThat(browser.complaints()).allMatch(text -> text.contains("404"));
    }

    private List<String> rows() {
        return browser.rows();
    }
}
