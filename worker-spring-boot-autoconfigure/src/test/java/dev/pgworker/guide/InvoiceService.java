package dev.pgworker.guide;

import java.time.Duration;

import org.springframework.stereotype.Service;
import org.springframework.transaction.annotation.Transactional;

import dev.pgworker.job.JobChanges;
import dev.pgworker.job.JobScheduler;
import dev.pgworker.job.JobSpec;

@Service
class InvoiceService {

    private final JobScheduler jobs;
    private final JobChanges changes;

    InvoiceService(JobScheduler jobs, JobChanges changes) {
        this.jobs = jobs;
        this.changes = changes;
    }

    @Transactional
    void issue(Invoice invoice) {
        // Store the invoice here: a rollback leaves no job.
        JobSpec inTenMinutes = JobSpec.builder()
                .runIn(Duration.ofMinutes(10))
                .jobKey("invoice-" + invoice.number())
                .build();
        jobs.addJob(InvoiceHandlers.SEND_INVOICE, invoice, inTenMinutes);
    }

    void cancel(String number) {
        changes.remove("invoice-" + number);
    }
}
