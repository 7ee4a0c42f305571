package dev.pgworker.internal.engine.run;

import java.util.function.Function;

import dev.pgworker.flow.PredecessorResults;
import dev.pgworker.job.Job;
import dev.pgworker.job.JobScheduler;

/**
 * What handlers get from their context.
 *
 * @param jobScheduler adds jobs
 * @param results encodes what they return
 * @param steps records what they have done
 * @param predecessors gives what the jobs have returned that a job has waited for
 */
public record HandlerServices(
        JobScheduler jobScheduler,
        RunResults results,
        StepRuns steps,
        Function<Job, PredecessorResults> predecessors) {}
