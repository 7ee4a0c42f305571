package dev.pgworker.internal.engine.run;

import java.util.List;

import org.jspecify.annotations.Nullable;

import dev.pgworker.job.Job;
import dev.pgworker.task.CancelSettings;
import dev.pgworker.task.JobInterceptor;
import dev.pgworker.task.PayloadCodec;
import dev.pgworker.task.TaskOptions;
import dev.pgworker.task.TaskRegistration;
import dev.pgworker.task.TaskRegistry;

/**
 * What it takes to call handlers.
 *
 * @param interceptors stand around every run, the first one outermost
 * @param transactions runs transactional handlers; null if there are none
 * @param services what they get from their context, with the codec that decodes payloads
 * @param cancelling how they are ended when their jobs are cancelled
 * @param payloads reads what claims have left out
 */
public record HandlerCalls(
        TaskRegistry tasks,
        List<JobInterceptor> interceptors,
        @Nullable HandlerTransactions transactions,
        HandlerServices services,
        CancelSettings cancelling,
        Payloads payloads) {

    PayloadCodec codec() {
        return services.results().codec();
    }

    /** Returns how the jobs of a task are run. */
    TaskOptions options(Job job) {
        TaskRegistration task = tasks.find(job.taskIdentifier());
        return task == null ? TaskOptions.DEFAULT : task.options();
    }
}
