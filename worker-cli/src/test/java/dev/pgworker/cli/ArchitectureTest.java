package dev.pgworker.cli;

import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.domain.JavaModifier;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import com.tngtech.archunit.core.importer.ImportOption;
import org.junit.jupiter.api.Test;

import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.classes;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;

/** The command line is a user of the library like any other, and no library itself. */
class ArchitectureTest {

    private final JavaClasses program = new ClassFileImporter()
            .withImportOption(ImportOption.Predefined.DO_NOT_INCLUDE_TESTS)
            .importPackages("dev.pgworker.cli");

    @Test
    void usesThePublicApiOnly() {
        noClasses()
                .should()
                .dependOnClassesThat()
                .resideInAPackage("dev.pgworker.internal..")
                .check(program);
    }

    @Test
    void hasNoApiOfItsOwn() {
        classes()
                .that()
                .haveModifier(JavaModifier.PUBLIC)
                .and()
                .areTopLevelClasses()
                .should()
                .haveSimpleName("WorkerCli")
                .check(program);
    }
}
