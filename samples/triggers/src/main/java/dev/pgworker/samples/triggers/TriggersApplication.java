package dev.pgworker.samples.triggers;

import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;

@SpringBootApplication
public class TriggersApplication {

    public static void main(String[] args) {
        SpringApplication.run(TriggersApplication.class, args);
    }
}
