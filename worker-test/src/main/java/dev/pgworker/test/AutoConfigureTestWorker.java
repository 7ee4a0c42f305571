package dev.pgworker.test;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Inherited;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

import org.springframework.boot.autoconfigure.ImportAutoConfiguration;
import org.springframework.boot.test.context.PropertyMapping;

/**
 * Gives a test class a {@link TestWorker} bean, and leaves it to the test when jobs run. Stands beside {@code @SpringBootTest},
 * or a slice with a {@code DataSource}, such as {@code @JdbcTest} and {@code @DataJpaTest}; a slice then has the {@code Worker},
 * too, with the handlers that it imports. For each worker of {@code pgworker.instances} there is a {@code TestWorker} with its name as
 * qualifier.
 *
 * <p>Before each test the {@link TestWorker#runs() runs} are forgotten; the jobs are not, unless {@link #clearBeforeEach} says so.
 *
 * @since 0.1.0
 */
@Documented
@Inherited
@Target(ElementType.TYPE)
@Retention(RetentionPolicy.RUNTIME)
@ImportAutoConfiguration
public @interface AutoConfigureTestWorker {

    /**
     * Whether the worker starts with the application and runs jobs by itself, so that a test {@linkplain TestWorker#await(
     * dev.pgworker.job.Job) waits} for them. Sets {@code pgworker.auto-startup}.
     */
    @PropertyMapping("pgworker.auto-startup")
    boolean autoStartup() default false;

    /**
     * Whether to {@linkplain TestWorker#clear() clear} the schema before each test method, and before its transaction. Only for a
     * schema that nobody but the test uses.
     */
    boolean clearBeforeEach() default false;
}
