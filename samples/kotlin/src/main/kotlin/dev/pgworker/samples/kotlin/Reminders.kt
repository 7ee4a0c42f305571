package dev.pgworker.samples.kotlin

import dev.pgworker.task.JobHandler
import org.slf4j.LoggerFactory
import org.springframework.stereotype.Component

/** Who is to remember what; with SQL or from other programs, `note` may be null or missing. */
data class Reminder(val name: String, val note: String?)

@Component
class ReminderHandlers {

    private val log = LoggerFactory.getLogger(javaClass)

    @JobHandler("reminder")
    fun remind(reminder: Reminder) {
        log.info("{}, remember {}", reminder.name, reminder.note ?: "what you wanted to do")
    }
}
