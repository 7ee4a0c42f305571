package dev.pgworker.step;

import java.time.Duration;
import java.time.Instant;

import org.jspecify.annotations.Nullable;

import dev.pgworker.internal.argument.Arguments;

/**
 * The steps of a job. Once a step has ended, no later attempt runs it again, on whatever worker: its recorded result is returned. A handler method
 * gets them as a parameter, any handler from {@code JobContext.steps()}:
 *
 * <pre>{@code
 * Charge charge = steps.run("charge", Charge.class, step -> payments.charge(order, step.idempotencyKey()));
 * steps.inTransaction("book", () -> bookings.save(order, charge));
 * Approval approval = steps.await("approval-" + order.id(), Approval.class, Duration.ofDays(7));
 * steps.sleep("cool-down", Duration.ofHours(1));
 * }</pre>
 *
 * <p>A name identifies a step within its job, and is 1 to 128 characters without {@code #}. The second use of a name in an attempt is the step
 * {@code name#2}, and so on, so the uses of one name must come in the same order in every attempt. What is between the steps runs in every attempt. Steps that
 * the code no longer has are ignored. A job that is added again under its key, while it waits, begins anew ({@code unsafe_dedupe} keeps its steps).
 *
 * <p>A record is written only while the worker holds the job, so a worker that was declared dead records nothing: the step fails with an
 * {@link IllegalStateException}. Every method throws one as well in a Spring transaction, which could take back what is recorded as done, within another
 * step, and after the attempt has ended. Except for {@link #await} and {@link #sleep}, the methods may be called from any thread that the
 * handler uses. Handlers of direct, transactional and batch tasks have no steps.
 *
 * @since 0.1.0
 */
public interface JobSteps {

    /**
     * What a step does outside of a transaction.
     *
     * @since 0.1.0
     */
    @FunctionalInterface
    interface Work<T extends @Nullable Object, E extends Exception> {

        /** Does it, and returns the result. */
        T run(Step step) throws E;
    }

    /**
     * What a step without a result does outside of a transaction.
     *
     * @since 0.1.0
     */
    @FunctionalInterface
    interface Action<E extends Exception> {

        /** Does it. */
        void run(Step step) throws E;
    }

    /**
     * What a step does in its transaction.
     *
     * @since 0.1.0
     */
    @FunctionalInterface
    interface Transaction<T extends @Nullable Object, E extends Exception> {

        /** Does it, and returns the result. */
        T run() throws E;
    }

    /**
     * What a step without a result does in its transaction.
     *
     * @since 0.1.0
     */
    @FunctionalInterface
    interface TransactionalAction<E extends Exception> {

        /** Does it. */
        void run() throws E;
    }

    /**
     * Runs a step unless it has ended already, and records that it has, with its result. A worker that crashes after the work and before the record has
     * it run again: pass {@link Step#idempotencyKey()} to whatever must not do it twice.
     *
     * @param type the type of the result, which is recorded as JSON and read back in later attempts; an array or a record for several values
     * @return what the work returned, in this attempt or an earlier one
     * @throws dev.pgworker.task.PayloadException if the recorded result does not fit the type; the attempt fails then, and so does the next one
     *     until the code fits
     * @throws dev.pgworker.task.JobControlException if the result has more than {@code pgworker.steps.max-result-size} bytes; the job fails permanently
     */
    <T extends @Nullable Object, E extends Exception> T run(String name, Class<T> type, Work<T, E> work) throws E;

    /** Same as {@link #run(String, Class, Work)}, without a result. */
    @SuppressWarnings("NullAway") // the only Void is null
    default <E extends Exception> void run(String name, Action<E> action) throws E {
        Arguments.requireNonNull("action", action);
        Object unused = this.<Void, E>run(name, Void.class, step -> {
            action.run(step);
            return null;
        });
    }

    /**
     * Runs a step unless it has ended already, in a transaction of its own that also records it: both are committed, or neither. Its work must leave its
     * traces in the worker's data source alone.
     *
     * @param type the type of the result
     * @return what the work returned, in this attempt or an earlier one
     */
    <T extends @Nullable Object, E extends Exception> T inTransaction(
            String name, Class<T> type, Transaction<T, E> work) throws E;

    /** Same as {@link #inTransaction(String, Class, Transaction)}, without a result. */
    @SuppressWarnings("NullAway") // the only Void is null
    default <E extends Exception> void inTransaction(String name, TransactionalAction<E> action) throws E {
        Arguments.requireNonNull("action", action);
        Object unused = this.<Void, E>inTransaction(name, Void.class, () -> {
            action.run();
            return null;
        });
    }

    /**
     * Waits for a signal, whose name is that of the step. If it has not been sent yet, the attempt ends without
     * counting, and frees its handler, its queue and the permits of its limits; the job runs again when the signal
     * comes, or the time is over. A signal for which no job waits is kept for the first job that waits for it. Of
     * several jobs that wait for one name, each signal is received by one: the one that has waited longest.
     *
     * @param type the type of the signal's payload
     * @param timeout how long to wait from the first attempt that comes here on, by the database's clock; 0 to 3650 days
     * @return the payload
     * @throws SignalTimeoutException if no signal has come in time
     * @throws dev.pgworker.task.PayloadException if the payload does not fit the type
     */
    <T> T await(String signal, Class<T> type, Duration timeout);

    /** Same as {@link #await(String, Class, Duration)}, whatever the payload of the signal is. */
    void await(String signal, Duration timeout);

    /**
     * Lets some time pass, once for all attempts. Unless it is over already, the attempt ends without counting, and frees its handler, its queue and the
     * permits of its limits; the job runs again at that time.
     *
     * @param time from the first attempt that comes here on, by the database's clock; 0 to 3650 days
     */
    void sleep(String name, Duration time);

    /** Same as {@link #sleep(String, Duration)}, until a point in time. */
    void sleepUntil(String name, Instant time);
}
