package dev.pgworker.samples.reports;

import java.time.Instant;
import java.time.LocalTime;
import java.time.ZoneId;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.stereotype.Service;

import dev.pgworker.job.Task;
import dev.pgworker.schedule.Misfire;
import dev.pgworker.schedule.Recurrence;
import dev.pgworker.schedule.RecurringJobs;
import dev.pgworker.schedule.Schedule;
import dev.pgworker.task.JobContext;
import dev.pgworker.task.JobHandler;
import dev.pgworker.task.ScheduledRun;

/** Reports that customers order for a time of the day, and cancel again: each order is a schedule of the database. */
@Service
class CustomerReports {

    private static final Logger log = LoggerFactory.getLogger(CustomerReports.class);

    record CustomerReport(String customer) {}

    static final Task<CustomerReport> CUSTOMER_REPORT = Task.of("customer_report", CustomerReport.class);

    private final RecurringJobs recurring;

    CustomerReports(RecurringJobs recurring) {
        this.recurring = recurring;
    }

    /** Orders the report of a customer, or changes when it comes. */
    void order(String customer, LocalTime time, ZoneId zone) {
        String daily = "%s %s %s * * *".formatted(time.getSecond(), time.getMinute(), time.getHour());
        recurring.put(Schedule.builder(
                        name(customer), Recurrence.cron(daily, zone), CUSTOMER_REPORT, new CustomerReport(customer))
                .misfire(Misfire.RUN_ONCE)
                .build());
    }

    /** Returns whether there was an order. */
    boolean cancel(String customer) {
        return recurring.delete(name(customer));
    }

    static String name(String customer) {
        return "customer_report/" + customer;
    }

    @JobHandler("customer_report")
    void report(CustomerReport report, JobContext context) {
        Instant due = context.scheduledRun().map(ScheduledRun::scheduledAt).orElse(null);
        log.info("Report for {}, due at {}", report.customer(), due);
    }
}
