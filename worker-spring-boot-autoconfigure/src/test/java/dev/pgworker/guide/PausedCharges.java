package dev.pgworker.guide;

import java.util.List;

import org.springframework.context.event.EventListener;
import org.springframework.stereotype.Component;

import dev.pgworker.job.JobQueries;
import dev.pgworker.job.Pause;
import dev.pgworker.job.PauseTarget;
import dev.pgworker.job.Task;
import dev.pgworker.job.WorkerOperations;
import dev.pgworker.task.JobHandler;

/** The code of docs/pausing.md. */
final class PausedCharges {

    private PausedCharges() {}

    interface Bank {
        void charge(String card, long cents);
    }

    @Component
    static class Charges {

        static final Task<Charge> CHARGE = Task.of("charge_card", Charge.class);

        private static final PauseTarget CHARGES = PauseTarget.task("charge_card");

        record Charge(String card, long cents) {}

        /** Thrown by the bank's client while the bank says that it is closed. */
        static class BankClosedException extends RuntimeException {

            private static final long serialVersionUID = 1L;
        }

        /** The bank has opened again. */
        record BankOpened() {}

        private final Bank bank;
        private final WorkerOperations operations;
        private final JobQueries queries;

        Charges(Bank bank, WorkerOperations operations, JobQueries queries) {
            this.bank = bank;
            this.operations = operations;
            this.queries = queries;
        }

        @JobHandler("charge_card")
        void charge(Charge charge) {
            try {
                bank.charge(charge.card(), charge.cents());
            } catch (BankClosedException e) {
                operations.actingAs("bank client").pause(CHARGES, "The bank is closed");
                throw e; // this attempt counts; no other one begins before the bank opens
            }
        }

        @EventListener
        void open(BankOpened opened) {
            operations.actingAs("bank client").resume(CHARGES);
        }

        List<Pause> whatIsPaused() {
            return queries.pauses(); // what, since when, by whom and why
        }
    }
}
