package dev.pgworker.samples.apiandworker;

import java.util.Optional;

import org.springframework.jdbc.core.simple.JdbcClient;
import org.springframework.stereotype.Service;
import org.springframework.transaction.annotation.Transactional;

import dev.pgworker.job.JobScheduler;
import dev.pgworker.job.Task;

/** The part that API and worker share. */
@Service
class ExportService {

    static final Task<Export> EXPORT = Task.of("export", Export.class);

    private final JdbcClient jdbc;
    private final JobScheduler jobs;

    ExportService(JdbcClient jdbc, JobScheduler jobs) {
        this.jdbc = jdbc;
        this.jobs = jobs;
    }

    /** Adds a job for an export and returns the export's id. */
    @Transactional
    public long request() {
        long id = jdbc.sql("insert into export default values returning id")
                .query(Long.class)
                .single();
        jobs.addJob(EXPORT, new Export(id));
        return id;
    }

    public void finish(long id, String content) {
        jdbc.sql("update export set content = ? where id = ?")
                .params(content, id)
                .update();
    }

    /** Returns what has been exported; empty while it is not finished. */
    public Optional<String> content(long id) {
        return jdbc.sql("select content from export where id = ? and content is not null")
                .param(id)
                .query(String.class)
                .optional();
    }
}
