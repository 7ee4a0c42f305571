package dev.pgworker.cli;

import java.io.PrintWriter;
import java.nio.charset.Charset;
import java.util.Map;
import java.util.concurrent.Callable;

import picocli.AutoComplete;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.HelpCommand;
import picocli.CommandLine.IVersionProvider;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.ScopeType;
import picocli.CommandLine.TypeConversionException;
import picocli.CommandLine.UnmatchedArgumentException;

import dev.pgworker.history.HistoryOutcome;
import dev.pgworker.job.JobKeyMode;
import dev.pgworker.job.JobSort;
import dev.pgworker.job.JobState;
import dev.pgworker.schedule.RecurringJob.Origin;
import dev.pgworker.schema.PeerIndexes;
import dev.pgworker.schema.WorkerSchema;

/**
 * The program {@code worker-cli}: what {@code JobScheduler}, {@code JobQueries}, {@code JobChanges}, {@code WorkerOperations}, {@code RecurringJobs} and
 * {@code SchemaMigrator} do, from a shell. It needs no Spring context, and so starts fast.
 *
 * @since 0.1.0
 */
public final class WorkerCli {

    private WorkerCli() {}

    /**
     * Runs one command and ends the JVM with its exit status.
     *
     * @param args the command, its options and arguments
     */
    public static void main(String[] args) {
        CommandLine[] detecting = new CommandLine[1];
        SystemTerminal terminal = new SystemTerminal(
                System.getenv(),
                () -> detecting[0]
                        .getCommandSpec()
                        .usageMessage()
                        .autoWidth(true)
                        .width());
        CommandLine commands = create(terminal, System.getenv());
        detecting[0] = commands;
        commands.getCommandSpec().usageMessage().autoWidth(terminal.isInteractive());
        System.exit(run(commands, terminal, args));
    }

    /** Runs a command and returns its exit status, which is another one if its output does not arrive. */
    static int run(CommandLine commands, Terminal terminal, String... args) {
        int status = isUnreadable(args) ? tellUnreadable(terminal) : commands.execute(args);
        try {
            terminal.flush();
        } catch (CommandFailure e) {
            if (e.exitStatus() != ExitStatus.BROKEN_PIPE && status == ExitStatus.OK) {
                terminal.err().println("Error: " + e.getMessage());
            }
            return status == ExitStatus.OK ? e.exitStatus() : status;
        } finally {
            terminal.err().flush();
        }
        return status;
    }

    /** What the JVM could not decode would be stored as question marks. */
    private static boolean isUnreadable(String[] args) {
        return String.join("", args).indexOf('\ufffd') >= 0;
    }

    private static int tellUnreadable(Terminal terminal) {
        terminal.err()
                .println("Error: An argument has characters that cannot be read in the encoding of this environment, "
                        + Charset.defaultCharset() + ". Set LC_ALL=C.UTF-8, or pass a payload with --payload-file.");
        return ExitStatus.USAGE;
    }

    /** Returns the commands. */
    static CommandLine create(Terminal terminal, Map<String, String> environment) {
        Session session = new Session(terminal, environment);
        CommandLine commands = new CommandLine(new Root(session))
                .addSubcommand(new MigrateCommand(session))
                .addSubcommand(new ValidateCommand(session))
                .addSubcommand(new AddCommand(session))
                .addSubcommand(new ListCommand(session))
                .addSubcommand(new ShowCommand(session))
                .addSubcommand(new RetryCommand(session))
                .addSubcommand(new RescheduleCommand(session))
                .addSubcommand(new CompleteCommand(session))
                .addSubcommand(new FailCommand(session))
                .addSubcommand(new RemoveCommand(session))
                .addSubcommand(new CancelCommand(session))
                .addSubcommand(new SignalCommand(session))
                .addSubcommand(new HistoryCommand(session))
                .addSubcommand(new StatsCommand(session))
                .addSubcommand(new WatchCommand(session))
                .addSubcommand(new QueuesCommand(session))
                .addSubcommand(new PauseCommands.PauseCommand(session))
                .addSubcommand(new PauseCommands.Resume(session))
                .addSubcommand(new PauseCommands.ListPauses(session))
                .addSubcommand(new WorkersCommand(session))
                .addSubcommand(new CommandLine(new CrontabCommand()).addSubcommand(new CheckCrontabCommand(session)))
                .addSubcommand(new CommandLine(new RecurringCommand())
                        .addSubcommand(new RecurringCommand.ListAll(session))
                        .addSubcommand(new RecurringCommand.Show(session))
                        .addSubcommand(new RecurringCommand.Pause(session))
                        .addSubcommand(new RecurringCommand.Resume(session))
                        .addSubcommand(new RecurringCommand.Trigger(session))
                        .addSubcommand(new RecurringCommand.Delete(session)))
                .addSubcommand(new CommandLine(new LimitsCommand())
                        .addSubcommand(new LimitsCommand.ListLimits(session))
                        .addSubcommand(new LimitsCommand.Show(session))
                        .addSubcommand(new LimitsCommand.Put(session))
                        .addSubcommand(new LimitsCommand.Delete(session)))
                .addSubcommand(new CleanupCommand(session))
                .addSubcommand(new SweepCommand(session))
                .addSubcommand(new ForceUnlockCommand(session))
                .addSubcommand(new AutoComplete.GenerateCompletion())
                .addSubcommand(new HelpCommand())
                .addSubcommand(new HelpPages.Connection());
        HelpPages.shorten(commands);
        return commands.setOut(terminal.out())
                .setErr(terminal.err())
                .registerConverter(Origin.class, new Names<>(Origin.class))
                .registerConverter(JobSort.class, new Names<>(JobSort.class))
                .registerConverter(HistoryOutcome.class, new Names<>(HistoryOutcome.class))
                .registerConverter(JobState.class, new Names<>(JobState.class))
                .registerConverter(JobKeyMode.class, new Names<>(JobKeyMode.class))
                .registerConverter(PeerIndexes.class, new Names<>(PeerIndexes.class))
                .registerConverter(OutputFormat.class, new Names<>(OutputFormat.class))
                .registerConverter(Integer.class, WorkerCli::integer)
                .registerConverter(int.class, WorkerCli::integer)
                .registerConverter(Long.class, WorkerCli::id)
                .setExpandAtFiles(false)
                .setParameterExceptionHandler(WorkerCli::tellWrongUse)
                .setExecutionExceptionHandler((failure, command, parsed) -> tell(failure, session, terminal))
                .setExecutionStrategy(parsed -> {
                    session.configureLog();
                    return new CommandLine.RunLast().execute(parsed);
                });
    }

    private static Integer integer(String text) {
        try {
            return Integer.valueOf(text);
        } catch (NumberFormatException e) {
            throw new TypeConversionException("'" + text + "' must be a whole number");
        }
    }

    private static Long id(String text) {
        try {
            return JobSelection.id(text);
        } catch (CommandFailure e) {
            throw new TypeConversionException("'" + text + "' " + JobSelection.ID_RULE);
        }
    }

    private static int tellWrongUse(ParameterException wrong, String[] args) {
        CommandLine command = wrong.getCommandLine();
        PrintWriter err = command.getErr();
        err.println("Error: " + Text.visible(String.valueOf(wrong.getMessage())));
        if (!(wrong instanceof UnmatchedArgumentException unknown && HelpPages.suggest(unknown, err))) {
            err.println("See: " + command.getCommandSpec().qualifiedName() + " --help");
        }
        return ExitStatus.USAGE;
    }

    private static int tell(Exception failure, Session session, Terminal terminal) {
        PrintWriter err = terminal.err();
        Failure told = Failure.of(failure, schemaOf(session), session.isVerbose());
        if (told.exitStatus() == ExitStatus.BROKEN_PIPE) {
            return told.exitStatus();
        }
        err.println("Error: " + told.message());
        if (told.hint() != null) {
            err.println(told.hint());
        }
        if (session.isVerbose()) {
            failure.printStackTrace(err);
        }
        return told.exitStatus();
    }

    private static WorkerSchema schemaOf(Session session) {
        try {
            return session.schema();
        } catch (CommandFailure e) {
            return WorkerSchema.DEFAULT;
        }
    }

    /** The program without a command. */
    @Command(
            name = "worker-cli",
            mixinStandardHelpOptions = true,
            scope = ScopeType.INHERIT,
            versionProvider = Version.class,
            synopsisSubcommandLabel = "COMMAND",
            sortOptions = false,
            description = "Migrates the schema of PgWorker, adds jobs and administers them.",
            footerHeading = "%nExamples:%n",
            footer = {"  worker-cli help connection", "  worker-cli help add"},
            exitCodeListHeading = "%nExit status:%n",
            exitCodeList = {
                "0:done",
                "1:failed",
                "2:an option or argument is wrong",
                "3:a named job, key, worker or schedule does not exist, or was not changed",
                "4:the schema is not installed, not up to date, or not supported",
                "5:no connection: server, database or login",
                "6:not confirmed"
            })
    private static final class Root implements Callable<Integer> {

        @Mixin
        private final Session session;

        @Option(
                names = "--schema-only",
                description = "As the command migrate: what Graphile Worker for Node.js calls it.")
        private boolean schemaOnly;

        Root(Session session) {
            this.session = session;
        }

        @Override
        public Integer call() {
            if (schemaOnly) {
                return new MigrateCommand(session).call();
            }
            throw CommandFailure.usage("COMMAND is missing; see worker-cli --help");
        }
    }

    /** The version, which stands in the manifest of the jar. */
    private static final class Version implements IVersionProvider {
        @Override
        public String[] getVersion() {
            String version = WorkerCli.class.getPackage().getImplementationVersion();
            return new String[] {"worker-cli " + (version == null ? "(not from a jar)" : version)};
        }
    }
}
