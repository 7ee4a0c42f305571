package dev.pgworker.autoconfigure;

import javax.sql.DataSource;

import org.springframework.beans.factory.annotation.Qualifier;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.boot.jdbc.DataSourceBuilder;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.jdbc.support.JdbcTransactionManager;
import org.springframework.stereotype.Component;
import org.springframework.stereotype.Service;
import org.springframework.transaction.annotation.Transactional;

import dev.pgworker.job.JobScheduler;
import dev.pgworker.job.Task;
import dev.pgworker.task.JobHandler;

/** What docs/data-sources.md shows. */
final class DocumentedDataSources {

    private DocumentedDataSources() {}

    @Configuration(proxyBeanMethods = false)
    static class JobsDatabase {

        @Bean(defaultCandidate = false)
        @WorkerDataSource
        DataSource jobsDataSource(@Value("${app.jobs-database.url}") String url) {
            return DataSourceBuilder.create().url(url).build();
        }

        @Bean(defaultCandidate = false)
        @WorkerTransactionManager
        JdbcTransactionManager jobsTransactionManager(@WorkerDataSource DataSource jobsDataSource) {
            return new JdbcTransactionManager(jobsDataSource);
        }
    }

    record Report(String month) {}

    @Service
    static class Reports {

        static final Task<Report> MONTHLY_REPORT = Task.of("monthly-report", Report.class);

        private final JobScheduler jobs;

        Reports(@Qualifier("reports") JobScheduler jobs) {
            this.jobs = jobs;
        }

        @Transactional("jobsTransactionManager")
        public void request(String month) {
            jobs.addJob(MONTHLY_REPORT, new Report(month));
        }
    }

    @Component
    static class ReportHandlers {

        @JobHandler(value = "monthly-report", worker = "reports")
        void monthly(Report report) {
            // ...
        }
    }
}
