package dev.pgworker.samples.kotlin

import dev.pgworker.testsupport.EmbeddedDatabase
import org.springframework.boot.runApplication

/** Starts the sample with an embedded PostgreSQL unless `spring.datasource.url` names another. */
fun main(args: Array<String>) {
    runApplication<KotlinApplication>(*args) { addInitializers(EmbeddedDatabase()) }
}
