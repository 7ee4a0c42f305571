package dev.pgworker.samples.kotlin

import dev.pgworker.event.WorkerEvent
import dev.pgworker.event.WorkerEvent.JobCompleted
import dev.pgworker.event.WorkerEvent.JobFailed
import dev.pgworker.event.WorkerEventListener
import dev.pgworker.job.JobScheduler
import dev.pgworker.task.BatchResult
import dev.pgworker.task.HandlerDefinitionException
import dev.pgworker.task.JobHandler
import dev.pgworker.task.JobHandlerMethods
import dev.pgworker.task.JobTimeoutException
import dev.pgworker.testsupport.TestPostgres
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.NonCancellable
import kotlinx.coroutines.delay
import kotlinx.coroutines.isActive
import kotlinx.coroutines.withContext
import org.assertj.core.api.Assertions.assertThat
import org.assertj.core.api.Assertions.assertThatThrownBy
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.extension.ExtendWith
import org.springframework.aop.framework.ProxyFactory
import org.springframework.beans.factory.annotation.Autowired
import org.springframework.boot.test.context.SpringBootTest
import org.springframework.boot.test.context.SpringBootTest.WebEnvironment
import org.springframework.boot.test.context.TestConfiguration
import org.springframework.boot.test.system.CapturedOutput
import org.springframework.boot.test.system.OutputCaptureExtension
import org.springframework.boot.test.web.server.LocalServerPort
import org.springframework.context.annotation.Bean
import org.springframework.context.annotation.Import
import org.springframework.test.annotation.DirtiesContext
import org.springframework.test.context.DynamicPropertyRegistry
import org.springframework.test.context.DynamicPropertySource
import org.springframework.transaction.annotation.Transactional
import org.springframework.transaction.support.TransactionSynchronizationManager
import java.io.IOException
import java.net.URI
import java.net.http.HttpClient
import java.net.http.HttpRequest
import java.net.http.HttpRequest.BodyPublishers
import java.net.http.HttpResponse.BodyHandlers
import java.util.concurrent.BlockingQueue
import java.util.concurrent.LinkedBlockingQueue
import java.util.concurrent.TimeUnit.SECONDS
import kotlin.time.Duration.Companion.hours
import kotlin.time.Duration.Companion.milliseconds

@SpringBootTest(webEnvironment = WebEnvironment.RANDOM_PORT)
@Import(KotlinTest.Recording::class)
@ExtendWith(OutputCaptureExtension::class)
@DirtiesContext
class KotlinTest(
    @param:LocalServerPort private val port: Int,
    @param:Autowired private val jobs: JobScheduler,
    @param:Autowired private val finished: BlockingQueue<WorkerEvent>,
    @param:Autowired private val suspending: SuspendingHandlers,
) {

    companion object {
        private val database = TestPostgres.newDatabase("kotlin")

        @DynamicPropertySource
        @JvmStatic
        fun database(registry: DynamicPropertyRegistry) {
            registry.add("spring.datasource.url") { database }
        }
    }

    @TestConfiguration(proxyBeanMethods = false)
    class Recording {

        @Bean
        fun finished(): BlockingQueue<WorkerEvent> = LinkedBlockingQueue()

        @Bean
        fun suspending() = SuspendingHandlers()

        @Bean
        fun recorder(finished: BlockingQueue<WorkerEvent>) = WorkerEventListener { event ->
            if (event is JobCompleted || event is JobFailed) {
                finished.add(event)
            }
        }
    }

    @Test
    fun `a posted greeting runs`(output: CapturedOutput) {
        assertThat(post("/greetings", """{"name":"Konrad","language":"de"}""")).isEqualTo(202)

        assertThat(nextCompleted()).isEqualTo("hello")
        assertThat(output).contains("Hallo Konrad")
    }

    @Test
    fun `each item of a batch is handled`(output: CapturedOutput) {
        assertThat(post("/newsletters", """[{"name":"Ada"},{"name":"Grace"}]""")).isEqualTo(202)

        assertThat(nextCompleted()).isEqualTo("newsletter")
        assertThat(output).contains("News for Ada").contains("News for Grace")
    }

    @Test
    fun `a function is a handler`(output: CapturedOutput) {
        jobs.addJob(Tasks.GOODBYE, Greeting("Ada"))

        assertThat(nextCompleted()).isEqualTo("goodbye")
        assertThat(output).contains("Goodbye, Ada")
    }

    @Test
    fun `a property that a payload lacks has its default`(output: CapturedOutput) {
        jobs.addJob("hello", mapOf("name" to "Alan"))

        assertThat(nextCompleted()).isEqualTo("hello")
        assertThat(output).contains("Hello Alan")
    }

    @Test
    fun `a property that may be null may be missing`(output: CapturedOutput) {
        jobs.addJob("reminder", mapOf("name" to "Alan"))

        assertThat(nextCompleted()).isEqualTo("reminder")
        assertThat(output).contains("Alan, remember what you wanted to do")
    }

    @Test
    fun `a missing property that may not be null fails the attempt`() {
        jobs.addJob("reminder", mapOf("note" to "the milk"))

        val failed = next() as JobFailed
        assertThat(failed.error()).hasMessageContaining("at $.name")
    }

    class SuspendingHandlers {

        val seen = LinkedBlockingQueue<Any>()

        @JobHandler("transaction", transactional = true)
        suspend fun inTransaction() {
            val thread = Thread.currentThread()
            delay(1.milliseconds)
            seen.add(thread == Thread.currentThread() && TransactionSynchronizationManager.isActualTransactionActive())
        }

        @JobHandler("endless", timeout = "200ms", maxAttempts = 1)
        suspend fun endless() {
            try {
                delay(1.hours)
            } finally {
                seen.add("cancelled")
            }
        }

        @JobHandler("elsewhere", timeout = "200ms", maxAttempts = 1)
        suspend fun elsewhere() {
            val thread = Thread.currentThread()
            try {
                withContext(Dispatchers.IO) {
                    while (isActive) {
                        Thread.onSpinWait()
                    }
                    // Long enough for an attempt that does not wait for it to end.
                    Thread.sleep(300)
                    seen.add("ended")
                }
            } finally {
                withContext(NonCancellable) { delay(1.milliseconds) }
                seen.add(thread == Thread.currentThread())
            }
        }

        @JobHandler("failing", maxAttempts = 1)
        suspend fun failing(greeting: Greeting) {
            delay(1.milliseconds)
            throw IOException("no mail for ${greeting.name}")
        }

        @JobHandler("some", maxAttempts = 1)
        suspend fun some(greetings: List<Greeting>): BatchResult {
            delay(1.milliseconds)
            return BatchResult.forEach(greetings) { check(it.name == "Ada") }
        }
    }

    @Test
    fun `a suspend function keeps its thread and its transaction`() {
        jobs.addJob("transaction", null)

        assertThat(nextCompleted()).isEqualTo("transaction")
        assertThat(suspending.seen.poll()).isEqualTo(true)
    }

    @Test
    fun `a timeout cancels a suspend function`() {
        jobs.addJob("endless", null)

        assertThat((next() as JobFailed).error()).isInstanceOf(JobTimeoutException::class.java)
        assertThat(suspending.seen.poll()).isEqualTo("cancelled")
    }

    @Test
    fun `a cancelled suspend function ends on other threads and cleans up before its attempt ends`() {
        jobs.addJob("elsewhere", null)

        assertThat((next() as JobFailed).error()).isInstanceOf(JobTimeoutException::class.java)
        assertThat(listOf(suspending.seen.poll(), suspending.seen.poll())).containsExactly("ended", true)
    }

    @Test
    fun `a suspend function that throws fails the attempt`() {
        jobs.addJob("failing", Greeting("Ada"))

        assertThat((next() as JobFailed).error()).isInstanceOf(IOException::class.java).hasMessage("no mail for Ada")
    }

    @Test
    fun `a suspend function handles a batch`() {
        jobs.addJob("some", listOf(Greeting("Ada"), Greeting("Alan")))

        assertThat(next()).isInstanceOf(JobFailed::class.java)
    }

    open class Proxied {
        @Transactional
        @JobHandler("proxied")
        open suspend fun handle(greeting: Greeting) = check(greeting.name.isNotEmpty())
    }

    @Test
    fun `a suspend function of a proxy is refused`() {
        val proxy = ProxyFactory(Proxied()).apply { isProxyTargetClass = true }.proxy

        assertThatThrownBy { JobHandlerMethods.find(proxy) }
            .isInstanceOf(HandlerDefinitionException::class.java)
            .hasMessageContaining("is a suspend function, but its bean is a proxy")
    }

    private fun nextCompleted(): String = (next() as JobCompleted).job().taskIdentifier()

    private fun next(): WorkerEvent = checkNotNull(finished.poll(120, SECONDS)) { "no job has finished" }

    private fun post(path: String, body: String): Int {
        val request = HttpRequest.newBuilder(URI("http://localhost:$port$path"))
            .header("Content-Type", "application/json")
            .POST(BodyPublishers.ofString(body))
            .build()
        return HttpClient.newHttpClient().send(request, BodyHandlers.discarding()).statusCode()
    }
}
