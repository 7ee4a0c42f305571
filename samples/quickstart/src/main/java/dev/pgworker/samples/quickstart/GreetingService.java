package dev.pgworker.samples.quickstart;

import org.springframework.jdbc.core.simple.JdbcClient;
import org.springframework.stereotype.Service;
import org.springframework.transaction.annotation.Transactional;

import dev.pgworker.job.JobScheduler;
import dev.pgworker.job.Task;

@Service
class GreetingService {

    static final Task<Greeting> HELLO = Task.of("hello", Greeting.class);

    private final JdbcClient jdbc;
    private final JobScheduler jobs;

    GreetingService(JdbcClient jdbc, JobScheduler jobs) {
        this.jdbc = jdbc;
        this.jobs = jobs;
    }

    /** Stores the greeting and adds its job: both or neither. */
    @Transactional
    void add(Greeting greeting) {
        jdbc.sql("insert into greeting (name) values (?)")
                .param(greeting.name())
                .update();
        jobs.addJob(HELLO, greeting);
    }
}
