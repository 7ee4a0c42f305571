package dev.pgworker.samples.recovery;

import org.springframework.boot.ApplicationRunner;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.context.annotation.Bean;

import dev.pgworker.job.JobScheduler;

/** A worker. With {@code --add} it also adds a job. */
@SpringBootApplication
public class RecoveryApplication {

    public static void main(String[] args) {
        SpringApplication.run(RecoveryApplication.class, args);
    }

    @Bean
    ApplicationRunner addJob(JobScheduler jobs) {
        return arguments -> {
            if (arguments.containsOption("add")) {
                jobs.addJob(CatalogImport.IMPORT_CATALOG, new CatalogImport.Catalog(10));
            }
        };
    }
}
