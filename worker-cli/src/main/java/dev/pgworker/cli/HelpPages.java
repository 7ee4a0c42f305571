package dev.pgworker.cli;

import java.io.PrintWriter;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;

import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Help;
import picocli.CommandLine.Model.OptionSpec;
import picocli.CommandLine.Model.UsageMessageSpec;
import picocli.CommandLine.UnmatchedArgumentException;

/** The help of each command has its own options and examples; what all commands share has pages of its own. */
final class HelpPages {

    /** Options of every command, by their longest names, that {@code help connection} explains. */
    private static final Set<String> CONNECTION =
            Set.of("--connection", "--user", "--password", "--password-file", "--schema", "--verbose");

    private HelpPages() {}

    /** Explains the connection, as the argument of the command {@code help}. */
    @Command(
            name = "connection",
            hidden = true,
            customSynopsis = "worker-cli COMMAND [OPTIONS]",
            description = {
                "Options of all commands. Without --url, the first of these variables applies: PGWORKER_URL, DATABASE_URL,"
                        + " SPRING_DATASOURCE_URL, then PGHOST, PGPORT and PGDATABASE.",
                "A password in --url is rejected, because other users of the machine could read it."
            },
            footer = {
                "  worker-cli stats --url postgres://app@localhost:5432/shop --password",
                "  PGWORKER_URL=postgres://app@localhost:5432/shop worker-cli stats"
            })
    static final class Connection implements Runnable {

        @CommandLine.Spec
        private CommandLine.Model.CommandSpec spec = CommandLine.Model.CommandSpec.create();

        @Override
        public void run() {
            spec.commandLine().usage(spec.commandLine().getOut());
        }
    }

    /** Leaves out of the help of each command what all share, and abbreviates its synopsis. */
    static void shorten(CommandLine program) {
        if (!program.getCommandName().equals("connection")) {
            program.getHelpSectionMap().put(UsageMessageSpec.SECTION_KEY_OPTION_LIST, HelpPages::ownOptions);
        }
        program.getSubcommands().forEach((name, command) -> {
            List<String> sections =
                    new ArrayList<>(command.getCommandSpec().usageMessage().sectionKeys());
            sections.remove(UsageMessageSpec.SECTION_KEY_EXIT_CODE_LIST_HEADING);
            sections.remove(UsageMessageSpec.SECTION_KEY_EXIT_CODE_LIST);
            command.getCommandSpec().usageMessage().sectionKeys(sections);
            shorten(command);
        });
        program.getCommandSpec().usageMessage().abbreviateSynopsis(true);
    }

    private static String ownOptions(Help help) {
        List<OptionSpec> own = help.commandSpec().options().stream()
                .filter(option -> !CONNECTION.contains(option.longestName()))
                .filter(option -> !option.inherited() || !option.longestName().equals("--version"))
                .toList();
        return help.optionListExcludingGroups(own) + "Database, schema and log: worker-cli help connection"
                + System.lineSeparator();
    }

    /** Suggests names that resemble the unknown one, and returns whether there are any. */
    static boolean suggest(UnmatchedArgumentException unknown, PrintWriter err) {
        String typed = unknown.getUnmatched().get(0);
        List<String> alike = unknown.getSuggestions().stream()
                .filter(name -> areAlike(typed, name))
                .map(name -> name.startsWith("-")
                        ? name
                        : unknown.getCommandLine().getCommandSpec().qualifiedName() + " " + name)
                .toList();
        if (!alike.isEmpty()) {
            err.println("Did you mean: " + String.join(" or ", alike) + "?");
        }
        return !alike.isEmpty();
    }

    /** Whether two thirds of the longer name are in the other one, in the same order. */
    private static boolean areAlike(String one, String other) {
        int[][] common = new int[one.length() + 1][other.length() + 1];
        for (int i = 1; i <= one.length(); i++) {
            for (int j = 1; j <= other.length(); j++) {
                common[i][j] = one.charAt(i - 1) == other.charAt(j - 1)
                        ? common[i - 1][j - 1] + 1
                        : Math.max(common[i - 1][j], common[i][j - 1]);
            }
        }
        return 3 * common[one.length()][other.length()] >= 2 * Math.max(one.length(), other.length());
    }
}
