package dev.pgworker.autoconfigure.health;

import org.springframework.boot.health.contributor.AbstractHealthIndicator;
import org.springframework.boot.health.contributor.Health;

import dev.pgworker.schema.SchemaException;
import dev.pgworker.schema.SchemaMigrator;
import dev.pgworker.schema.WorkerSchema;

/** Down if the database does not answer, or does not have the schema as this version needs it. */
final class SchemaHealthIndicator extends AbstractHealthIndicator {

    private final SchemaMigrator migrator;
    private final WorkerSchema schema;

    SchemaHealthIndicator(SchemaMigrator migrator, WorkerSchema schema) {
        super("The worker's schema cannot be read");
        this.migrator = migrator;
        this.schema = schema;
    }

    @Override
    protected void doHealthCheck(Health.Builder builder) {
        builder.withDetail("schema", schema.name());
        try {
            builder.up().withDetail("version", migrator.version());
        } catch (SchemaException e) {
            builder.down(e).withDetail("problem", e.problem() + " " + e.action());
        }
    }
}
