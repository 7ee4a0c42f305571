package dev.pgworker.samples.sqlandnode;

import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;

@SpringBootApplication
public class SqlAndNodeApplication {

    public static void main(String[] args) {
        SpringApplication.run(SqlAndNodeApplication.class, args);
    }
}
