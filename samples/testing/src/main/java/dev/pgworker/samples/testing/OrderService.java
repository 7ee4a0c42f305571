package dev.pgworker.samples.testing;

import java.time.Duration;

import org.springframework.stereotype.Service;
import org.springframework.transaction.annotation.Transactional;

import dev.pgworker.job.JobScheduler;
import dev.pgworker.job.JobSpec;
import dev.pgworker.job.Task;

@Service
class OrderService {

    static final Task<Order> CONFIRM = Task.of("confirm", Order.class);
    static final Task<Order> REMIND = Task.of("remind", Order.class);

    private final JobScheduler jobs;

    OrderService(JobScheduler jobs) {
        this.jobs = jobs;
    }

    /** Has the order confirmed at once, and its customer reminded of it after three days. */
    @Transactional
    void place(Order order) {
        jobs.addJob(CONFIRM, order, JobSpec.builder().queueName("mail").build());
        jobs.addJob(
                REMIND,
                order,
                JobSpec.builder()
                        .runIn(Duration.ofDays(3))
                        .jobKey("remind-" + order.id())
                        .build());
    }
}
