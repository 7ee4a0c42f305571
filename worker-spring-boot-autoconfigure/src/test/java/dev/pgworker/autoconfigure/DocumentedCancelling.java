package dev.pgworker.autoconfigure;

import java.time.Duration;
import java.util.List;
import java.util.Optional;

import org.springframework.stereotype.Service;

import dev.pgworker.autoconfigure.DocumentedCancelling.Exports.Export;
import dev.pgworker.job.BulkResult;
import dev.pgworker.job.Cancellation;
import dev.pgworker.job.JobChange;
import dev.pgworker.job.JobChanges;
import dev.pgworker.job.JobKeyMode;
import dev.pgworker.job.JobQueries;
import dev.pgworker.job.JobQuery;
import dev.pgworker.job.JobScheduler;
import dev.pgworker.job.JobSpec;
import dev.pgworker.job.Task;
import dev.pgworker.task.JobContext;
import dev.pgworker.task.JobHandler;

import static dev.pgworker.autoconfigure.DocumentedCancelling.Exports.EXPORT;

/** The code of the page about cancelling. */
class DocumentedCancelling {

    @Service
    static class Exports {

        static final Task<Export> EXPORT = Task.of("export", Export.class);

        record Export(String account) {}

        interface Rows {
            Iterable<String> of(String account);
        }

        interface ExportFile {
            void append(String row);
        }

        private final JobScheduler jobs;
        private final JobChanges changes;
        private final Rows rows;
        private final ExportFile file;

        Exports(JobScheduler jobs, JobChanges changes, Rows rows, ExportFile file) {
            this.jobs = jobs;
            this.changes = changes;
            this.rows = rows;
            this.file = file;
        }

        void start(Export export) {
            jobs.addJob(
                    EXPORT,
                    export,
                    JobSpec.builder().jobKey("export/" + export.account()).build());
        }

        /** Returns what became of the export, 10 s later at most; empty if there was none. */
        Optional<Cancellation.State> stop(String account, String user) {
            return changes.actingAs(user)
                    .cancel("export/" + account)
                    .map(answer -> changes.awaitCancellations(List.of(answer.jobId()), Duration.ofSeconds(10)).stream()
                            .map(Cancellation::state)
                            .findFirst()
                            .orElse(answer.state()));
        }

        @JobHandler("export")
        void export(Export export, JobContext context) {
            for (String row : rows.of(export.account())) {
                context.throwIfCancelled();
                file.append(row);
            }
        }
    }

    static class More {

        private final JobScheduler jobs;
        private final JobQueries queries;
        private final JobChanges changes;

        More(JobScheduler jobs, JobQueries queries, JobChanges changes) {
            this.jobs = jobs;
            this.queries = queries;
            this.changes = changes;
        }

        void restart(Export export) {
            jobs.addJob(
                    EXPORT,
                    export,
                    JobSpec.builder()
                            .jobKey("export/" + export.account())
                            .jobKeyMode(JobKeyMode.REPLACE_AND_CANCEL)
                            .queueName("export/" + export.account())
                            .build());
        }

        BulkResult cancelAll(String queue) {
            JobQuery ofQueue = JobQuery.builder().queueName(queue).build();
            return changes.change(
                    queries.select(ofQueue, 100_000), new JobChange.Cancel(), (done, soFar, total) -> true);
        }
    }
}
