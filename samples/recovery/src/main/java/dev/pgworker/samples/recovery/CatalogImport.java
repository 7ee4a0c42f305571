package dev.pgworker.samples.recovery;

import java.time.Duration;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.jdbc.core.simple.JdbcClient;
import org.springframework.stereotype.Component;

import dev.pgworker.job.Task;
import dev.pgworker.task.JobContext;
import dev.pgworker.task.JobHandler;

/** Imports a catalog page by page. Each page is a step, so a later attempt goes on after the last page imported. */
@Component
class CatalogImport {

    record Catalog(int pages) {}

    static final Task<Catalog> IMPORT_CATALOG = Task.of("import_catalog", Catalog.class);

    private static final Logger log = LoggerFactory.getLogger(CatalogImport.class);

    private final JdbcClient jdbc;
    private final Duration timePerPage;

    CatalogImport(JdbcClient jdbc, @Value("${import.time-per-page}") Duration timePerPage) {
        this.jdbc = jdbc;
        this.timePerPage = timePerPage;
    }

    @JobHandler("import_catalog")
    void run(Catalog catalog, JobContext context) throws InterruptedException {
        long job = context.job().id();
        for (int i = 1; i <= catalog.pages(); i++) {
            int page = i;
            context.steps().inTransaction("page", () -> {
                Thread.sleep(timePerPage.toMillis());
                save(job, page);
                log.info("Imported page {} of {}", page, catalog.pages());
            });
        }
        log.info("Done");
    }

    /** Is committed together with the record of the step. */
    private void save(long job, int page) {
        jdbc.sql("insert into imported_page (job_id, page, process) values (?, ?, ?)")
                .params(job, page, ProcessHandle.current().pid())
                .update();
    }
}
