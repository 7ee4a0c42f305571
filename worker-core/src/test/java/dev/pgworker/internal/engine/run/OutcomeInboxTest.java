package dev.pgworker.internal.engine.run;

import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

import dev.pgworker.internal.store.RunRecord;
import dev.pgworker.job.Job;
import dev.pgworker.testing.OwnThread;
import dev.pgworker.testing.TestJob;

import static org.assertj.core.api.Assertions.assertThat;

@Tag("any-postgres")
class OutcomeInboxTest {

    private final OutcomeInbox inbox = new OutcomeInbox(Duration.ZERO);

    /** A result for each handler that nobody writes in time would take all memory. */
    @Test
    void handlersWaitUntilLargeResultsAreWritten() throws Exception {
        String part = "x".repeat(Math.toIntExact(OutcomeInbox.ROOM_TOGETHER + 1));
        for (int id = 1; id <= 4; id++) {
            inbox.submit(outcome(id, part));
        }
        CompletableFuture<Boolean> handler = CompletableFuture.supplyAsync(this::waited, OwnThread.EACH);
        EncodedOutcome written = inbox.take();
        assertThat(handler).isNotDone();

        inbox.forget(written.claim());

        assertThat(handler.get(120, TimeUnit.SECONDS)).as("there is room").isTrue();
    }

    private boolean waited() {
        try {
            return inbox.awaitRoom();
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    @Test
    void nobodyWaitsForOutcomesThatAreForgottenOrSmall() throws Exception {
        for (int id = 1; id <= 1_000; id++) {
            inbox.submit(outcome(id, "{}"));
        }
        assertThat(inbox.awaitRoom()).isTrue();
        EncodedOutcome large = outcome(1, "x".repeat(Math.toIntExact(4 * OutcomeInbox.ROOM_TOGETHER + 1)));
        inbox.submit(large);
        inbox.submit(outcome(1, "{}"));
        assertThat(inbox.awaitRoom()).as("submitted again without its result").isTrue();
        inbox.forget(large.claim());
        inbox.forget(large.claim());
        assertThat(inbox.awaitRoom()).isTrue();
    }

    private EncodedOutcome outcome(long id, String result) {
        Job job = TestJob.withId(id).build();
        return inbox.encode(job, JobOutcome.Success.INSTANCE, null).withRun(new RunRecord(1, result, null));
    }
}
