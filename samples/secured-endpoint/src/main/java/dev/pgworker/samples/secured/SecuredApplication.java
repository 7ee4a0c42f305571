package dev.pgworker.samples.secured;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;

import dev.pgworker.task.JobHandler;

@SpringBootApplication
public class SecuredApplication {

    private static final Logger log = LoggerFactory.getLogger(SecuredApplication.class);

    public static void main(String[] args) {
        SpringApplication.run(SecuredApplication.class, args);
    }

    @JobHandler("hello")
    void hello() {
        log.info("Hello");
    }
}
