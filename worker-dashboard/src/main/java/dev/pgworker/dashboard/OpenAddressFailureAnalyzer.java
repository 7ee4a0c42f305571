package dev.pgworker.dashboard;

import org.springframework.boot.diagnostics.AbstractFailureAnalyzer;
import org.springframework.boot.diagnostics.FailureAnalysis;

/** Says how to secure the dashboard. */
final class OpenAddressFailureAnalyzer extends AbstractFailureAnalyzer<OpenAddressException> {

    @Override
    protected FailureAnalysis analyze(Throwable rootFailure, OpenAddressException cause) {
        return new FailureAnalysis(
                cause.getMessage(),
                "Do one of the following: add Spring Security, and give users the role of pgworker.dashboard.role; declare"
                        + " a DashboardAccess bean that decides; set server.address=127.0.0.1; or set"
                        + " pgworker.dashboard.allow-any-address=true, with which requests from other machines are still"
                        + " refused.",
                cause);
    }
}
