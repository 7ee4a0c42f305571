package dev.pgworker;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Set;
import java.util.regex.Pattern;
import java.util.stream.Stream;

import com.tngtech.archunit.base.DescribedPredicate;
import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.domain.JavaMethodCall;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import com.tngtech.archunit.core.importer.ImportOption;
import org.assertj.core.api.Assertions;
import org.jspecify.annotations.NullMarked;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.classes;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;
import static com.tngtech.archunit.library.Architectures.layeredArchitecture;
import static com.tngtech.archunit.library.dependencies.SlicesRuleDefinition.slices;

/** The rules that keep the packages apart. */
@Tag("any-postgres")
class ArchitectureTest {

    private static final JavaClasses production = new ClassFileImporter()
            .withImportOption(ImportOption.Predefined.DO_NOT_INCLUDE_TESTS)
            .importPackages("dev.pgworker");

    @Test
    void packagesAreFreeOfCycles() {
        slices().matching("dev.pgworker.(*)..").should().beFreeOfCycles().check(production);
    }

    /** A package imports only from floors below its own; services of the third floor do not know each other. */
    @Test
    void packagesImportOnlyFromFloorsBelow() {
        layeredArchitecture()
                .consideringOnlyDependenciesInLayers()
                .layer("job")
                .definedBy("dev.pgworker.job")
                .layer("schema")
                .definedBy("dev.pgworker.schema")
                .layer("task")
                .definedBy("dev.pgworker.task")
                .layer("event")
                .definedBy("dev.pgworker.event")
                .layer("store")
                .definedBy("dev.pgworker.store")
                .layer("lifecycle")
                .definedBy("dev.pgworker.lifecycle")
                .layer("engine")
                .definedBy("dev.pgworker.engine")
                .layer("recovery")
                .definedBy("dev.pgworker.recovery")
                .layer("crontab")
                .definedBy("dev.pgworker.crontab")
                .layer("root")
                .definedBy("dev.pgworker")
                .whereLayer("job")
                .mayNotAccessAnyLayer()
                .whereLayer("schema")
                .mayNotAccessAnyLayer()
                .whereLayer("task")
                .mayOnlyAccessLayers("job")
                .whereLayer("event")
                .mayOnlyAccessLayers("job")
                .whereLayer("store")
                .mayOnlyAccessLayers("job", "schema", "task", "event", "lifecycle")
                .whereLayer("lifecycle")
                .mayNotAccessAnyLayer()
                .whereLayer("engine")
                .mayOnlyAccessLayers("job", "task", "event", "store", "lifecycle")
                .whereLayer("crontab")
                .mayOnlyAccessLayers("job", "schema", "task", "event", "store", "lifecycle")
                .whereLayer("recovery")
                .mayOnlyAccessLayers("job", "task", "event", "store", "lifecycle")
                .check(production);
    }

    @Test
    void internalPackagesAreUsedByTheRootOnly() {
        classes()
                .that()
                .resideInAnyPackage("dev.pgworker.store", "dev.pgworker.engine")
                .should()
                .onlyHaveDependentClassesThat()
                .resideInAnyPackage(
                        "dev.pgworker",
                        "dev.pgworker.store",
                        "dev.pgworker.engine",
                        "dev.pgworker.recovery",
                        "dev.pgworker.crontab")
                .check(production);
        classes()
                .that()
                .resideInAPackage("dev.pgworker.engine")
                .should()
                .onlyHaveDependentClassesThat()
                .resideInAnyPackage("dev.pgworker", "dev.pgworker.engine")
                .check(production);
    }

    @Test
    void onlyStoreAndSchemaPrepareStatements() {
        noClasses()
                .that()
                .resideOutsideOfPackages("dev.pgworker.store", "dev.pgworker.schema")
                .should()
                .dependOnClassesThat()
                .haveFullyQualifiedName("java.sql.PreparedStatement")
                .check(production);
    }

    @Test
    void onlyStoreAndSchemaContainSql() throws IOException {
        Pattern sql = Pattern.compile(
                "\"\\s*(select|insert|update|delete|with)\\s.*\\{schema}|^\\s*(select|insert into|delete from) .*\\{schema}",
                Pattern.MULTILINE);
        try (Stream<Path> files = Files.walk(Path.of("src/main/java/dev/pgworker"))) {
            List<Path> offenders = files.filter(f -> f.toString().endsWith(".java"))
                    .filter(f ->
                            !f.toString().contains("/store/") && !f.toString().contains("/schema/"))
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
                "dev.pgworker.engine.JobRunner",
                "dev.pgworker.store.JobRows",
                "dev.pgworker.store.JobStore");
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
}
