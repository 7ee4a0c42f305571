package dev.pgworker.cli;

import java.time.Duration;

import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

import dev.pgworker.schema.PeerIndexes;
import dev.pgworker.schema.SchemaMigrator;
import dev.pgworker.schema.SchemaMode;

/** Installs the schema, adopts it, or brings it up to date. */
@Command(
        name = "migrate",
        description = {
            "Install the schema, adopt that of a Graphile Worker for Node.js or Rust, or upgrade it.",
            "Workers and programs that add jobs continue in the meantime."
        },
        footer = {"  worker-cli migrate --user owner --password-file /run/secrets/owner"})
final class MigrateCommand extends SessionCommand {

    @Option(
            names = "--peer-indexes",
            paramLabel = "MODE",
            description = "Indexes that only workers of Node.js and Rust need: auto, always or never. Default: auto.")
    private PeerIndexes peerIndexes = PeerIndexes.AUTO;

    @Option(
            names = "--startup-timeout",
            paramLabel = "DURATION",
            converter = Times.DurationConverter.class,
            description = "How long to wait for a server that is starting up. Default: 1m.")
    private Duration startupTimeout = Duration.ofMinutes(1);

    MigrateCommand(Session session) {
        super(session);
    }

    @Override
    public Integer call() {
        session.logMigration();
        SchemaMigrator migrator = session.migrator(peerIndexes);
        migrator.apply(SchemaMode.MIGRATE, startupTimeout);
        tell(session, migrator);
        return ExitStatus.OK;
    }

    /** Tells the version of a schema that is in place. */
    static void tell(Session session, SchemaMigrator migrator) {
        String version = migrator.version();
        String schema = session.schema().name();
        if (session.isJson()) {
            session.writeJson(Json.object("schema", schema, "version", version));
        } else {
            session.terminal().out().println("Schema " + schema + " is up to date (version " + version + ")");
        }
    }
}
