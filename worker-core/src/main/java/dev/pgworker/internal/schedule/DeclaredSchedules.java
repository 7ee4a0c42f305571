package dev.pgworker.internal.schedule;

import java.sql.SQLException;

import dev.pgworker.internal.store.ScheduleStore;

/** Puts the schedules that an application declares into the database, once. Used by one thread. */
final class DeclaredSchedules {

    DeclaredSchedules(ScheduleStore store, SchedulePlan plan) {}

    void put() throws SQLException {}
}
