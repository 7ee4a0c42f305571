package dev.pgworker.autoconfigure;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

import org.springframework.beans.factory.annotation.Qualifier;

/**
 * Marks the transaction manager to use for transactional handlers, in an application that has several. It must manage
 * the transactions of the worker's data source. The property {@code pgworker.transaction-manager} takes precedence.
 *
 * @since 0.1.0
 */
@Documented
@Qualifier @Target({ElementType.FIELD, ElementType.METHOD, ElementType.PARAMETER, ElementType.TYPE, ElementType.ANNOTATION_TYPE})
@Retention(RetentionPolicy.RUNTIME)
public @interface WorkerTransactionManager {}
