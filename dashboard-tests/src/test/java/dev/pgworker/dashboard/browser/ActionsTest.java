package dev.pgworker.dashboard.browser;

import java.time.Instant;
import java.util.List;
import java.util.Map;

import org.junit.jupiter.api.Test;
import org.openqa.selenium.Keys;

import dev.pgworker.job.Job;
import dev.pgworker.job.JobQuery;
import dev.pgworker.schedule.RecurringJob;

import static org.assertj.core.api.Assertions.assertThat;

/** Everything that can be done is done by pressing buttons, asks first where it destroys, and says what it did. */
class ActionsTest extends DashboardTest {

    @Test
    void aFailedJobRunsAgain() {
        Job job = stock.failed("print_label");
        browser.open("jobs/" + job.id());

        browser.press("main", "Retry");

        toast("");
        browser.awaitText("main h1", "ready");
        assertThat(stock.now(job).attempts()).isLessThan(stock.now(job).maxAttempts());
    }

    @Test
    void aJobIsRescheduled() {
        Job job = stock.label(1);
        browser.open("jobs/" + job.id());

        browser.press("main", "Reschedule …");
        browser.type("dialog input[type=number]", "-7");
        confirm();

        toast("");
        browser.await(() -> stock.now(job).priority() == -7);
        browser.awaitText("main aside", "-7");
    }

    @Test
    void whatIsMissingOrWrongIsSaidInTheDialog() {
        Job job = stock.label(1);
        browser.open("jobs/" + job.id());

        browser.press("main", "Reschedule …");
        confirm();
        browser.awaitText("dialog [role=alert]", "at least one value");
        browser.keys(org.openqa.selenium.Keys.ESCAPE);
        browser.await(() -> browser.all("dialog").isEmpty());

        browser.press("main", "Reschedule …");
        browser.type("dialog input[type=number]", "32768");
        confirm();
        browser.awaitText("dialog [role=alert]", "32767");
        browser.press("dialog", "Cancel");
        // The browser itself tells of the 400.
        assertThat(browser.complaints()).allMatch(text -> text.contains("400"));
        assertThat(stock.now(job).priority()).isZero();
    }

    @Test
    void jobsAreCompletedFailedAndDeletedAfterAQuestion() {
        Job completed = stock.label(1);
        Job failed = stock.label(2);
        Job deleted = stock.label(3);

        fromMenu(completed, "Complete …");
        browser.await(() -> !stock.exists(completed));

        browser.open("jobs/" + failed.id());
        browser.press("main", "More");
        browser.press("main", "Fail …");
        browser.type("dialog input", "Nobody prints labels any more");
        confirm();
        toast("");
        browser.awaitText("main .error-view", "Nobody prints labels any more");
        browser.awaitText("main h1", "failed");

        fromMenu(deleted, "Delete …");
        browser.await(() -> !stock.exists(deleted));
    }

    /** What stands there depends on the state; deleting never stands beside cancelling. */
    @Test
    void actionsAndQuestionsAreThoseOfTheState() {
        Job failed = stock.failed("print_label");
        browser.open("jobs/" + failed.id());
        browser.awaitText("main .page-actions", "Retry");
        assertThat(actions()).isEqualTo(List.of("Retry", "Delete …", "More"));
        browser.press("main", "Delete …");
        browser.awaitText("dialog", "The job failed permanently. It will be deleted");
        browser.press("dialog", "Cancel");
        browser.await(() -> browser.all("dialog").isEmpty());

        Job waiting = stock.label(1);
        browser.open("jobs/" + waiting.id());
        browser.awaitText("main .page-actions", "Run now");
        assertThat(actions()).isEqualTo(List.of("Run now", "Reschedule …", "More"));
        browser.press("main", "More");
        assertThat(browser.text("main [role=menu]"))
                .contains("Complete", "Fail", "Delete")
                .doesNotContain("Cancel");
        browser.press("main", "More");
        browser.resize(375, 900);
        browser.press("main", "More");
        assertThat(browser.run("return document.querySelector('main [role=menu]').getBoundingClientRect().left >= 0"))
                .as("the menu is in the window")
                .isEqualTo(true);

        Job running = stock.heldByNode();
        browser.open("jobs/" + running.id());
        browser.awaitText("main .page-actions", "Cancel");
        assertThat(actions()).isEqualTo(List.of("Cancel …", "More"));
        browser.press("main", "Cancel …");
        browser.awaitText("dialog", "The job is running.");
        browser.press("dialog", "Go back");
        browser.await(() -> browser.all("dialog").isEmpty());
        assertThat(stock.exists(running)).isTrue();

        browser.press("main", "Cancel …");
        browser.await("dialog");
        confirm();
        browser.awaitText("main .notice", "Cancelled by");
        browser.awaitText("main .notice", "cannot be notified");
    }

    /** A selection has what all of its jobs have. */
    @Test
    void aSelectionOffersTheActionsOfItsStates() {
        Job failed = stock.failed("print_label");
        Job waiting = stock.label(1);
        Job running = stock.heldByNode();
        browser.open("jobs");
        choose(failed);
        browser.awaitText(".selection-bar", "Retry");
        assertThat(browser.text(".selection-bar")).contains("Delete").doesNotContain("Cancel");
        choose(waiting);
        browser.awaitText(".selection-bar", "Run now");
        assertThat(browser.text(".selection-bar")).contains("Reschedule").doesNotContain("Delete", "Cancel");
        choose(running);
        browser.awaitText(".selection-bar", "Cancel");
        browser.press(".selection-bar", "More");
        assertThat(browser.text(".selection-bar")).contains("Complete").doesNotContain("Delete");
    }

    private void choose(Job job) {
        browser.click("main tr[data-id='" + job.id() + "'] input");
    }

    private List<String> actions() {
        return browser.all("main .page-actions button").stream()
                .map(org.openqa.selenium.WebElement::getText)
                .filter(text -> !text.isEmpty())
                .toList();
    }

    @Test
    void aFailedJobIsRetriedWithAnotherPayload() {
        Job job = stock.failed("print_label");
        browser.open("jobs?state=failed");
        browser.awaitText("main .payload-preview", "\"order\":\"SO-10481\"");
        browser.press("main", "Actions for job " + job.id());
        browser.press("main", "Retry with another payload …");
        browser.type("dialog textarea", "{\"order\": ");
        confirm();
        browser.awaitText("dialog [role=alert]", "not JSON");
        assertThat(browser.violations(null)).isEmpty();
        browser.type("dialog textarea", "{\"order\": \"SO-5\"}");
        confirm();

        toast("with this payload");
        browser.await(() -> stock.now(job).payload().contains("SO-5"));
        assertThat(stock.now(job).attempts()).isZero();
    }

    /** Kept by the browser, for each page. */
    @Test
    void filtersAreSavedUnderAName() {
        Job failed = stock.failed("print_label");
        Job waiting = stock.label(1);
        browser.load("jobs?state=failed&task=print_label");
        browser.press("main", "Saved filters");
        browser.type("main .saved-filters input", "  ");
        assertThat(browser.run("return document.querySelector('.saved-filters form').checkValidity()"))
                .isEqualTo(false);
        // As another tab does.
        browser.run(
                "localStorage.setItem('pgworker.filters', '[{\"page\":\"jobs\",\"name\":\"Other\",\"query\":{}}]')");
        browser.type("main .saved-filters input", "Labels <b>");
        assertThat(browser.violations(null)).isEmpty();
        browser.keys(Keys.ENTER);
        browser.awaitText("main .saved-filters ul", "Labels <b>");
        browser.awaitText("main .saved-filters ul", "Other");

        browser.load("jobs");
        browser.await(() -> browser.rows().contains(String.valueOf(waiting.id())));
        browser.press("main", "Saved filters");
        browser.press("main", "Labels <b>");
        browser.await(() -> browser.address().equals("jobs?state=failed&task=print_label"));
        browser.await(() -> browser.rows().equals(List.of(String.valueOf(failed.id()))));
        // The next key starts at the button.
        assertThat(browser.run("return document.activeElement.innerText")).isEqualTo("Saved filters");
        browser.open("history");
        browser.press("main", "Saved filters");
        browser.awaitText("main .saved-filters", "None yet");

        browser.open("jobs");
        browser.press("main", "Saved filters");
        browser.press("main", "Delete filter Other");
        browser.press("main", "Delete filter Labels <b>");
        browser.awaitText("main .saved-filters", "None yet");
    }

    @Test
    void nothingHappensWithoutTheAnswer() {
        Job job = stock.label(1);
        browser.open("jobs/" + job.id());
        browser.press("main", "More");
        browser.press("main", "Delete …");
        browser.awaitText("dialog", "cannot be undone");
        browser.press("dialog", "Cancel");
        browser.await(() -> browser.all("dialog").isEmpty());
        assertThat(stock.exists(job)).isTrue();
    }

    private void fromMenu(Job job, String action) {
        browser.open("jobs/" + job.id());
        browser.press("main", "More");
        browser.press("main", action);
        browser.await("dialog");
        confirm();
        toast("");
    }

    @Test
    void someOfAListAreChosen() {
        List<Job> jobs = stock.failed("print_label", 3);
        browser.open("jobs?state=failed");

        browser.click("main tr[data-id='" + jobs.get(0).id() + "'] input");
        browser.click("main tr[data-id='" + jobs.get(2).id() + "'] input");
        browser.press("main", "Delete …");
        browser.awaitText("dialog", "2 jobs");
        confirm();

        toast("2");
        browser.await(() -> !stock.exists(jobs.get(0)) && !stock.exists(jobs.get(2)));
        assertThat(stock.exists(jobs.get(1))).isTrue();
    }

    @Test
    void noMessageLiesOverTheButtonsOfASelection() {
        Job held = stock.label(3);
        browser.open("jobs");
        choose(held);
        browser.press(".selection-bar", "More");
        browser.press(".selection-bar", "Delete …");
        browser.await("dialog");
        stock.hold(held, "pool-1");
        confirm();
        browser.await(".toast.error");

        browser.await(() -> browser.all("dialog").isEmpty());
        if (browser.all(".selection-bar").isEmpty()) {
            browser.click("main tr[data-id='" + held.id() + "'] input");
        }
        browser.await(".selection-bar");
        for (int width : List.of(1280, 375)) {
            browser.resize(width, 900);
            assertThat(browser.run("""
                            const covered = (button) => {
                              const box = button.getBoundingClientRect();
                              return !button.contains(document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2));
                            };
                            return [document.querySelectorAll('.corner > :not(:empty)').length > 0,
                              [...document.querySelectorAll('.selection-bar button')].filter(covered).map(one => one.textContent)]
                            """)).as("%d pixels", width).isEqualTo(List.of(true, List.of()));
        }
    }

    /** The number stands there before; what is added meanwhile is left alone. */
    @Test
    void allFailedOfATaskRunAgain() {
        stock.failed("print_label", 130);
        Job other = stock.failed("archive");
        browser.open("jobs?state=failed&task=print_label");

        browser.press("main", "Change all matching");
        browser.press("main", "Retry …");
        browser.awaitText("dialog", "130 jobs");
        Job late = stock.failed("print_label");
        browser.await(() -> browser.all("dialog .dialog-foot button").size() == 2);
        confirm();

        browser.awaitText(".activity", "Done: 130 jobs changed");
        assertThat(shop.queries()
                        .count(JobQuery.builder().taskIdentifier("print_label").build())
                        .ready())
                .isEqualTo(130);
        assertThat(stock.now(late).attempts()).isEqualTo(25);
        assertThat(stock.now(other).attempts()).isEqualTo(25);
        browser.press(".activity", "Dismiss");
    }

    @Test
    void aJobIsAdded() {
        browser.open("jobs");
        browser.press("main", "Add job");
        browser.type("dialog input", "print_label");
        browser.type("dialog textarea", "{\"order\": ");
        browser.awaitText("dialog .field-error", "");
        confirm();
        browser.awaitText("dialog [role=alert]", "no JSON");
        browser.type("dialog textarea", "{\"order\": \"SO-5 <b>\"}");
        confirm();

        toast("");
        browser.press(".toasts", "Show");
        browser.awaitText("main .json", "SO-5 <b>");
        browser.awaitText("main h1", "print_label");
    }

    @Test
    void cleaningUpShowsNumbersFirst() {
        List<Job> failed = stock.failed("print_label", 4);
        browser.open("maintenance");

        browser.await(() -> browser.find("main .choices li").getText().contains("4"));
        browser.all("main .choices input").get(0).click();
        browser.press("main", "Clean up …");
        browser.awaitText("dialog", "4 failed jobs");
        confirm();

        toast("4");
        assertThat(failed).noneMatch(stock::exists);
    }

    @Test
    void theJobsOfADeadWorkerAreGivenToOthers() {
        Job job = stock.heldBy("dead-worker-1");
        browser.open("workers");
        browser.awaitText("main", "stopped sending heartbeats");
        browser.press("main", "Force unlock …");
        browser.awaitText("dialog", "dead-worker-1");
        confirm();
        toast("");
        browser.await(() -> stock.now(job).lockedBy() == null);
    }

    @Test
    void aSweepTellsFirstWhatItWouldDo() {
        Job job = stock.heldBy("dead-worker-2");
        browser.open("maintenance");
        browser.press("main", "Dry run");
        browser.awaitText("main .notice-text", "1 dead worker.");
        assertThat(stock.now(job).lockedBy()).isEqualTo("dead-worker-2");
        browser.press("main", "Sweep …");
        confirm();
        toast("");
        browser.await(() -> stock.now(job).lockedBy() == null);
    }

    @Test
    void aRecurringJobIsTriggeredPausedAndResumed() {
        browser.open("recurring");
        String row = "main tr[data-id=nightly-mail]";
        Instant before = Instant.now();
        browser.await(row);
        browser.press(row, "Run now");
        toast("");
        browser.press(".toasts", "Show");
        browser.awaitText("main h1", "send_mail");
        assertThat(Instant.now()).isAfter(before);

        browser.open("recurring");
        browser.await(row);
        browser.press(row, "Pause");
        confirm();
        browser.awaitText(row, "paused");
        browser.press(row, "Resume");
        browser.awaitNoText(row, "paused");

        stock.change(
                "insert into graphile_worker._private_known_crontabs (identifier, known_since) values ('left', now())");
        browser.press("main", "Refresh");
        browser.press("main tr[data-id=left]", "Forget");
        confirm();
        browser.await(() -> browser.all("main tr[data-id=left]").isEmpty());
    }

    /** From its first day to its last, without a mouse where that is shorter. */
    @Test
    void aScheduleIsMadeChangedTriggeredPausedAndDeleted() {
        String name = "tenant/7 ?a=b&c%2F <b>\"'\u05D0\u202E";
        browser.open("recurring");
        browser.press("main", "New schedule");
        browser.type("dialog input[id$=name]", name);
        browser.type("dialog input[id$=task]", "send_mail");
        browser.type("dialog input[id$=expression]", "0 61 * * *");
        browser.awaitText("dialog .preview .field-error", "61");
        browser.keys(Keys.ENTER);
        browser.awaitText("dialog [role=alert]", "61");
        browser.await(() -> Boolean.TRUE.equals(
                browser.run("return document.activeElement.matches('[id$=expression][aria-invalid]')")));
        browser.type("dialog input[id$=expression]", "0 4 1 1 *");
        browser.awaitText("dialog .preview", "At 04:00 on day 1 of the month in January");
        assertThat(browser.all("dialog .preview li")).hasSize(5);
        browser.keys(Keys.ENTER);
        showLast("was created");
        browser.awaitText("main h1", "active");
        assertThat(shop.schedules().find(name).orElseThrow().origin()).isEqualTo(RecurringJob.Origin.DATABASE);

        browser.press("main", "More actions");
        browser.press("main", "Change");
        browser.await("dialog select[id$=kind]").sendKeys("Fixed rate");
        browser.type("dialog input[id$=every]", "90");
        browser.awaitText("dialog .preview", "Every 90 minutes");
        confirm();
        browser.awaitText("main aside", "Every 90 minutes");

        browser.press("main", "More actions");
        browser.press("main", "Run with another payload");
        browser.type("dialog textarea", "{\"to\": \"grace\"}");
        confirm();
        showLast("was added");
        browser.awaitText("main .json", "grace");
        browser.click("main aside a[href*='recurring/schedule']");
        browser.awaitText("main h1", "active");

        browser.press("main", "Pause");
        confirm();
        browser.awaitText("main .situation", "Paused by dashboard");
        browser.press("main", "Resume");
        browser.awaitText("main h1", "active");
        browser.press("main", "More actions");
        browser.press("main", "Delete …");
        confirm();
        browser.await(() -> browser.address().equals("recurring"));
        assertThat(shop.schedules().find(name)).isEmpty();
        // The browser itself tells of each 400.
        assertThat(browser.complaints()).allMatch(text -> text.contains("400"));
    }

    @Test
    void aLimitIsMadeChangedAndDeleted() {
        String name = "tenant/7 ?a=b&c%2F <b>\"'\u05D0\u202E";
        browser.open("limits");
        browser.press("main", "New limit");
        browser.type("dialog input[id$=name]", name);
        browser.type("dialog input[id$=tasks]", "limited_mail, limited_fax");
        browser.type("dialog input[id$=maxRunning]", "3");
        browser.type("dialog input[id$=per]", "tenant..id");
        browser.keys(Keys.ENTER);
        browser.awaitText("dialog [role=alert]", "per must");
        browser.await(() ->
                Boolean.TRUE.equals(browser.run("return document.activeElement.matches('[id$=per][aria-invalid]')")));
        browser.type("dialog input[id$=per]", "tenant.id");
        browser.keys(Keys.ENTER);
        showLast("was created");
        browser.awaitText("main aside", "3 running per tenant.id");
        browser.awaitNoText("main", "is being put into effect");
        assertThat(shop.limits().find(name).orElseThrow().declared()).isFalse();

        browser.press("main", "Change");
        browser.await("dialog select[id$=kind]").sendKeys("Jobs that start");
        browser.type("dialog input[id$=maxStarts]", "900");
        browser.type("dialog input[id$=burst]", "1");
        confirm();
        browser.awaitText("dialog [role=alert]", "burst must");
        browser.type("dialog input[id$=burst]", "10");
        confirm();
        browser.awaitText("main aside", "900 starts in 1 minute, burst 10, per tenant.id");

        browser.press("main", "Delete …");
        browser.awaitText("dialog", "become available");
        confirm();
        browser.awaitText("main", "There is no such limit");
        assertThat(shop.limits().find(name)).isEmpty();
        // The browser itself tells of each 400, and of the limit that is gone.
        assertThat(browser.complaints()).allMatch(text -> text.contains("400") || text.contains("404"));
    }

    @Test
    void aRunningJobCanOnlyBeCancelled() throws Exception {
        Shop.Handlers.mayEnd = new java.util.concurrent.CountDownLatch(1);
        Job job = shop.jobs().addJob("import_catalog", Map.of());
        try {
            browser.await(() -> stock.now(job).lockedBy() != null);
            browser.open("jobs/" + job.id());
            browser.awaitText("main h1", "running");
            assertThat(actions()).isEqualTo(List.of("Cancel …", "More"));
        } finally {
            Shop.Handlers.mayEnd.countDown();
        }
    }

    /** Presses the button of the dialog that is not the one to cancel. */
    private void confirm() {
        browser.click("dialog .dialog-foot button:nth-child(2)");
    }

    /** Goes where the last message leads; those of a test before may still be there. */
    private void showLast(String text) {
        String last = ".toasts .toast:last-child";
        browser.awaitText(last, text);
        browser.press(last, "Show");
    }

    private void toast(String text) {
        browser.awaitText(".toasts .toast", text);
    }
}
