package dev.pgworker.samples.datasources;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.stereotype.Component;

import dev.pgworker.samples.datasources.ReportService.Report;
import dev.pgworker.task.JobHandler;

/** Runs jobs of the reports database, on threads of their own. */
@Component
class ReportHandlers {

    private static final Logger log = LoggerFactory.getLogger(ReportHandlers.class);

    private final SaleService sales;
    private final ReportService reports;

    ReportHandlers(SaleService sales, ReportService reports) {
        this.sales = sales;
        this.reports = reports;
    }

    /** The report is filled in the transaction, of the reports database, that finishes the job. */
    @JobHandler(value = "monthly-report", worker = "reports", transactional = true)
    void monthly(Report report) {
        long cents = sales.total(report.month());
        reports.fill(report.month(), cents);
        log.info("Report for {}: {} cents", report.month(), cents);
    }
}
