package dev.pgworker.crontab;

import java.time.ZoneId;

import dev.pgworker.schedule.Recurrence;
import dev.pgworker.schedule.Schedule;

/**
 * A schedule of an application.
 *
 * @param location where it is declared, for messages
 * @param zoneIsOpen whether the crontab's zone applies to it
 */
record DeclaredSchedule(SourceLocation location, Schedule schedule, boolean zoneIsOpen) {

    /** Returns this schedule in the given zone, unless it has one of its own or none. */
    DeclaredSchedule withDefaultZone(ZoneId zone) {
        Recurrence recurrence = schedule.recurrence();
        String expression = recurrence.expression();
        if (!zoneIsOpen || expression == null) {
            return this;
        }
        Recurrence inZone = recurrence.kind() == Recurrence.Kind.CRON
                ? Recurrence.cron(expression, zone)
                : Recurrence.crontab(expression, zone);
        return new DeclaredSchedule(
                location, schedule.toBuilder().recurrence(inZone).build(), false);
    }
}
