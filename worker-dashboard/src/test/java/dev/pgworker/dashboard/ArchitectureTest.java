package dev.pgworker.dashboard;

import java.util.Set;

import com.tngtech.archunit.base.DescribedPredicate;
import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.domain.JavaMethodCall;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import com.tngtech.archunit.core.importer.ImportOption;
import org.junit.jupiter.api.Test;
import org.slf4j.LoggerFactory;

import dev.pgworker.internal.failure.WorkerLog;

import static com.tngtech.archunit.base.DescribedPredicate.not;
import static com.tngtech.archunit.core.domain.JavaClass.Predicates.resideInAPackage;
import static com.tngtech.archunit.core.domain.JavaClass.Predicates.resideInAnyPackage;
import static com.tngtech.archunit.core.domain.JavaClass.Predicates.type;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.classes;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;
import static org.assertj.core.api.Assertions.assertThat;

/** The dashboard reads and changes jobs by what is public, and needs neither Spring MVC nor Spring Security. */
class ArchitectureTest {

    private static final JavaClasses production = new ClassFileImporter()
            .withImportOption(ImportOption.Predefined.DO_NOT_INCLUDE_TESTS)
            .importPackages("dev.pgworker.dashboard");

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

    @Test
    void thereIsNoSql() {
        noClasses()
                .should()
                .dependOnClassesThat(resideInAnyPackage("java.sql..", "org.springframework.jdbc.core.."))
                .andShould()
                .haveSimpleNameNotEndingWith("Failures")
                .check(production);
    }

    /** Each of them in a class of its own, which is loaded where Spring Security is. */
    @Test
    void springSecurityIsOptional() {
        Set<String> withSecurity =
                Set.of("dev.pgworker.dashboard.Csrf$SecurityToken", "dev.pgworker.dashboard.Guard$SignIn");
        noClasses()
                .that(DescribedPredicate.describe(
                        "are loaded without Spring Security", type -> !withSecurity.contains(type.getName())))
                .should()
                .dependOnClassesThat(resideInAnyPackage("org.springframework.security.."))
                .check(production);
        assertThat(production.stream().map(type -> type.getName())).containsAll(withSecurity);
    }

    @Test
    void springMvcIsNotNeeded() {
        noClasses()
                .should()
                .dependOnClassesThat(
                        resideInAnyPackage("org.springframework.web.servlet..", "org.springframework.http.."))
                .check(production);
    }

    /** A test says what the time is. */
    @Test
    void theTimeOfDayComesFromAClock() {
        noClasses()
                .should()
                .callMethodWhere(
                        DescribedPredicate.describe("ask for the time of day", ArchitectureTest::asksForTheTime))
                .check(production);
    }

    private static boolean asksForTheTime(JavaMethodCall call) {
        return (call.getTarget().getOwner().getPackageName().startsWith("java.time")
                        && call.getTarget().getName().equals("now"))
                || call.getTarget().getFullName().equals("java.lang.System.currentTimeMillis()");
    }

    @Test
    void whatUsersNeedIsPublicAndNothingElse() {
        classes()
                .that()
                .arePublic()
                .should()
                .haveNameMatching("dev\\.pgworker\\.dashboard\\.Dashboard"
                        + "(Access|Action|AutoConfiguration|Payloads|Properties(\\$Payloads)?)")
                .check(production);
    }
}
