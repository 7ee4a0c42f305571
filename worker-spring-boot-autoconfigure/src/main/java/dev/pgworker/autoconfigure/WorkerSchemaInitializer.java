package dev.pgworker.autoconfigure;

import org.springframework.beans.factory.InitializingBean;

import dev.pgworker.schema.SchemaMigrator;
import dev.pgworker.schema.SchemaMode;

/**
 * Migrates or validates the schema as soon as this bean is created. The application's own migrations wait for it, so
 * that they may call {@code add_job}.
 */
public final class WorkerSchemaInitializer implements InitializingBean {

    private final SchemaMigrator migrator;
    private final SchemaMode mode;

    /** Creates an initializer that does what the mode says. */
    public WorkerSchemaInitializer(SchemaMigrator migrator, SchemaMode mode) {
        this.migrator = migrator;
        this.mode = mode;
    }

    @Override
    public void afterPropertiesSet() {
        migrator.apply(mode);
    }
}
