package dev.pgworker.test;

import java.time.Duration;
import java.time.Instant;

import org.assertj.core.api.AbstractAssert;
import org.assertj.core.api.AbstractThrowableAssert;
import org.assertj.core.api.Assertions;

import dev.pgworker.test.JobRun.Outcome;

/**
 * Assertions on one attempt of a job. A failure has what the handler threw as its cause.
 *
 * @since 0.1.0
 */
public final class JobRunAssert extends AbstractAssert<JobRunAssert, JobRun> {

    JobRunAssert(JobRun actual) {
        super(actual, JobRunAssert.class);
    }

    /** Verifies that the handler returned and the job is gone. */
    public JobRunAssert isCompleted() {
        return hasOutcome(Outcome.COMPLETED);
    }

    /** Verifies that the attempt failed and the job runs again. */
    public JobRunAssert isRetrying() {
        return hasOutcome(Outcome.RETRYING);
    }

    /** Verifies that the attempt failed and the job does not run again. */
    public JobRunAssert hasFailed() {
        return hasOutcome(Outcome.FAILED);
    }

    /** Verifies that the handler put the job off. */
    public JobRunAssert isSnoozed() {
        return hasOutcome(Outcome.SNOOZED);
    }

    /** Verifies how the attempt ended. */
    public JobRunAssert hasOutcome(Outcome expected) {
        isNotNull();
        if (actual.outcome() != expected) {
            throw unexpected("Expecting " + actual.job() + " to be " + expected + " but was:\n  " + actual);
        }
        return this;
    }

    /** Verifies that the attempt had this number, beginning with 1. */
    public JobRunAssert isAttempt(int expected) {
        isNotNull();
        if (actual.job().attempts() != expected) {
            throw unexpected("Expecting attempt " + expected + " but was:\n  " + actual);
        }
        return this;
    }

    /**
     * Verifies that the job runs again so long after the attempt ended, give or take a second. Up to 10 % earlier is accepted too,
     * as delays are spread that much.
     */
    public JobRunAssert runsAgainIn(Duration expected) {
        isNotNull();
        Instant again = actual.nextRunAt();
        if (again == null || actual.next() == null) {
            throw unexpected("Expecting " + actual.job() + " to run again but was:\n  " + actual);
        }
        Duration wait = Duration.between(actual.next().updatedAt(), again);
        Duration earliest = expected.minus(expected.dividedBy(10)).minusSeconds(1);
        if (wait.compareTo(earliest) < 0 || wait.compareTo(expected.plusSeconds(1)) > 0) {
            throw unexpected("Expecting " + actual.job() + " to run again in " + expected + " but it does in " + wait);
        }
        return this;
    }

    /** Verifies that the attempt threw, and returns the assertions on what it threw. */
    public AbstractThrowableAssert<?, ? extends Throwable> error() {
        isNotNull();
        if (actual.error() == null) {
            throw unexpected("Expecting an error but was:\n  " + actual);
        }
        return Assertions.assertThat(actual.error()).as("the error of %s", actual.job());
    }

    private AssertionError unexpected(String message) {
        AssertionError failure = failure("%s", message);
        if (actual.error() != null && failure.getCause() == null) {
            failure.initCause(actual.error());
        }
        return failure;
    }
}
