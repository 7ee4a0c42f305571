package dev.pgworker.flow;

import java.util.List;

/**
 * Adds and shows flows: jobs that start when other jobs have ended.
 *
 * <p>A job that waits is an ordinary job whose {@code runAt} lies in the year 9999. Queues, limits, pauses and
 * cancellations hold for it as for others. A job leaves its flow if it gets another {@code runAt}: if it is rescheduled
 * or added again under its job key. Thread-safe.
 *
 * @since 0.1.0
 */
public interface JobFlows {

    /**
     * Adds the jobs of a flow, all of them or none, in the caller's Spring transaction. Interceptors and exceptions are
     * those of {@link dev.pgworker.job.JobScheduler#addJobs(List)}. Until that transaction ends,
     * jobs of the database for which the flow waits cannot end: keep it short.
     *
     * <p>No job waits for one that an interceptor leaves out; its successors wait for its predecessors instead.
     *
     * @throws IllegalArgumentException before any SQL is executed, if the flow has no jobs or one of them is invalid
     * @throws IllegalStateException if a job with {@link OnFailure#INSTEAD} waits for none, or only for jobs that an interceptor leaves out
     * @throws org.springframework.dao.DataAccessException also if a job of the database that the flow waits for does not exist
     *     and nothing is known of how it has ended
     */
    AddedFlow add(JobFlow flow);

    /**
     * Returns the jobs that are tied to a job, directly or through others, because one waits for the other. Jobs that have ended are shown for
     * an hour, and longer while a job exists that may read their results.
     *
     * @param jobId one of them
     * @param most how many to return at most, the nearest ones, 1 to 10,000
     * @return the jobs in the order of their ids; empty if the job belongs to no flow
     */
    List<FlowMember> find(long jobId, int most);
}
