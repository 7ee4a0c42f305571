package dev.pgworker.samples.dashboard;

import java.time.Duration;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.boot.context.event.ApplicationReadyEvent;
import org.springframework.context.event.EventListener;
import org.springframework.core.env.Environment;
import org.springframework.stereotype.Component;

import dev.pgworker.crontab.CronAdmin;
import dev.pgworker.job.JobScheduler;
import dev.pgworker.job.JobSpec;
import dev.pgworker.samples.dashboard.Jobs.Campaign;
import dev.pgworker.samples.dashboard.Jobs.Index;
import dev.pgworker.samples.dashboard.Jobs.Report;

import static dev.pgworker.samples.dashboard.Jobs.REBUILD_INDEX;
import static dev.pgworker.samples.dashboard.Jobs.SALES_REPORT;
import static dev.pgworker.samples.dashboard.Jobs.SEND_NEWSLETTER;

/** What is there when the shop opens, and where to look at it. */
@Component
class Opening {

    private static final Logger log = LoggerFactory.getLogger(Opening.class);

    private final JobScheduler jobs;
    private final CronAdmin crontab;
    private final Staff staff;
    private final Environment environment;

    Opening(JobScheduler jobs, CronAdmin crontab, Staff staff, Environment environment) {
        this.jobs = jobs;
        this.crontab = crontab;
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
        crontab.pause("clear-carts");
        log.info("Ready. Look at http://localhost:{}/worker", environment.getProperty("local.server.port"));
    }
}
