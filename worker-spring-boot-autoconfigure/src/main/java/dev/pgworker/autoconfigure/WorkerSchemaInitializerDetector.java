package dev.pgworker.autoconfigure;

import java.util.Set;

import org.springframework.boot.sql.init.dependency.AbstractBeansOfTypeDatabaseInitializerDetector;

/** Tells Spring Boot that the schema initializer comes before every other database initializer. */
final class WorkerSchemaInitializerDetector extends AbstractBeansOfTypeDatabaseInitializerDetector {

    @Override
    protected Set<Class<?>> getDatabaseInitializerBeanTypes() {
        return Set.of(WorkerSchemaInitializer.class);
    }

    /** Flyway's has 1, Liquibase's, scripts' and JPA's have more. */
    @Override
    public int getOrder() {
        return 0;
    }
}
