package dev.pgworker;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import javax.sql.DataSource;

import com.tngtech.archunit.base.DescribedPredicate;
import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.domain.JavaConstructor;
import com.tngtech.archunit.core.domain.JavaMethodCall;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import com.tngtech.archunit.core.importer.ImportOption;
import com.tngtech.archunit.lang.ArchCondition;
import com.tngtech.archunit.lang.ConditionEvents;
import com.tngtech.archunit.lang.SimpleConditionEvent;
import com.tngtech.archunit.library.dependencies.SliceAssignment;
import com.tngtech.archunit.library.dependencies.SliceIdentifier;
import org.assertj.core.api.Assertions;
import org.jspecify.annotations.NullMarked;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.slf4j.LoggerFactory;
import org.slf4j.MDC;

import dev.pgworker.internal.engine.run.JobMdc;
import dev.pgworker.internal.engine.run.JobTrace;
import dev.pgworker.internal.failure.WorkerLog;
import dev.pgworker.internal.jdbc.Connections;
import dev.pgworker.internal.jdbc.SqlWork;
import dev.pgworker.internal.jdbc.StaleConnections;

import static com.tngtech.archunit.core.domain.JavaClass.Predicates.resideInAnyPackage;
import static com.tngtech.archunit.core.domain.JavaClass.Predicates.resideOutsideOfPackage;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.classes;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.constructors;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;
import static com.tngtech.archunit.library.dependencies.SlicesRuleDefinition.slices;

/** The rules that keep the packages apart. */
@Tag("any-postgres")
class ArchitectureTest {

    private static final JavaClasses production = new ClassFileImporter()
            .withImportOption(ImportOption.Predefined.DO_NOT_INCLUDE_TESTS)
            .withImportOption(location -> !location.contains("/testsupport/"))
            .importPackages("dev.pgworker");

    @Test
    void packagesAreFreeOfCycles() {
        slices().matching("dev.pgworker.(**)").should().beFreeOfCycles().check(production);
    }

    /** Text of users is in most messages: what logs by itself can be made to write any line. */
    @Test
    void nobodyLogsButThroughTheLogInWhichNoLineIsForged() {
        noClasses()
                .that()
                .doNotHaveFullyQualifiedName(WorkerLog.class.getName())
                .should()
                .dependOnClassesThat()
                .belongToAnyOf(LoggerFactory.class)
                .check(production);
        noClasses()
                .that()
                .doNotHaveFullyQualifiedName(JobMdc.class.getName())
                // Which has ids of traces.
                .and()
                .doNotHaveFullyQualifiedName(JobTrace.class.getName())
                .should()
                .dependOnClassesThat()
                .belongToAnyOf(MDC.class)
                .check(production);
    }

    /** Of two classes that know each other neither can be read alone. */
    @Test
    void classesOfAPackageAreFreeOfCycles() {
        slices().assignedFrom(new SliceAssignment() {
                    @Override
                    public SliceIdentifier getIdentifierOf(JavaClass type) {
                        String name = type.getName().replaceFirst("\\$.*", "");
                        String inOurs = type.getPackageName().replaceFirst("^dev\\.pgworker\\.", "");
                        return inOurs.equals("dev.pgworker") || LAYERS.containsKey(inOurs)
                                ? SliceIdentifier.of(name)
                                : SliceIdentifier.ignore();
                    }

                    @Override
                    public String getDescription() {
                        return "top-level classes";
                    }
                })
                .should()
                .beFreeOfCycles()
                .check(production);
    }

    /** What each package may import, from the lowest layer to the highest. Services of one layer do not know each other. */
    static final Map<String, Set<String>> LAYERS = layers();

    private static Map<String, Set<String>> layers() {
        Map<String, Set<String>> layers = new LinkedHashMap<>();
        layers.put("internal.argument", Set.of());
        layers.put("internal.failure", Set.of());
        layers.put("internal.pattern", Set.of());
        layers.put("internal.lifecycle", Set.of("internal.failure"));
        layers.put("schema", Set.of("internal.jdbc", "internal.failure"));
        layers.put("internal.jdbc", Set.of("internal.failure"));
        layers.put("history", Set.of("internal.argument"));
        layers.put("statistics", Set.of());
        layers.put("step", Set.of("internal.argument"));
        layers.put("job", Set.of("history", "statistics", "step", "internal.argument"));
        layers.put("flow", Set.of("job", "internal.argument"));
        layers.put("task", Set.of("job", "step", "flow", "internal.argument", "internal.failure"));
        layers.put("event", Set.of("job", "internal.argument"));
        layers.put("recovery", Set.of("internal.argument"));
        layers.put("schedule", Set.of("job", "internal.argument", "internal.pattern"));
        layers.put("limit", Set.of("task", "internal.argument"));
        layers.put("crontab", Set.of("job", "task", "schedule", "internal.argument", "internal.pattern"));
        layers.put("internal.event", Set.of("event", "job", "internal.failure", "internal.lifecycle"));
        Set<String> model = Set.of(
                "job",
                "flow",
                "history",
                "statistics",
                "schema",
                "task",
                "event",
                "recovery",
                "schedule",
                "limit",
                "step",
                "internal.argument");
        layers.put("internal.store", and(model, "internal.event", "internal.failure", "internal.jdbc"));
        Set<String> below = and(
                model, "internal.event", "internal.failure", "internal.lifecycle", "internal.jdbc", "internal.store");
        layers.put("internal.client", below);
        layers.put("internal.engine", below);
        Set<String> engine = and(below, "internal.engine");
        layers.put("internal.engine.queue", engine);
        layers.put("internal.engine.floor", engine);
        Set<String> jobs = and(engine, "internal.engine.queue", "internal.engine.floor");
        layers.put("internal.engine.run", jobs);
        layers.put("internal.engine.claim", and(jobs, "internal.engine.run"));
        Set<String> claims = and(jobs, "internal.engine.run", "internal.engine.claim");
        layers.put("internal.engine.direct", claims);
        layers.put("internal.engine.complete", claims);
        layers.put("internal.watch", jobs);
        layers.put("internal.record", and(jobs, "internal.engine.run"));
        layers.put("internal.recovery", below);
        layers.put("internal.schedule", and(below, "internal.client"));
        layers.put("internal.limit", and(engine, "internal.client"));
        layers.put("internal.crontab", and(below, "crontab", "internal.client"));
        return layers;
    }

    private static Set<String> and(Set<String> some, String... others) {
        Set<String> all = new HashSet<>(some);
        all.addAll(Set.of(others));
        return all;
    }

    @Test
    void packagesImportOnlyFromLayersBelow() {
        LAYERS.forEach((layer, below) -> {
            Set<String> allowed = new HashSet<>();
            allowed.add("dev.pgworker." + layer);
            below.forEach(other -> allowed.add("dev.pgworker." + other));
            classes()
                    .that()
                    .resideInAPackage("dev.pgworker." + layer)
                    .should()
                    .onlyDependOnClassesThat(resideOutsideOfPackage("dev.pgworker..")
                            .or(resideInAnyPackage(allowed.toArray(String[]::new))))
                    .check(production);
        });
    }

    @Test
    void everyPackageHasItsLayer() {
        Set<String> packages = new TreeSet<>();
        production.forEach(type -> packages.add(type.getPackageName()));
        packages.removeAll(Set.of("dev.pgworker", "dev.pgworker.internal"));
        Assertions.assertThat(packages)
                .isEqualTo(LAYERS.keySet().stream()
                        .map(layer -> "dev.pgworker." + layer)
                        .collect(Collectors.toCollection(TreeSet::new)));
    }

    /** What an application does by hand goes through Spring's client; only adding jobs is plain JDBC. */
    @Test
    void onlyStoreSchemaAndWhatAddsJobsPrepareStatements() {
        noClasses()
                .that()
                .resideOutsideOfPackages(
                        "dev.pgworker.internal.store", "dev.pgworker.internal.jdbc", "dev.pgworker.schema")
                .and(DescribedPredicate.describe(
                        "do not add jobs",
                        type -> !type.getName()
                                .matches("dev\\.pgworker\\.internal\\.client\\.(JdbcJobScheduler|BulkAdd.*)")))
                .should()
                .dependOnClassesThat()
                .haveFullyQualifiedName("java.sql.PreparedStatement")
                .check(production);
    }

    /** Elsewhere a statement would run at the level of the role, the URL or the pool. */
    @Test
    void statementsOfWorkersRunInConnectionsAlone() {
        noClasses()
                .that(DescribedPredicate.describe(
                        "neither set the level nor belong to the application's calls",
                        type -> !Set.of("Connections", "ClientConnections", "OwnTransactions")
                                .contains(type.getSimpleName())))
                .should()
                .callMethod(Connections.class, "inTransaction", Connection.class, SqlWork.class)
                .orShould()
                .callMethod(StaleConnections.class, "replacing", DataSource.class, StaleConnections.Work.class)
                .check(production);
        noClasses()
                .that(DescribedPredicate.describe(
                        "neither hand connections on, nor migrate, listen, vacuum or set the level of a session of their own",
                        type -> !Set.of(
                                        "StaleConnections",
                                        "PrivateConnections",
                                        "ClientConnections",
                                        "SchemaMigrator",
                                        "NotificationListener",
                                        "Pooler",
                                        "JobTableStore",
                                        "DirectStore")
                                .contains(type.getSimpleName())))
                .should()
                .callMethod(DataSource.class, "getConnection")
                .check(production);
    }

    @Test
    void onlyStoreAndSchemaContainSql() throws IOException {
        Pattern sql = Pattern.compile(
                "\"\\s*(select|insert|update|delete|with)\\s.*\\{schema}|^\\s*(select|insert into|delete from) .*\\{schema}",
                Pattern.MULTILINE);
        try (Stream<Path> files = Files.walk(Path.of("src/main/java/dev/pgworker"))) {
            List<Path> offenders = files.filter(f -> f.toString().endsWith(".java"))
                    .filter(f -> !f.toString().contains("/store/")
                            && !f.toString().contains("/client/")
                            && !f.toString().contains("/schema/"))
                    .filter(f -> sql.matcher(read(f)).find())
                    .toList();
            Assertions.assertThat(offenders).isEmpty();
        }
    }

    /**
     * Machines' clocks differ, so what decides about jobs asks the database for the time, or takes time spans from
     * {@code System.nanoTime}. Exempt are times that callers give themselves ({@code runIn}) or are only told.
     */
    @Test
    void nothingDecidesByTheClockOfThisMachine() {
        Set<String> exempt = Set.of(
                "dev.pgworker.job.JobSpec$Builder",
                "dev.pgworker.job.Rescheduling$Builder",
                "dev.pgworker.internal.engine.run.JobPipeline",
                "dev.pgworker.internal.store.JobRows");
        DescribedPredicate<JavaMethodCall> asksForTheTime =
                DescribedPredicate.describe("ask for the time of day", ArchitectureTest::asksForTheTime);
        noClasses()
                .that(DescribedPredicate.describe("decide", type -> !exempt.contains(type.getName())))
                .should()
                .callMethodWhere(asksForTheTime)
                .check(production);
    }

    private static boolean asksForTheTime(JavaMethodCall call) {
        String owner = call.getTarget().getOwner().getPackageName();
        Set<String> asking = Set.of("now", "systemUTC", "systemDefaultZone", "system", "tickMillis");
        return (owner.startsWith("java.time")
                        && asking.contains(call.getTarget().getName()))
                || call.getTarget().getFullName().equals("java.lang.System.currentTimeMillis()");
    }

    private static String read(Path file) {
        try {
            return Files.readString(file);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** More parameters than that are a sign of several stories in one class; records are for many values. */
    @Test
    void constructorsHaveAtMostSevenParameters() {
        DescribedPredicate<JavaConstructor> ofARecord = DescribedPredicate.describe(
                "of a record or an enum",
                constructor -> constructor.getOwner().isRecord()
                        || constructor.getOwner().isEnum());
        ArchCondition<JavaConstructor> fewParameters = new ArchCondition<>("have at most seven parameters") {
            @Override
            public void check(JavaConstructor constructor, ConditionEvents events) {
                int count = constructor.getRawParameterTypes().size();
                events.add(
                        new SimpleConditionEvent(constructor, count <= 7, constructor.getFullName() + " has " + count));
            }
        };
        constructors()
                .that(DescribedPredicate.not(ofARecord))
                .should(fewParameters)
                .check(production);
    }

    @Test
    void everyPackageIsNullMarked() throws IOException {
        try (Stream<Path> files = Files.walk(Path.of("src/main/java/dev/pgworker"))) {
            for (Path directory : files.filter(Files::isDirectory).toList()) {
                Path packageInfo = directory.resolve("package-info.java");
                Assertions.assertThat(packageInfo).exists();
                Assertions.assertThat(packageInfo).content().contains("@" + NullMarked.class.getSimpleName());
            }
        }
    }

    /** A group that repeats takes stack for each repetition, unless it gives nothing back: {@code (...)++}. */
    @Test
    void repeatedGroupsOfRegularExpressionsArePossessive() throws IOException {
        Pattern greedy = Pattern.compile(
                "(?:Pattern\\.compile|matches|replaceAll|replaceFirst|split)\\(\\s*\"[^\"\\n]*\\)[*+](?!\\+)");
        Set<Path> found = new TreeSet<>();
        try (Stream<Path> modules = Files.list(Path.of(".."))) {
            for (Path module : modules.toList()) {
                Path sources = module.resolve("src/main/java");
                if (module.getFileName().toString().startsWith("worker-") && Files.isDirectory(sources)) {
                    try (Stream<Path> files = Files.walk(sources)) {
                        for (Path file : files.filter(Files::isRegularFile).toList()) {
                            if (greedy.matcher(Files.readString(file)).find()) {
                                found.add(file);
                            }
                        }
                    }
                }
            }
        }
        Assertions.assertThat(found).isEmpty();
    }
}
