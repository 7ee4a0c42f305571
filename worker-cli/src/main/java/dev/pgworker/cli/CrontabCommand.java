package dev.pgworker.cli;

import picocli.CommandLine.Command;

/** What needs a crontab and no database. */
@Command(
        name = "crontab",
        description = "Check a crontab.",
        footer = {"  worker-cli crontab check src/main/resources/crontab"})
final class CrontabCommand {}
