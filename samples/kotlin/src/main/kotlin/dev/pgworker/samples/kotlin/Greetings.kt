package dev.pgworker.samples.kotlin

import dev.pgworker.job.JobScheduler
import dev.pgworker.job.JobSpec
import dev.pgworker.job.Task
import dev.pgworker.task.BatchResult
import dev.pgworker.task.JobContext
import dev.pgworker.task.JobHandler
import dev.pgworker.task.RetryDelay
import dev.pgworker.task.TaskOptions
import dev.pgworker.task.TaskRegistration
import org.slf4j.LoggerFactory
import org.springframework.context.annotation.Bean
import org.springframework.context.annotation.Configuration
import org.springframework.core.ParameterizedTypeReference
import org.springframework.stereotype.Component
import org.springframework.stereotype.Service
import org.springframework.transaction.annotation.Transactional
import java.time.Duration

data class Greeting(val name: String, val language: String = "en")

inline fun <reified T : Any> task(identifier: String): Task<T> =
    Task.of(identifier, object : ParameterizedTypeReference<T>() {})

object Tasks {
    val HELLO = task<Greeting>("hello")
    val NEWSLETTER = task<List<Greeting>>("newsletter")
    val GOODBYE = task<Greeting>("goodbye")
}

@Component
class GreetingHandlers {

    private val log = LoggerFactory.getLogger(javaClass)

    @JobHandler("hello", timeout = "30s")
    fun hello(greeting: Greeting, context: JobContext) {
        log.info("{}: {} {}", context, if (greeting.language == "de") "Hallo" else "Hello", greeting.name)
    }

    @JobHandler("newsletter")
    fun newsletter(greetings: List<Greeting>): BatchResult =
        BatchResult.forEach(greetings) { log.info("News for {}", it.name) }
}

@Service
class GreetingService(private val jobs: JobScheduler) {

    @Transactional
    fun greet(greeting: Greeting) {
        jobs.addJob(Tasks.HELLO, greeting, JobSpec.builder().jobKey("hello-${greeting.name}").build())
    }

    fun greetAll(greetings: List<Greeting>) {
        jobs.addBatchJob(Tasks.NEWSLETTER, greetings)
    }
}

@Configuration(proxyBeanMethods = false)
class Functions {

    private val log = LoggerFactory.getLogger(javaClass)

    @Bean
    fun goodbye(): TaskRegistration =
        TaskRegistration.of(Tasks.GOODBYE) { greeting, _ -> log.info("Goodbye, {}", greeting.name) }
            .with(TaskOptions.DEFAULT.withRetryDelay(RetryDelay.fixed(Duration.ofMinutes(1))))
}
