package dev.pgworker.autoconfigure;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.util.Collection;
import java.util.List;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.boot.context.properties.source.InvalidConfigurationPropertyValueException;
import org.springframework.core.io.Resource;

import dev.pgworker.crontab.CronItem;
import dev.pgworker.crontab.Crontab;

/** Everything in an application that declares recurring jobs. */
final class CrontabSources {

    private static final Logger log = LoggerFactory.getLogger(CrontabSources.class);

    private CrontabSources() {}

    /**
     * Joins properties, annotated methods and beans.
     *
     * @param beanClasses the classes whose methods may be annotated
     * @throws dev.pgworker.crontab.CrontabException if anything in them is wrong; it tells all mistakes
     * @throws InvalidConfigurationPropertyValueException if the file cannot be read, or if the zone is not allowed
     */
    static Crontab read(WorkerProperties properties, Collection<Class<?>> beanClasses, List<CronItem> items) {
        requireAllowed(properties.crontabZone(), properties.crontabStrict());
        Crontab.Builder crontab = Crontab.builder().strict(properties.crontabStrict());
        if (properties.crontab() != null) {
            crontab.text("worker.crontab", properties.crontab());
        }
        Resource file = properties.crontabFile();
        if (file != null) {
            crontab.text("worker.crontab-file (" + file.getDescription() + ")", content(file));
        }
        beanClasses.forEach(type -> addMethods(crontab, type));
        items.forEach(crontab::item);
        return crontab.build();
    }

    private static void requireAllowed(ZoneId zone, boolean strict) {
        if (strict && !zone.normalized().equals(ZoneOffset.UTC)) {
            throw new InvalidConfigurationPropertyValueException(
                    "worker.crontab-zone",
                    zone,
                    "It must be UTC when worker.crontab-strict is true: other Graphile Workers read crontabs in UTC.");
        }
    }

    private static void addMethods(Crontab.Builder crontab, Class<?> type) {
        try {
            crontab.methods(type);
        } catch (IllegalStateException | LinkageError e) {
            // A method mentions a class of an optional dependency that is not there.
            log.debug("The methods of {} cannot be read", type, e);
        }
    }

    private static String content(Resource file) {
        try {
            return file.getContentAsString(StandardCharsets.UTF_8);
        } catch (IOException e) {
            throw new InvalidConfigurationPropertyValueException(
                    "worker.crontab-file", file, "It cannot be read: " + e.getMessage() + ".");
        }
    }
}
