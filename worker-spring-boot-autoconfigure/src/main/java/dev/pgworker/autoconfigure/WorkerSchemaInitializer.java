package dev.pgworker.autoconfigure;

import java.io.IOException;
import java.sql.SQLException;
import java.sql.SQLTransientException;
import java.time.Duration;

import org.slf4j.Logger;
import org.springframework.beans.factory.InitializingBean;
import org.springframework.core.NestedExceptionUtils;

import dev.pgworker.internal.failure.WorkerLog;
import dev.pgworker.schema.SchemaException;
import dev.pgworker.schema.SchemaMigrator;
import dev.pgworker.schema.SchemaMode;

/**
 * Migrates or validates the schema as soon as this bean is created. The application's own migrations wait for it, so
 * that they may call {@code add_job}.
 *
 * @since 0.1.0
 */
public final class WorkerSchemaInitializer implements InitializingBean {

    private static final Logger log = WorkerLog.of(WorkerSchemaInitializer.class);

    private final SchemaMigrator migrator;
    private final SchemaMode mode;
    private final Duration startupTimeout;
    private final Runnable afterwards;

    /**
     * Creates an initializer that acts according to the mode, and waits up to a minute for a server that is starting
     * up.
     */
    public WorkerSchemaInitializer(SchemaMigrator migrator, SchemaMode mode) {
        this(migrator, mode, Duration.ofMinutes(1));
    }

    /**
     * Creates an initializer that acts according to the mode.
     *
     * @param startupTimeout maximum time to wait for a server that is starting up
     */
    public WorkerSchemaInitializer(SchemaMigrator migrator, SchemaMode mode, Duration startupTimeout) {
        this(migrator, mode, startupTimeout, () -> {});
    }

    /**
     * Creates an initializer that does something else afterwards, where the database has been used.
     *
     * @param afterwards may throw to fail the start
     */
    WorkerSchemaInitializer(SchemaMigrator migrator, SchemaMode mode, Duration startupTimeout, Runnable afterwards) {
        this.migrator = migrator;
        this.mode = mode;
        this.startupTimeout = startupTimeout;
        this.afterwards = mode == SchemaMode.NONE ? () -> {} : afterwards;
    }

    @Override
    public void afterPropertiesSet() {
        migrator.apply(mode, startupTimeout);
        afterwards.run();
    }

    /**
     * Logs what is wrong with a schema that nobody has looked at during the start. Returns at once: the start neither needs the database nor
     * waits for it.
     */
    void lookAfterStart() {
        if (mode == SchemaMode.NONE) {
            Thread look = new Thread(this::tellProblem, "worker-schema-look");
            look.setDaemon(true);
            look.start();
        }
    }

    private void tellProblem() {
        try {
            String unused = migrator.version();
        } catch (SchemaException e) {
            // The worker reports a database that cannot be used.
            if (!isOutage(NestedExceptionUtils.getMostSpecificCause(e))) {
                log.warn("{} {} It is used as it is, as pgworker.schema.mode=none says", e.problem(), e.action());
            }
        } catch (RuntimeException e) {
            log.debug("The schema cannot be looked at", e);
        }
    }

    private static boolean isOutage(Throwable cause) {
        return cause instanceof IOException
                || cause instanceof SQLTransientException
                || (cause instanceof SQLException sql
                        && sql.getSQLState() != null
                        && sql.getSQLState().matches("(08|53|57P|58).*"));
    }
}
