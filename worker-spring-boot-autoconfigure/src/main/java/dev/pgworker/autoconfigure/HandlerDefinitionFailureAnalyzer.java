package dev.pgworker.autoconfigure;

import org.springframework.boot.diagnostics.AbstractFailureAnalyzer;
import org.springframework.boot.diagnostics.FailureAnalysis;

import dev.pgworker.task.HandlerDefinitionException;

/** Says which handler cannot work, and what to change. */
final class HandlerDefinitionFailureAnalyzer extends AbstractFailureAnalyzer<HandlerDefinitionException> {

    @Override
    protected FailureAnalysis analyze(Throwable rootFailure, HandlerDefinitionException cause) {
        return new FailureAnalysis(cause.problem() + ".", cause.action() + ".", cause);
    }
}
