package dev.pgworker.samples.kotlin

import dev.pgworker.event.WorkerEvent
import dev.pgworker.event.WorkerEventListener
import dev.pgworker.job.JobScheduler
import dev.pgworker.testsupport.TestPostgres
import org.assertj.core.api.Assertions.assertThat
import org.junit.jupiter.api.AfterAll
import org.junit.jupiter.api.Test
import org.springframework.beans.factory.annotation.Autowired
import org.springframework.boot.test.context.SpringBootTest
import org.springframework.boot.test.context.TestConfiguration
import org.springframework.context.annotation.Bean
import org.springframework.context.annotation.Import
import org.springframework.jdbc.core.simple.JdbcClient
import org.springframework.test.annotation.DirtiesContext
import org.springframework.test.context.DynamicPropertyRegistry
import org.springframework.test.context.DynamicPropertySource
import java.util.concurrent.BlockingQueue
import java.util.concurrent.LinkedBlockingQueue
import java.util.concurrent.TimeUnit

@SpringBootTest
@Import(KotlinTest.Recording::class)
@DirtiesContext
class KotlinTest(
    @Autowired private val jobs: JobScheduler,
    @Autowired private val completed: BlockingQueue<String>,
) {

    @TestConfiguration(proxyBeanMethods = false)
    class Recording {

        @Bean
        fun completed(): BlockingQueue<String> = LinkedBlockingQueue()

        @Bean
        fun recorder(completed: BlockingQueue<String>) = WorkerEventListener { event ->
            if (event is WorkerEvent.JobCompleted) {
                completed.add(event.job().taskIdentifier())
            }
        }
    }

    @Test
    fun `jobs of all kinds run`() {
        jobs.addJob(Tasks.GOODBYE, Greeting("Ada"))

        val ran = (1..3).mapNotNull { completed.poll(30, TimeUnit.SECONDS) }

        assertThat(ran).containsExactlyInAnyOrder("hello", "newsletter", "goodbye")
    }

    companion object {

        private val schema = "kotlin_${ProcessHandle.current().pid()}"

        @JvmStatic
        @DynamicPropertySource
        fun database(registry: DynamicPropertyRegistry) {
            registry.add("spring.datasource.url") { TestPostgres.jdbcUrl() }
            registry.add("worker.schema.name") { schema }
        }

        @JvmStatic
        @AfterAll
        fun dropSchema(@Autowired jdbc: JdbcClient) {
            jdbc.sql("drop schema $schema cascade").update()
        }
    }
}
