package dev.pgworker.test;

import java.util.List;

import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import com.tngtech.archunit.core.importer.ImportOption;
import org.junit.jupiter.api.Test;

import static com.tngtech.archunit.base.DescribedPredicate.not;
import static com.tngtech.archunit.core.domain.JavaClass.Predicates.belongToAnyOf;
import static com.tngtech.archunit.core.domain.JavaClass.Predicates.resideInAPackage;
import static com.tngtech.archunit.core.domain.JavaClass.Predicates.resideInAnyPackage;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;
import static org.assertj.core.api.Assertions.assertThat;

/** The kit is used as it uses others: by what is public, and without Spring Boot where there is none. */
class ArchitectureTest {

    private static final List<Class<?>> forSpringBoot = List.of(
            AutoConfigureTestWorker.class,
            TestWorkerAutoConfiguration.class,
            TestWorkerBeans.class,
            TestWorkerExecutionListener.class,
            TestWorkerFactory.class);

    private static final JavaClasses production = new ClassFileImporter()
            .withImportOption(ImportOption.Predefined.DO_NOT_INCLUDE_TESTS)
            .importPackages("dev.pgworker.test");

    @Test
    void onlyWhatUsersMayUseIsUsed() {
        noClasses()
                .should()
                .dependOnClassesThat(resideInAPackage("dev.pgworker.internal.."))
                .check(production);
    }

    @Test
    void springBootIsOptional() {
        assertThat(production.stream().map(type -> type.getFullName()))
                .containsAll(forSpringBoot.stream().map(Class::getName).toList());
        noClasses()
                .that(not(belongToAnyOf(forSpringBoot.toArray(Class[]::new))))
                .should()
                .dependOnClassesThat(resideInAnyPackage(
                        "org.springframework.boot..", "org.springframework.test..", "dev.pgworker.autoconfigure.."))
                .check(production);
    }
}
