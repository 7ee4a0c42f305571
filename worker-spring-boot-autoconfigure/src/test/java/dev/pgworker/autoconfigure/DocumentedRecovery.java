package dev.pgworker.autoconfigure;

import java.time.Duration;
import java.util.List;

import org.springframework.context.annotation.Bean;

import dev.pgworker.job.ActiveWorker;
import dev.pgworker.job.JobQueries;
import dev.pgworker.job.SweepOptions;
import dev.pgworker.job.SweepResult;
import dev.pgworker.job.WorkerOperations;
import dev.pgworker.task.JobContext;
import dev.pgworker.task.JobHandler;
import dev.pgworker.task.JobRecoveryHandler;
import dev.pgworker.task.RecoveryDecision;

/** Code that the page about reliability shows: it stands here so that it compiles. */
class DocumentedRecovery {

    static class Decisions {

        @Bean
        JobRecoveryHandler recoverPayments() {
            return (job, worker) -> job.taskIdentifier().equals("payment")
                    ? RecoveryDecision.failWithBackoff()
                    : RecoveryDecision.useDefault();
        }
    }

    record Transfer(String account, long cents) {}

    interface Accounts {
        void transfer(Transfer transfer, String fencingToken);
    }

    static class Transfers {

        private final Accounts accounts;

        Transfers(Accounts accounts) {
            this.accounts = accounts;
        }

        @JobHandler("transfer")
        void transfer(Transfer transfer, JobContext context) {
            if (!context.isOwned()) {
                return;
            }
            accounts.transfer(transfer, context.fencingToken());
        }
    }

    List<Object> sweep(WorkerOperations operations, JobQueries queries) {
        SweepResult found = operations.sweep(new SweepOptions(Duration.ofMinutes(2), null, true)); // a dry run
        SweepResult result = operations.sweep(SweepOptions.DEFAULT);
        List<ActiveWorker> workers = queries.activeWorkers(Duration.ofMinutes(2)); // with stale()
        return List.of(found, result, workers);
    }
}
