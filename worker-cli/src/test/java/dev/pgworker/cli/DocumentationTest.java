package dev.pgworker.cli;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;

import org.junit.jupiter.api.Test;
import picocli.CommandLine;
import picocli.CommandLine.Model.OptionSpec;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;

/** The page of the guide and the program agree: commands, options, examples, exit status, variables. */
class DocumentationTest {

    private static final Path PAGE = Path.of("../docs/command-line.md");

    private final CommandLine program = WorkerCli.create(new TestTerminal("unused"), Map.of());

    /** Sections of the page by their headings. */
    private static Map<String, String> sections() throws IOException {
        Map<String, String> sections = new LinkedHashMap<>();
        for (String section : Files.readString(PAGE).split("(?m)^#{2,3} ")) {
            int end = section.indexOf('\n');
            sections.put(section.substring(0, end), section.substring(end));
        }
        return sections;
    }

    /** Commands that do something, by their names. */
    private Map<String, CommandLine> commands() {
        Map<String, CommandLine> commands = new LinkedHashMap<>();
        collect("", program, commands);
        commands.remove("help");
        commands.remove("connection");
        return commands;
    }

    private static void collect(String prefix, CommandLine parent, Map<String, CommandLine> commands) {
        parent.getSubcommands().forEach((name, command) -> {
            if (command.getSubcommands().isEmpty()) {
                commands.put(prefix + name, command);
            } else {
                collect(prefix + name + " ", command, commands);
            }
        });
    }

    /** Commands that have commands of their own. */
    private static final Set<String> GROUPS = Set.of("crontab", "limits", "recurring");

    private static Set<String> names(Stream<OptionSpec> options) {
        return options.flatMap(option -> Stream.of(option.names())).collect(Collectors.toCollection(TreeSet::new));
    }

    /** Options in the first column of a section's table. */
    private static Set<String> documented(String section) {
        return section.lines()
                .filter(line -> line.startsWith("| `-"))
                .flatMap(line -> Pattern.compile("`(--?[a-zA-Z-]+)`")
                        .matcher(line.split("\\|")[1])
                        .results()
                        .map(found -> found.group(1)))
                .collect(Collectors.toCollection(TreeSet::new));
    }

    @Test
    void everyCommandAndOptionIsOnThePage() throws IOException {
        Map<String, String> sections = sections();
        Set<String> shared = documented(sections.get("Options of all commands"));
        Set<String> ofProgram = names(program.getCommandSpec().options().stream());
        ofProgram.remove("--schema-only");
        assertThat(shared).isEqualTo(ofProgram);
        assertThat(sections.get("Options of all commands")).contains("`--schema-only`");

        commands().forEach((name, command) -> {
            assertThat(sections).containsKey(name);
            Set<String> own = names(command.getCommandSpec().options().stream());
            own.removeAll(shared);
            assertThat(documented(sections.get(name))).as(name).isEqualTo(own);
        });
        assertThat(sections.keySet().stream().filter(heading -> heading.equals(heading.toLowerCase(Locale.ROOT))))
                .as("no command too many")
                .isEqualTo(List.copyOf(commands().keySet().stream()
                        .sorted(Comparator.comparing(
                                name -> List.copyOf(sections.keySet()).indexOf(name)))
                        .toList()));
    }

    @Test
    void helpHasExamplesThatParseAndAreOnThePage() throws IOException {
        Map<String, CommandLine> commands = commands();
        commands.remove("generate-completion");
        String page = Files.readString(PAGE);
        commands.forEach((name, command) -> {
            String[] examples = command.getCommandSpec().usageMessage().footer();
            assertThat(examples).as(name).isNotEmpty().allSatisfy(example -> {
                assertThat(example).hasSizeLessThan(80).startsWith("  worker-cli " + name);
                assertThat(page).contains(example.strip());
                assertThatCode(() -> program.parseArgs(words(example.strip().split("worker-cli |[|]")[1])))
                        .doesNotThrowAnyException();
            });
        });
    }

    @Test
    void optionsNameEveryValueThatTheyAllow() {
        commands().values().stream()
                .flatMap(command -> command.getCommandSpec().options().stream())
                .filter(option -> option.type().isEnum())
                .forEach(option -> assertThat(String.join(" ", option.description()))
                        .as(option.longestName())
                        .contains(Stream.of(option.type().getEnumConstants())
                                .map(value -> value.toString().toLowerCase(Locale.ROOT))
                                .filter(value -> !value.equals("other")) // outcomes of newer versions
                                .toList()));
    }

    @Test
    void everyCommandHasAnExampleThatParses() throws IOException {
        Set<String> shown = new TreeSet<>();
        String blocks = Pattern.compile("(?s)```sh\n(.*?)```")
                .matcher(Files.readString(PAGE))
                .results()
                .map(block -> block.group(1))
                .collect(Collectors.joining("\n"));
        for (MatchResult example : Pattern.compile("(?m)(?:^|[|] )worker-cli ([^|>\n]*)")
                .matcher(blocks)
                .results()
                .toList()) {
            String[] args = words(example.group(1));
            assertThatCode(() -> program.parseArgs(args)).as(example.group()).doesNotThrowAnyException();
            shown.add(GROUPS.contains(args[0]) ? args[0] + " " + args[1] : args[0]);
        }
        assertThat(shown).isEqualTo(new TreeSet<>(commands().keySet()));
    }

    private static String[] words(String line) {
        List<String> words = new ArrayList<>();
        Pattern.compile("'([^']*)'|\"([^\"]*)\"|(\\S+)")
                .matcher(line)
                .results()
                .forEach(word -> words.add(Stream.of(1, 2, 3)
                        .map(word::group)
                        .filter(text -> text != null)
                        .findFirst()
                        .orElseThrow()));
        return words.toArray(String[]::new);
    }

    @Test
    void exitStatusIsThatOfTheProgram() throws Exception {
        Set<String> page = sections()
                .get("Exit status")
                .lines()
                .filter(line -> line.matches("\\| [0-9]+ .*"))
                .map(line -> line.split("\\|")[1].strip())
                .collect(Collectors.toCollection(TreeSet::new));
        page.remove("130"); // the JVM's own
        Set<String> used = new TreeSet<>();
        for (var constant : ExitStatus.class.getDeclaredFields()) {
            used.add(String.valueOf(constant.getInt(null)));
        }
        assertThat(page).isEqualTo(used);
        used.remove(String.valueOf(ExitStatus.BROKEN_PIPE));
        assertThat(program.getCommandSpec().usageMessage().exitCodeList().keySet())
                .isEqualTo(used);
    }

    @Test
    void variablesAreThoseOfTheProgram() throws IOException {
        Set<String> page = Pattern.compile("`([A-Z_]+)`")
                .matcher(sections()
                        .get("Connect")
                        .lines()
                        .filter(line -> line.startsWith("| `"))
                        .collect(Collectors.joining()))
                .results()
                .map(variable -> variable.group(1))
                .collect(Collectors.toCollection(TreeSet::new));
        Set<String> source = new TreeSet<>();
        for (String file : List.of("ConnectionProperties", "Session", "SystemTerminal")) {
            Pattern.compile("[\"{@code ]((?:PG|SPRING|DATABASE|GRAPHILE|COLUMNS)[A-Z_]*)[\"}]")
                    .matcher(Files.readString(Path.of("src/main/java/dev/pgworker/cli", file + ".java")))
                    .results()
                    .forEach(variable -> source.add(variable.group(1)));
        }
        source.remove("PGDBNAME"); // a property of the driver
        assertThat(page).isEqualTo(source);
    }
}
