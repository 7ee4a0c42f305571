package dev.pgworker.samples.datasources;

import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;

@SpringBootApplication
public class DataSourcesApplication {

    public static void main(String[] args) {
        SpringApplication.run(DataSourcesApplication.class, args);
    }
}
