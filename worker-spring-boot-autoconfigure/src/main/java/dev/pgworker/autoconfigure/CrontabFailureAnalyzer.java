package dev.pgworker.autoconfigure;

import java.util.stream.Collectors;

import org.springframework.boot.diagnostics.AbstractFailureAnalyzer;
import org.springframework.boot.diagnostics.FailureAnalysis;

import dev.pgworker.crontab.CrontabException;
import dev.pgworker.crontab.CrontabProblem;

/** Lists every mistake of the crontab with its place. */
final class CrontabFailureAnalyzer extends AbstractFailureAnalyzer<CrontabException> {

    @Override
    protected FailureAnalysis analyze(Throwable rootFailure, CrontabException cause) {
        return new FailureAnalysis(
                cause.problems().stream()
                        .map(CrontabProblem::toString)
                        .collect(Collectors.joining("\n    ", "The crontab cannot be used:\n    ", "")),
                "Correct each line or attribute; the numbers are line and column. A line has minute, hour, day of month,"
                        + " month, day of week and the task, then optionally ?options and a JSON5 payload. A @CronJob has five such"
                        + " fields as value, or else six as cron, a fixedRate or a fixedDelay.",
                cause);
    }
}
