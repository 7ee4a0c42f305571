package dev.pgworker.guide;

import java.time.Duration;
import java.util.function.Consumer;

import org.springframework.boot.ApplicationArguments;
import org.springframework.boot.ApplicationRunner;
import org.springframework.stereotype.Component;

import dev.pgworker.job.JobKeyMode;
import dev.pgworker.job.JobScheduler;
import dev.pgworker.job.JobSpec;
import dev.pgworker.task.JobContext;
import dev.pgworker.task.JobHandler;

/** A task that runs again some time after its end. */
class Poll {

    private final Consumer<JobContext> partner;

    Poll(Consumer<JobContext> partner) {
        this.partner = partner;
    }

    @JobHandler("poll_partner")
    void poll(JobContext context) {
        partner.accept(context);
        context.addJob(
                "poll_partner",
                null,
                JobSpec.builder()
                        .jobKey("poll_partner")
                        .queueName("poll_partner")
                        .runIn(Duration.ofSeconds(30))
                        .build());
    }

    @Component
    static class Start implements ApplicationRunner {

        private final JobScheduler jobs;

        Start(JobScheduler jobs) {
            this.jobs = jobs;
        }

        @Override
        public void run(ApplicationArguments args) {
            jobs.addJob(
                    "poll_partner",
                    null,
                    JobSpec.builder()
                            .jobKey("poll_partner")
                            .queueName("poll_partner")
                            .jobKeyMode(JobKeyMode.PRESERVE_RUN_AT)
                            .build());
        }
    }
}
