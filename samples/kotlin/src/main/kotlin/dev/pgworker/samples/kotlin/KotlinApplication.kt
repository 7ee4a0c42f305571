package dev.pgworker.samples.kotlin

import org.springframework.boot.ApplicationRunner
import org.springframework.boot.autoconfigure.SpringBootApplication
import org.springframework.boot.runApplication
import org.springframework.context.annotation.Bean

@SpringBootApplication
class KotlinApplication {

    @Bean
    fun firstJobs(greetings: GreetingService) = ApplicationRunner {
        greetings.greet(Greeting("Ada"))
        greetings.greetAll(listOf(Greeting("Grace"), Greeting("Konrad", "de")))
    }
}

fun main(args: Array<String>) {
    runApplication<KotlinApplication>(*args)
}
