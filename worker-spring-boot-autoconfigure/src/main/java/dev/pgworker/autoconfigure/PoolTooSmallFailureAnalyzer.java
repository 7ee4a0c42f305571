package dev.pgworker.autoconfigure;

import org.springframework.boot.diagnostics.AbstractFailureAnalyzer;
import org.springframework.boot.diagnostics.FailureAnalysis;

/** Says how to give the worker the connections it needs. */
final class PoolTooSmallFailureAnalyzer extends AbstractFailureAnalyzer<PoolTooSmallException> {

    @Override
    protected FailureAnalysis analyze(Throwable rootFailure, PoolTooSmallException cause) {
        return new FailureAnalysis(
                cause.getMessage(),
                "Set spring.datasource.hikari.maximum-pool-size to at least 3, or set pgworker.listen.url, which may be"
                        + " the same URL as spring.datasource.url, to listen outside the pool. An application that"
                        + " only adds jobs sets pgworker.enabled=false.",
                cause);
    }
}
