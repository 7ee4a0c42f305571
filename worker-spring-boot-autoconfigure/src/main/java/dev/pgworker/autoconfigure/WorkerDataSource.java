package dev.pgworker.autoconfigure;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

import org.springframework.beans.factory.annotation.Qualifier;

/**
 * Marks the data source whose database holds the jobs, in an application that has several. It takes precedence over the
 * primary data source; the property {@code pgworker.data-source} takes precedence over both.
 *
 * @since 0.1.0
 */
@Documented
@Qualifier @Target({ElementType.FIELD, ElementType.METHOD, ElementType.PARAMETER, ElementType.TYPE, ElementType.ANNOTATION_TYPE})
@Retention(RetentionPolicy.RUNTIME)
public @interface WorkerDataSource {}
