package dev.pgworker.samples.datasources;

import java.util.Optional;

import org.springframework.beans.factory.annotation.Qualifier;
import org.springframework.jdbc.core.simple.JdbcClient;
import org.springframework.stereotype.Service;
import org.springframework.transaction.annotation.Transactional;

import dev.pgworker.job.JobScheduler;
import dev.pgworker.job.Task;

/** Works in the reports database. */
@Service
class ReportService {

    record Report(String month) {}

    static final Task<Report> MONTHLY_REPORT = Task.of("monthly-report", Report.class);

    private final JdbcClient jdbc;
    private final JobScheduler jobs;

    ReportService(@Qualifier("reports") JdbcClient jdbc, @Qualifier("reports") JobScheduler jobs) {
        this.jdbc = jdbc;
        this.jobs = jobs;
    }

    /** Stores an empty report and adds the job that fills it: both or neither. */
    @Transactional("reportsTransactionManager")
    public void request(String month) {
        jdbc.sql("insert into report (month) values (?) on conflict (month) do update set cents = null")
                .param(month)
                .update();
        jobs.addJob(MONTHLY_REPORT, new Report(month));
    }

    public void fill(String month, long cents) {
        jdbc.sql("update report set cents = ? where month = ?")
                .params(cents, month)
                .update();
    }

    /** Returns what was sold in the month, in cents; empty while the report is not finished or nobody requested it. */
    public Optional<Long> find(String month) {
        return jdbc.sql("select cents from report where month = ? and cents is not null")
                .param(month)
                .query(Long.class)
                .optional();
    }
}
