package dev.pgworker.autoconfigure;

import org.springframework.boot.diagnostics.AbstractFailureAnalyzer;
import org.springframework.boot.diagnostics.FailureAnalysis;

import dev.pgworker.schema.SchemaException;

/** Says why the schema cannot be used, and what to do. */
final class SchemaFailureAnalyzer extends AbstractFailureAnalyzer<SchemaException> {

    @Override
    protected FailureAnalysis analyze(Throwable rootFailure, SchemaException cause) {
        return new FailureAnalysis(cause.problem(), cause.action(), cause);
    }
}
