package dev.pgworker.autoconfigure;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.util.Collection;
import java.util.List;
import java.util.function.Predicate;
import java.util.function.UnaryOperator;

import org.slf4j.Logger;
import org.springframework.boot.context.properties.source.InvalidConfigurationPropertyValueException;
import org.springframework.core.io.Resource;

import dev.pgworker.crontab.CronItem;
import dev.pgworker.crontab.Crontab;
import dev.pgworker.internal.failure.WorkerLog;
import dev.pgworker.schedule.Schedule;
import dev.pgworker.task.JobHandler;

/** Joins everything in an application that declares recurring jobs: properties, annotated methods and beans. */
final class CrontabSources {

    private static final Logger log = WorkerLog.of(CrontabSources.class);

    private final Crontab.Builder crontab = Crontab.builder();

    /**
     * Begins with the texts of a worker's properties.
     *
     * @param prefix what the names of the properties begin with
     * @throws InvalidConfigurationPropertyValueException if the file cannot be read, or if the zone is not allowed
     */
    CrontabSources(String prefix, WorkerProperties properties) {
        requireAllowed(prefix, properties.crontabZone(), properties.crontabStrict());
        crontab.strict(properties.crontabStrict());
        if (properties.crontab() != null) {
            crontab.text(prefix + ".crontab", properties.crontab());
        }
        Resource file = properties.crontabFile();
        if (file != null) {
            crontab.text(prefix + ".crontab-file (" + file.getDescription() + ")", content(prefix, file));
        }
    }

    /**
     * Adds what annotated methods declare.
     *
     * @param beanClasses the classes whose methods may be annotated
     * @param served whether the worker serves an annotated method
     * @param resolver replaces placeholders in the attributes
     */
    CrontabSources methods(
            Collection<Class<?>> beanClasses, Predicate<JobHandler> served, UnaryOperator<String> resolver) {
        crontab.resolver(resolver);
        beanClasses.forEach(type -> addMethods(type, served));
        return this;
    }

    /** Adds beans. */
    CrontabSources beans(List<CronItem> items, List<Schedule> schedules) {
        items.forEach(crontab::item);
        schedules.forEach(crontab::schedule);
        return this;
    }

    /**
     * Returns all of them.
     *
     * @throws dev.pgworker.crontab.CrontabException if anything in them is wrong; it tells all mistakes
     */
    Crontab crontab() {
        return crontab.build();
    }

    private static void requireAllowed(String prefix, ZoneId zone, boolean strict) {
        if (strict && !zone.normalized().equals(ZoneOffset.UTC)) {
            throw new InvalidConfigurationPropertyValueException(
                    prefix + ".crontab-zone",
                    zone,
                    "It must be UTC when " + prefix
                            + ".crontab-strict is true: other Graphile Workers read crontabs in UTC.");
        }
    }

    private void addMethods(Class<?> type, Predicate<JobHandler> served) {
        try {
            crontab.methods(type, served);
        } catch (IllegalStateException | LinkageError e) {
            // A method mentions a class of an optional dependency that is not there.
            log.debug("The methods of {} cannot be read", type, e);
        }
    }

    private static String content(String prefix, Resource file) {
        try {
            return file.getContentAsString(StandardCharsets.UTF_8);
        } catch (IOException e) {
            throw new InvalidConfigurationPropertyValueException(
                    prefix + ".crontab-file", file, "It cannot be read: " + e.getMessage() + ".");
        }
    }
}
