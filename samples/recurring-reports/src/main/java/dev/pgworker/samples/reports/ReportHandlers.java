package dev.pgworker.samples.reports;

import java.time.ZoneOffset;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.jdbc.core.simple.JdbcClient;
import org.springframework.stereotype.Component;

import dev.pgworker.crontab.CronJob;
import dev.pgworker.task.JobHandler;

/** Writes the reports. */
@Component
class ReportHandlers {

    private static final Logger log = LoggerFactory.getLogger(ReportHandlers.class);

    private final JdbcClient jdbc;

    ReportHandlers(JdbcClient jdbc) {
        this.jdbc = jdbc;
    }

    /** Scheduled in {@code application.yml}. */
    @JobHandler(value = "hourly_report", transactional = true)
    void hourly(Execution execution) {
        write("hourly", execution);
    }

    /** Scheduled here, by the clocks of New York. */
    @JobHandler(value = "daily_report", transactional = true)
    @CronJob(value = "30 7 * * *", zone = "America/New_York", fill = "1w")
    void daily(Execution execution) {
        write("daily", execution);
    }

    /** Scheduled in {@code application.yml}. */
    @JobHandler("refresh_dashboard")
    void refreshDashboard(Execution execution) {
        log.info("Dashboard of {}", execution.cron().ts());
    }

    /** Scheduled here, to the second: what is due while the previous one still runs is left out. */
    @JobHandler("collect_figures")
    @CronJob(cron = "${reports.collect:*/10 * * * * *}")
    void collectFigures() {
        int reports =
                jdbc.sql("select count(*) from report").query(Integer.class).single();
        log.info("{} reports so far", reports);
    }

    /** Goes by the minute that the job was due for: the present time may be days later. */
    private void write(String name, Execution execution) {
        Execution.Cron cron = execution.cron();
        jdbc.sql("insert into report (name, until, backfilled) values (?, ?, ?) on conflict do nothing")
                .params(name, cron.ts().atOffset(ZoneOffset.UTC), cron.backfilled())
                .update();
        log.info("Report {} until {}{}", name, cron.ts(), cron.backfilled() ? ", backfilled" : "");
    }
}
