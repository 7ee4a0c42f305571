package dev.pgworker.samples.kotlin

import org.slf4j.LoggerFactory
import org.springframework.boot.context.event.ApplicationReadyEvent
import org.springframework.context.event.EventListener
import org.springframework.core.env.Environment
import org.springframework.stereotype.Component

/** Says at start how to try the application. */
@Component
class Instructions(private val environment: Environment) {

    private val log = LoggerFactory.getLogger(javaClass)

    @EventListener(ApplicationReadyEvent::class)
    fun print() {
        val url = "http://localhost:${environment.getProperty("local.server.port")}"
        log.info(
            """
            Ready. Add jobs; the last one lacks its name:

              curl -H 'Content-Type: application/json' -d '{"name":"Ada","title":"Dr."}' $url/greetings
              curl -H 'Content-Type: application/json' -d '[{"name":"Ada"},{"name":"Grace"}]' $url/newsletters
              curl -H 'Content-Type: application/json' -d '{"language":"de"}' $url/greetings
            """.trimIndent(),
        )
    }
}
