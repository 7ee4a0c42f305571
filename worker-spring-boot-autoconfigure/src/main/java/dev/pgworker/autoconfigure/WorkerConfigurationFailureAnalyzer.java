package dev.pgworker.autoconfigure;

import org.springframework.boot.diagnostics.AbstractFailureAnalyzer;
import org.springframework.boot.diagnostics.FailureAnalysis;

/** Says what does not fit together, and what to do. */
final class WorkerConfigurationFailureAnalyzer extends AbstractFailureAnalyzer<WorkerConfigurationException> {

    @Override
    protected FailureAnalysis analyze(Throwable rootFailure, WorkerConfigurationException cause) {
        return new FailureAnalysis(cause.problem(), cause.action(), cause);
    }
}
