package dev.pgworker.samples.apiandworker;

import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;

/** Runs as API or worker with the profile {@code api} or {@code worker}, and as both without either. */
@SpringBootApplication
public class ApiAndWorkerApplication {

    public static void main(String[] args) {
        SpringApplication.run(ApiAndWorkerApplication.class, args);
    }
}
