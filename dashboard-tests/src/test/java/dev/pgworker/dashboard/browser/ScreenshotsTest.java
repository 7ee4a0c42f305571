package dev.pgworker.dashboard.browser;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledIfSystemProperty;
import org.junit.jupiter.api.extension.ExtendWith;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.jdbc.core.simple.JdbcClient;

import dev.pgworker.job.Job;
import dev.pgworker.job.JobQueries;
import dev.pgworker.job.JobQuery;
import dev.pgworker.job.JobState;
import dev.pgworker.samples.dashboard.DashboardApplication;
import dev.pgworker.testsupport.TestPostgres;

/**
 * Takes the pictures of README and guide from the sample, after a while and as if it had been running since yesterday. They are
 * files of the repository, so this is done on request only.
 */
@ExtendWith(Chromium.class)
@EnabledIfSystemProperty(
        named = "pgworker.write-screenshots",
        matches = "true",
        disabledReason = "Pictures are taken with -Dpgworker.write-screenshots=true")
class ScreenshotsTest {

    private static final Path IMAGES = Path.of("..", "docs", "images");

    /** As much as the shop would have left, with the same pace at the same time of yesterday and half an hour of trouble. */
    private static final String YESTERDAY = """
            with minute as (
              select m.at, (150 + 90 * cos(extract(epoch from now() - m.at) / 13750) + 20 * random())::bigint as runs,
                case when extract(hour from m.at) = 3 and extract(minute from m.at) < 25 then 60 else (random() * 14)::bigint end as failures
              from generate_series(date_trunc('minute', now()) - interval '24 hours', date_trunc('minute', now()) - interval '2 minutes',
                interval '1 minute') m(at))
            insert into graphile_worker.pgworker_task_minutes (span, begins_at, task, succeeded, retried, failed, run, waited)
            select 0, m.at, '', m.runs, m.failures, case when m.failures = 60 then 12 else 0 end,
              array[128 * m.runs + 28, 128 * (m.runs / 2) + 34, 128 * (m.runs / 9) + 39],
              array[128 * m.runs + 18, 128 * (m.runs / 3) + 21, 128 * (m.runs / 12) + case when m.failures = 60 then 36 else 26 + m.failures / 5 end]
            from minute m on conflict do nothing;
            insert into graphile_worker.pgworker_samples (taken_at, ready, scheduled, retrying, failed, workers)
            select m.at, (28 + 14 * cos(extract(epoch from now() - m.at) / 13750) + 6 * random())::bigint, 6, (2 + 2 * random())::bigint,
              3 + extract(epoch from m.at - now() + interval '24 hours')::bigint / 20000, 2
            from generate_series(now() - interval '24 hours', now() - interval '2 minutes', interval '1 minute') m(at) on conflict do nothing
            """;

    @Test
    @Timeout(900)
    void takePictures() throws Exception {
        try (ConfigurableApplicationContext shop = new SpringApplicationBuilder(DashboardApplication.class)
                .run(
                        "--spring.datasource.url=" + TestPostgres.newDatabase("pictures"),
                        "--server.port=0",
                        "--shop.order-every=700ms",
                        "--shop.step=60ms")) {
            JobQueries jobs = shop.getBean(JobQueries.class);
            try (Browser browser = new Browser("http://localhost:"
                    + shop.getEnvironment().getRequiredProperty("local.server.port") + "/pgworker/")) {
                org.awaitility.Awaitility.await()
                        .atMost(Duration.ofMinutes(3))
                        .until(() -> jobs.count(failedPayments()).failed() >= 3);
                shop.getBean(JdbcClient.class).sql(YESTERDAY).update();
                Job failed = jobs.list(failedPayments()).jobs().get(0);
                takeAll(browser, failed.id());
            }
        }
    }

    private static JobQuery failedPayments() {
        return JobQuery.builder()
                .taskIdentifier("charge_card")
                .state(JobState.FAILED)
                .build();
    }

    private static void takeAll(Browser browser, long failed) throws IOException {
        browser.resize(1280, 860);
        for (String scheme : new String[] {"light", "dark"}) {
            browser.prefer(scheme);
            take(browser, "?window=6h", "overview-" + scheme);
        }
        browser.prefer("light");
        take(browser, "jobs", "jobs");
        take(browser, "jobs/" + failed, "job");
        take(browser, "recurring/schedule?name=photos-of-the-window", "schedule");
    }

    private static void take(Browser browser, String page, String name) throws IOException {
        browser.load(page);
        browser.await("main h1");
        browser.await(() -> browser.all("main .skeleton").isEmpty());
        browser.awaitText(".connection", "");
        browser.await(() ->
                Boolean.TRUE.equals(browser.run("return document.querySelector('.connection.is-live') !== null")));
        Files.write(IMAGES.resolve("dashboard-" + name + ".png"), browser.picture());
    }
}
