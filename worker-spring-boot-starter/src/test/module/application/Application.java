package application;

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;

import dev.pgworker.job.JobScheduler;
import dev.pgworker.task.JobHandler;

/** Adds one job, runs it, says so and ends. */
@SpringBootApplication
public class Application {

    record Greeting(String name) {}

    static class Greetings {

        private final CountDownLatch greeted = new CountDownLatch(1);

        @JobHandler("greet")
        void greet(Greeting greeting) {
            System.out.println("Hello " + greeting.name() + " from " + getClass().getModule());
            greeted.countDown();
        }
    }

    @Bean
    Greetings greetings() {
        return new Greetings();
    }

    public static void main(String[] args) throws InterruptedException {
        try (ConfigurableApplicationContext context = SpringApplication.run(Application.class, args)) {
            JobScheduler jobs = context.getBean(JobScheduler.class);
            System.out.println("The scheduler is from " + JobScheduler.class.getModule());
            jobs.addJob("greet", new Greeting("Ada"));
            if (!context.getBean(Greetings.class).greeted.await(120, TimeUnit.SECONDS)) {
                throw new IllegalStateException("The job did not run");
            }
        }
    }
}
