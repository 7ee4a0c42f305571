package dev.pgworker.samples.dashboard;

import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Locale;
import java.util.stream.IntStream;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.boot.context.event.ApplicationReadyEvent;
import org.springframework.context.event.EventListener;
import org.springframework.core.env.Environment;
import org.springframework.stereotype.Component;

import dev.pgworker.job.JobScheduler;
import dev.pgworker.job.JobSpec;
import dev.pgworker.samples.dashboard.Jobs.Campaign;
import dev.pgworker.samples.dashboard.Jobs.Catalog;
import dev.pgworker.samples.dashboard.Jobs.Index;
import dev.pgworker.samples.dashboard.Jobs.Photos;
import dev.pgworker.samples.dashboard.Jobs.Report;
import dev.pgworker.schedule.Recurrence;
import dev.pgworker.schedule.RecurringJobs;
import dev.pgworker.schedule.Schedule;

import static dev.pgworker.samples.dashboard.Jobs.IMPORT_CATALOG;
import static dev.pgworker.samples.dashboard.Jobs.REBUILD_INDEX;
import static dev.pgworker.samples.dashboard.Jobs.RESIZE_PHOTOS;
import static dev.pgworker.samples.dashboard.Jobs.SALES_REPORT;
import static dev.pgworker.samples.dashboard.Jobs.SEND_NEWSLETTER;

/** What is there when the shop opens, and where to look at it. */
@Component
class Opening {

    private static final Logger log = LoggerFactory.getLogger(Opening.class);

    private static final List<String> WINDOW = IntStream.rangeClosed(1, 40)
            .mapToObj(i -> String.format(Locale.ROOT, "window-%02d.jpg", i))
            .toList();

    private final JobScheduler jobs;
    private final RecurringJobs recurring;
    private final Staff staff;
    private final Environment environment;

    Opening(JobScheduler jobs, RecurringJobs recurring, Staff staff, Environment environment) {
        this.jobs = jobs;
        this.recurring = recurring;
        this.staff = staff;
        this.environment = environment;
    }

    @EventListener(ApplicationReadyEvent.class)
    void open() {
        staff.uploadPhotos();
        staff.importCatalog();
        jobs.addJob(SALES_REPORT, new Report("yesterday", "xlsx"));
        // Keys, so that the next start finds the jobs that are there instead of adding more.
        jobs.addJob(
                SEND_NEWSLETTER,
                new Campaign("autumn-teas", "customers"),
                JobSpec.builder()
                        .jobKey("newsletter:autumn-teas")
                        .runIn(Duration.ofHours(2))
                        .build());
        jobs.addJob(
                REBUILD_INDEX,
                new Index("en", true),
                JobSpec.builder().jobKey("index:en").flags("after-hours").build());
        recurring.pause("clear-carts");
        makeSchedules();
        log.info("Ready. Look at http://localhost:{}/pgworker", environment.getProperty("local.server.port"));
    }

    /** Those that are there already stay as they are, paused ones included. */
    private void makeSchedules() {
        recurring.put(Schedule.builder(
                        "photos-of-the-window",
                        Recurrence.fixedRate(Duration.ofSeconds(20), Instant.EPOCH),
                        RESIZE_PHOTOS,
                        new Photos("window", WINDOW, List.of(800, 1600)))
                .build());
        recurring.put(Schedule.builder(
                        "catalog-of-acme",
                        Recurrence.fixedDelay(Duration.ofMinutes(2)),
                        IMPORT_CATALOG,
                        new Catalog("acme", "https://acme.example/catalog.csv", 12))
                .build());
    }
}
