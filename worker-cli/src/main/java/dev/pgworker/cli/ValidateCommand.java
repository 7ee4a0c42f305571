package dev.pgworker.cli;

import picocli.CommandLine.Command;

import dev.pgworker.schema.SchemaMigrator;

/** Checks the schema and changes nothing. */
@Command(
        name = "validate",
        description =
                "Check that the schema is installed and up to date, and change nothing. Exit status 4 if it is not.",
        footer = {"  worker-cli validate --schema graphile_worker"})
final class ValidateCommand extends SessionCommand {

    ValidateCommand(Session session) {
        super(session);
    }

    @Override
    public Integer call() {
        SchemaMigrator migrator = session.migrator();
        migrator.validate();
        MigrateCommand.tell(session, migrator);
        return ExitStatus.OK;
    }
}
