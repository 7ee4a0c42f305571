package dev.pgworker.autoconfigure;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Set;
import java.util.stream.Stream;

import com.tngtech.archunit.base.DescribedPredicate;
import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.domain.JavaMethodCall;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import com.tngtech.archunit.core.importer.ImportOption;
import io.micrometer.observation.Observation;
import io.micrometer.observation.ObservationConvention;
import org.jspecify.annotations.NullMarked;
import org.junit.jupiter.api.Test;
import org.slf4j.LoggerFactory;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.context.annotation.Bean;

import dev.pgworker.internal.failure.WorkerLog;

import static com.tngtech.archunit.base.DescribedPredicate.not;
import static com.tngtech.archunit.core.domain.JavaClass.Predicates.resideInAPackage;
import static com.tngtech.archunit.core.domain.JavaClass.Predicates.resideOutsideOfPackage;
import static com.tngtech.archunit.core.domain.JavaClass.Predicates.type;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.classes;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.methods;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;
import static com.tngtech.archunit.library.dependencies.SlicesRuleDefinition.slices;
import static org.assertj.core.api.Assertions.assertThat;

/** The rules that keep technologies apart, and decisions in the engine. */
class ArchitectureTest {

    private static final JavaClasses production = new ClassFileImporter()
            .withImportOption(ImportOption.Predefined.DO_NOT_INCLUDE_TESTS)
            .importPackages("dev.pgworker.autoconfigure");

    @Test
    void packagesAreFreeOfCycles() {
        slices().matching("dev.pgworker.(**)").should().beFreeOfCycles().check(production);
    }

    @Test
    void technologiesDoNotKnowEachOther() {
        slices().matching("dev.pgworker.autoconfigure.(*)..")
                .should()
                .notDependOnEachOther()
                .check(production);
    }

    @Test
    void onlyWhatUsersMayUseIsUsed() {
        noClasses()
                .should()
                .dependOnClassesThat(resideInAPackage("dev.pgworker.internal..").and(not(type(WorkerLog.class))))
                .check(production);
    }

    /** Text of users is in many messages: what logs by itself can be made to write any line. */
    @Test
    void nobodyLogsButThroughTheLogInWhichNoLineIsForged() {
        noClasses().should().dependOnClassesThat(type(LoggerFactory.class)).check(production);
    }

    /** Machines' clocks differ: what decides about jobs is left to the engine and the database. */
    @Test
    void nothingAsksForTheTimeOfThisMachine() {
        noClasses()
                .should()
                .callMethodWhere(
                        DescribedPredicate.describe("ask for the time of day", ArchitectureTest::asksForTheTime))
                .check(production);
    }

    private static boolean asksForTheTime(JavaMethodCall call) {
        Set<String> asking = Set.of("now", "systemUTC", "systemDefaultZone", "system", "tickMillis");
        return (call.getTarget().getOwner().getPackageName().startsWith("java.time")
                        && asking.contains(call.getTarget().getName()))
                || call.getTarget().getFullName().equals("java.lang.System.currentTimeMillis()");
    }

    /**
     * The endpoint reads parameters, calls one method of the public administration, and shows what that returns: with no
     * database, no transaction and no second look there is nothing in it to decide about.
     */
    @Test
    void theEndpointDecidesNothing() {
        noClasses()
                .that()
                .resideInAPackage("..endpoint")
                .should()
                .dependOnClassesThat(resideInAPackage("java.sql..")
                        .or(resideInAPackage("javax.sql.."))
                        .or(resideInAPackage("org.springframework.jdbc.."))
                        .or(resideInAPackage("org.springframework.transaction..")))
                .check(production);
        classes()
                .that()
                .haveSimpleName("EndpointActions")
                .should()
                .onlyCallMethodsThat(DescribedPredicate.describe(
                        "change jobs or read parameters",
                        method -> !method.getOwner().getFullName().equals("dev.pgworker.job.JobQueries")
                                || !Set.of("find", "list", "count").contains(method.getName())))
                .check(production);
    }

    @Test
    void beanMethodsAreNotPublic() {
        methods()
                .that()
                .areAnnotatedWith(Bean.class)
                .should()
                .notBePublic()
                .andShould()
                .notBePrivate()
                .check(production);
    }

    /** Conventions are what applications replace. */
    @Test
    void beyondTheCoreOnlyAutoConfigurationsAndConventionsArePublic() {
        classes()
                .that()
                .arePublic()
                .and(resideOutsideOfPackage("dev.pgworker.autoconfigure"))
                .and()
                .areNotAssignableTo(ObservationConvention.class)
                .and()
                .areNotAssignableTo(Observation.Context.class)
                .should()
                .beAnnotatedWith(AutoConfiguration.class)
                .check(production);
    }

    @Test
    void everyPackageIsNullMarked() throws IOException {
        try (Stream<Path> files = Files.walk(Path.of("src/main/java/dev/pgworker/autoconfigure"))) {
            for (Path directory : files.filter(Files::isDirectory).toList()) {
                assertThat(directory.resolve("package-info.java"))
                        .content()
                        .contains("@" + NullMarked.class.getSimpleName());
            }
        }
    }
}
