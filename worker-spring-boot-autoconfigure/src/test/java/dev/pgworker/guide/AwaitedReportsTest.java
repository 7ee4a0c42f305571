package dev.pgworker.guide;

import java.util.concurrent.TimeUnit;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

import dev.pgworker.autoconfigure.testing.TestDatabase;
import dev.pgworker.guide.AwaitedReports.Report;
import dev.pgworker.guide.AwaitedReports.Reports;

import static org.assertj.core.api.Assertions.assertThat;

/** The example of docs/results.md does what the page says, in an application whose schedulers are decorated. */
class AwaitedReportsTest {

    @RegisterExtension
    final TestDatabase db = new TestDatabase().installed();

    @Test
    void whoAsksForAReportGetsIt() {
        db.runner()
                .withBean(AwaitedReports.ReportHandlers.class)
                .withBean(Reports.class)
                .withPropertyValues("pgworker.results.keep-for=5m", "pgworker.task-defaults.report.priority=3")
                .run(context -> {
                    Reports reports = context.getBean(Reports.class);

                    assertThat(reports.now(7)).isEqualTo(new Report(7, 3));
                    long id = reports.order(8);
                    assertThat(reports.fetch(id).get(2, TimeUnit.MINUTES)).isEqualTo(new Report(8, 3));
                    assertThat(db.sql(
                                            "select extract(epoch from keep_for)::int from {schema}.pgworker_ends where job_id = "
                                                    + id)
                                    .query(Integer.class)
                                    .single())
                            .isEqualTo(300);
                });
    }
}
