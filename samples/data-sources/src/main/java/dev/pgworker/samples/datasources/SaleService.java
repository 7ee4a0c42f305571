package dev.pgworker.samples.datasources;

import org.springframework.jdbc.core.simple.JdbcClient;
import org.springframework.stereotype.Service;
import org.springframework.transaction.annotation.Transactional;

import dev.pgworker.job.JobScheduler;
import dev.pgworker.job.Task;

/** Works in the main database. */
@Service
class SaleService {

    record Receipt(String customer, long cents) {}

    static final Task<Receipt> RECEIPT = Task.of("receipt", Receipt.class);

    private final JdbcClient jdbc;
    private final JobScheduler jobs;

    SaleService(JdbcClient jdbc, JobScheduler jobs) {
        this.jdbc = jdbc;
        this.jobs = jobs;
    }

    /** Stores the sale and adds the job that sends the receipt: both or neither. */
    @Transactional
    public void sell(Sale sale) {
        jdbc.sql("insert into sale (customer, month, cents) values (?, ?, ?)")
                .params(sale.customer(), sale.month(), sale.cents())
                .update();
        jobs.addJob(RECEIPT, new Receipt(sale.customer(), sale.cents()));
    }

    /** Returns what was sold in a month, in cents. */
    public long total(String month) {
        return jdbc.sql("select coalesce(sum(cents), 0) from sale where month = ?")
                .param(month)
                .query(Long.class)
                .single();
    }
}
