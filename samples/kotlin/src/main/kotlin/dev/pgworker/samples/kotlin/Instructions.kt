package dev.pgworker.samples.kotlin

import dev.pgworker.schema.WorkerSchema
import org.slf4j.LoggerFactory
import org.springframework.boot.context.event.ApplicationReadyEvent
import org.springframework.context.event.EventListener
import org.springframework.core.env.Environment
import org.springframework.stereotype.Component
import javax.sql.DataSource

/** Says at start how to try the application. */
@Component
class Instructions(
    private val environment: Environment,
    private val dataSource: DataSource,
    private val schema: WorkerSchema,
) {

    private val log = LoggerFactory.getLogger(javaClass)

    @EventListener(ApplicationReadyEvent::class)
    fun print() {
        val url = "http://localhost:${environment.getProperty("local.server.port")}"
        val psqlAddress = dataSource.connection.use {
            // Parameters may hold a password.
            it.metaData.url.substringBefore('?').removePrefix("jdbc:") + "?user=" + it.metaData.userName
        }
        log.info(
            """
            Ready. Add jobs over HTTP, or with SQL from any program; the last one lacks its name:

              curl -H 'Content-Type: application/json' -d '{"name":"Ada"}' $url/greetings
              curl -H 'Content-Type: application/json' -d '[{"name":"Ada"},{"name":"Grace"}]' $url/newsletters

              psql '$psqlAddress' -c "select ${schema.name()}.add_job('reminder', json_build_object('name', 'Alan'))"
              psql '$psqlAddress' -c "select ${schema.name()}.add_job('reminder', json_build_object('note', 'the milk'))"
            """.trimIndent(),
        )
    }
}
