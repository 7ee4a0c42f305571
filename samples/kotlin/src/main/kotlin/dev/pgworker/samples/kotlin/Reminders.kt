package dev.pgworker.samples.kotlin

import dev.pgworker.task.JobHandler
import kotlinx.coroutines.delay
import org.slf4j.LoggerFactory
import org.springframework.stereotype.Component
import kotlin.time.Duration.Companion.milliseconds

/** Who is to remember what; with SQL or from other programs, `note` may be null or missing. */
data class Reminder(val name: String, val note: String?)

@Component
class ReminderHandlers {

    private val log = LoggerFactory.getLogger(javaClass)

    @JobHandler("reminder", timeout = "1m")
    suspend fun remind(reminder: Reminder) {
        delay(100.milliseconds)
        log.info("{}, remember {}", reminder.name, reminder.note ?: "what you wanted to do")
    }
}
