package dev.pgworker.autoconfigure;

import java.time.Duration;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.context.annotation.Bean;

import dev.pgworker.job.JobScheduler;
import dev.pgworker.job.JobSpec;
import dev.pgworker.job.Task;
import dev.pgworker.task.JobContext;
import dev.pgworker.task.JobHandler;
import dev.pgworker.task.TaskRegistration;

/** Code that the guide shows and no sample has: it stands here so that it compiles. */
class DocumentedSnippets {

    private static final Logger log = LoggerFactory.getLogger(DocumentedSnippets.class);

    static final Task<Reminder> REMINDER = Task.of("reminder", Reminder.class);

    record Reminder(int order) {}

    void schedule(JobScheduler jobs) {
        JobSpec spec = JobSpec.builder()
                .runIn(Duration.ofMinutes(10))
                .queueName("mail")
                .priority(-5)
                .maxAttempts(3)
                .jobKey("reminder-42")
                .build();
        jobs.addJob(REMINDER, new Reminder(42), spec);
    }

    @JobHandler("reminder")
    void remind(Reminder reminder, JobContext context) {
        log.info("{}: order {}", context, reminder.order());
    }

    static class Functions {

        @Bean
        TaskRegistration remind() {
            return TaskRegistration.of(REMINDER, (reminder, context) -> log.info("Order {}", reminder.order()));
        }
    }
}
