package dev.pgworker.cli;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.function.BiFunction;
import java.util.function.Predicate;
import java.util.logging.Level;
import java.util.logging.Logger;
import java.util.stream.Collectors;
import javax.sql.DataSource;

import org.jspecify.annotations.Nullable;
import org.springframework.jdbc.datasource.SingleConnectionDataSource;
import picocli.CommandLine.Option;
import picocli.CommandLine.ScopeType;
import tools.jackson.databind.json.JsonMapper;

import dev.pgworker.WorkerClient;
import dev.pgworker.job.JobChanges;
import dev.pgworker.job.JobQueries;
import dev.pgworker.job.JobScheduler;
import dev.pgworker.job.WorkerOperations;
import dev.pgworker.limit.JobLimits;
import dev.pgworker.schedule.RecurringJobs;
import dev.pgworker.schema.PeerIndexes;
import dev.pgworker.schema.SchemaMigrator;
import dev.pgworker.schema.WorkerSchema;
import dev.pgworker.step.JobSignals;
import dev.pgworker.step.StepSettings;
import dev.pgworker.task.PayloadCodec;

/** What all commands share: options for connection and output, and what they are needed for. */
final class Session {

    /** What the driver logs is in its exceptions as well. */
    private static final Logger DRIVER_LOG = Logger.getLogger("org.postgresql");

    private static final int LONGEST_NAME = 255;

    private static final String LOG_LEVEL = "org.slf4j.simpleLogger.log.";

    /** What this logs about a sweep the command says itself. */
    private static final String SWEEP_LOG = LOG_LEVEL + "dev.pgworker.internal.store.SweepReport";

    @Option(
            names = {"-c", "--url", "--connection"},
            paramLabel = "URL",
            scope = ScopeType.INHERIT,
            description = "The database: postgres://user@host:5432/database, a JDBC URL, or a name. Without a password."
                    + " Default: PGWORKER_URL, DATABASE_URL, SPRING_DATASOURCE_URL, then PGHOST, PGDATABASE ...")
    private @Nullable String url;

    @Option(
            names = {"-U", "--user"},
            paramLabel = "NAME",
            scope = ScopeType.INHERIT,
            description = "The user, instead of the one in URL or PGUSER.")
    private @Nullable String user;

    @Option(
            names = {"-W", "--password"},
            scope = ScopeType.INHERIT,
            description = "Ask for the password. Default: the one in PGWORKER_URL, PGPASSWORD, ~/.pgpass.")
    private boolean askPassword;

    @Option(
            names = "--password-file",
            paramLabel = "FILE",
            scope = ScopeType.INHERIT,
            description = "A file whose first line is the password.")
    private @Nullable Path passwordFile;

    @Option(
            names = {"-s", "--schema"},
            paramLabel = "NAME",
            scope = ScopeType.INHERIT,
            description = "The schema. Default: PGWORKER_SCHEMA, GRAPHILE_WORKER_SCHEMA, then graphile_worker.")
    private @Nullable String schemaName;

    @Option(
            names = {"-o", "--output"},
            paramLabel = "FORMAT",
            scope = ScopeType.INHERIT,
            description = "How to write results: table or json. Default: table.")
    private OutputFormat format = OutputFormat.TABLE;

    @Option(
            names = "--verbose",
            scope = ScopeType.INHERIT,
            description = "Write log lines, and stack traces of failures.")
    private boolean verbose;

    private final Terminal terminal;
    private final Map<String, String> environment;
    private @Nullable SingleConnectionDataSource dataSource;

    Session(Terminal terminal, Map<String, String> environment) {
        this.terminal = terminal;
        this.environment = environment;
    }

    Terminal terminal() {
        return terminal;
    }

    /** Sets what is logged, which takes effect until the first logger is made. */
    void configureLog() {
        if (!verbose) {
            DRIVER_LOG.setLevel(Level.OFF);
            System.setProperty(SWEEP_LOG, "error");
        } else {
            System.clearProperty(SWEEP_LOG);
            System.setProperty(LOG_LEVEL + "dev.pgworker", "debug");
            System.setProperty(LOG_LEVEL + "org.flywaydb", "info");
        }
    }

    /** Has the migration tell what it does. */
    void logMigration() {
        if (!verbose) {
            System.setProperty(LOG_LEVEL + "dev.pgworker.schema", "info");
        }
    }

    boolean isVerbose() {
        return verbose;
    }

    boolean isJson() {
        return format == OutputFormat.JSON;
    }

    WorkerSchema schema() {
        if (schemaName != null) {
            return schema("--schema", schemaName);
        }
        for (String variable : List.of("PGWORKER_SCHEMA", "GRAPHILE_WORKER_SCHEMA")) {
            String name = environment.get(variable);
            if (name != null && !name.isEmpty()) {
                return schema(variable, name);
            }
        }
        return WorkerSchema.DEFAULT;
    }

    private static WorkerSchema schema(String source, String name) {
        try {
            return new WorkerSchema(name);
        } catch (IllegalArgumentException e) {
            throw new CommandFailure(ExitStatus.USAGE, source + ": " + e.getMessage(), e);
        }
    }

    /** In the name of the user of the operating system, if it is known. */
    private static <T> T acting(T anonymous, BiFunction<T, String, T> actingAs) {
        String name = System.getProperty("user.name", "");
        return name.isEmpty() || name.length() > LONGEST_NAME ? anonymous : actingAs.apply(anonymous, name);
    }

    JobQueries queries() {
        return WorkerClient.jobQueries(dataSource(), schema());
    }

    JobChanges changes() {
        return acting(WorkerClient.jobChanges(dataSource(), schema()), JobChanges::actingAs);
    }

    WorkerOperations operations() {
        return acting(WorkerClient.workerOperations(dataSource(), schema()), WorkerOperations::actingAs);
    }

    JobScheduler scheduler() {
        return WorkerClient.jobScheduler(dataSource(), schema(), new PayloadCodec(new JsonMapper()));
    }

    JobSignals signals() {
        return WorkerClient.jobSignals(
                dataSource(), schema(), new PayloadCodec(new JsonMapper()), StepSettings.DEFAULT);
    }

    RecurringJobs recurring() {
        return acting(
                WorkerClient.recurringJobs(dataSource(), schema(), new PayloadCodec(new JsonMapper())),
                RecurringJobs::actingAs);
    }

    JobLimits limits() {
        return acting(WorkerClient.jobLimits(dataSource(), schema()), JobLimits::actingAs);
    }

    SchemaMigrator migrator() {
        return migrator(PeerIndexes.AUTO);
    }

    SchemaMigrator migrator(PeerIndexes peerIndexes) {
        return new SchemaMigrator(dataSource(), schema(), peerIndexes);
    }

    /** Returns what gives one connection again and again: a command does one thing after the other. */
    private DataSource dataSource() {
        if (dataSource == null) {
            char[] password = askPassword ? requirePassword() : null;
            Properties properties = new ConnectionProperties(environment).resolve(url, user, password, passwordFile);
            SingleConnectionDataSource single = new SingleConnectionDataSource();
            single.setUrl(DatabaseAddress.url(properties));
            single.setConnectionProperties(properties);
            single.setSuppressClose(true);
            dataSource = single;
        }
        return dataSource;
    }

    /** Ends the connection, so that the next statement gets another one. */
    void disconnect() {
        if (dataSource != null) {
            dataSource.resetConnection();
        }
    }

    private char[] requirePassword() {
        char[] password = terminal.askPassword("Password: ");
        if (password == null) {
            throw CommandFailure.usage("--password needs a terminal to ask at; elsewhere use PGPASSWORD, ~/.pgpass or"
                    + " --password-file");
        }
        return password;
    }

    /** Writes a result as JSON. */
    void writeJson(Object value) {
        terminal.out().println(Json.write(value));
    }

    /** Writes a result as a table. */
    void writeTable(Table table) {
        table.print(terminal);
    }

    /** Writes a line that says what has been done, on standard error, so that standard output has results only. */
    void say(String line) {
        terminal.out().flush();
        terminal.err().println(line);
    }

    /**
     * Changes things one after the other and says of each what became of it.
     *
     * @param what they are, in the singular
     * @param change returns whether it was needed
     */
    int change(
            String what,
            List<String> names,
            Predicate<String> isKnown,
            Predicate<String> change,
            String done,
            String notNeeded) {
        int status = ExitStatus.OK;
        List<String> changed = new ArrayList<>();
        // A name that cannot be one fails here, before anything is changed.
        Set<String> known = names.stream().filter(isKnown).collect(Collectors.toSet());
        for (String name : names) {
            if (!known.contains(name)) {
                say("No " + what + " " + Text.line(name));
                status = ExitStatus.NOT_FOUND;
                continue;
            }
            boolean needed = change.test(name);
            if (needed) {
                changed.add(name);
            }
            say(Text.line(name) + " " + (needed ? done : notNeeded));
        }
        if (isJson()) {
            writeJson(Json.object("changed", changed));
        }
        return status;
    }
}
