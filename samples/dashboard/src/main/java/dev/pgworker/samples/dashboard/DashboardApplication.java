package dev.pgworker.samples.dashboard;

import java.util.Random;
import java.util.random.RandomGenerator;

import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.boot.context.properties.ConfigurationPropertiesScan;
import org.springframework.context.annotation.Bean;
import org.springframework.scheduling.annotation.EnableScheduling;

@SpringBootApplication
@ConfigurationPropertiesScan
@EnableScheduling
public class DashboardApplication {

    @Bean
    RandomGenerator random() {
        return new Random();
    }

    public static void main(String[] args) {
        SpringApplication.run(DashboardApplication.class, args);
    }
}
