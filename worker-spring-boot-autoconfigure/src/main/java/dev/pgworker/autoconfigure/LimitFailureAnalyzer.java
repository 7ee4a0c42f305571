package dev.pgworker.autoconfigure;

import org.springframework.boot.diagnostics.AbstractFailureAnalyzer;
import org.springframework.boot.diagnostics.FailureAnalysis;

import dev.pgworker.limit.LimitDefinitionException;

/** Lists every mistake in the annotations of limits with its place. */
final class LimitFailureAnalyzer extends AbstractFailureAnalyzer<LimitDefinitionException> {

    @Override
    protected FailureAnalysis analyze(Throwable rootFailure, LimitDefinitionException cause) {
        return new FailureAnalysis(
                "Limits of jobs cannot be used:\n    " + String.join("\n    ", cause.problems()),
                "Correct each attribute. A @MaxRunning has the number of jobs that run at the same time, a @RateLimit that"
                        + " of the jobs that start in a period and the period; numbers are 1 to 1000000. A @FairShare has a field"
                        + " and weights such as \"acme=3\", 0.01 to 100.",
                cause);
    }
}
