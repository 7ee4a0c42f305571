package dev.pgworker.autoconfigure;

import java.time.Instant;
import java.util.List;

import dev.pgworker.history.HistoryEntry;
import dev.pgworker.history.HistoryOutcome;
import dev.pgworker.history.HistoryQuery;
import dev.pgworker.job.JobQueries;
import dev.pgworker.task.JobContext;
import dev.pgworker.task.JobHandler;

/** Code of the guide's page about the history: it stands here so that it compiles. */
class DocumentedHistory {

    record Invoice(String number) {}

    List<HistoryEntry> failedSince(JobQueries queries, Instant since) {
        HistoryQuery query = HistoryQuery.builder()
                .taskIdentifier("send_invoice")
                .outcome(HistoryOutcome.FAILED)
                .from(since)
                .build();
        return queries.history().list(query).entries();
    }

    record Sent(String invoice, int pages) {}

    @JobHandler("send_invoice")
    Sent send(Invoice invoice) {
        return new Sent(invoice.number(), 3);
    }

    @JobHandler("export")
    void export(JobContext context) {
        context.result("export-2026.csv");
    }
}
