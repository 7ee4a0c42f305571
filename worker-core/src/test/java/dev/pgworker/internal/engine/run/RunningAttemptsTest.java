package dev.pgworker.internal.engine.run;

import java.lang.reflect.Proxy;
import java.time.Duration;
import java.util.stream.LongStream;
import javax.sql.DataSource;

import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.springframework.jdbc.datasource.DriverManagerDataSource;
import tools.jackson.databind.json.JsonMapper;

import dev.pgworker.flow.PredecessorResults;
import dev.pgworker.internal.engine.queue.RunnerSlots;
import dev.pgworker.internal.engine.run.RunningAttempts.LongRun;
import dev.pgworker.internal.store.JobStore;
import dev.pgworker.internal.store.KeptHistory;
import dev.pgworker.internal.store.RenewedLocks;
import dev.pgworker.job.JobScheduler;
import dev.pgworker.schema.WorkerSchema;
import dev.pgworker.task.PayloadCodec;
import dev.pgworker.testing.TestJob;

import static org.assertj.core.api.Assertions.assertThat;

class RunningAttemptsTest {

    private static final JobScheduler NOBODY = (JobScheduler) Proxy.newProxyInstance(
            JobScheduler.class.getClassLoader(),
            new Class<?>[] {JobScheduler.class},
            (self, method, arguments) -> null);

    private static final PayloadCodec CODEC = new PayloadCodec(new JsonMapper());

    private static final DataSource NO_DATA = new DriverManagerDataSource();

    private static final HandlerServices SERVICES = new HandlerServices(
            NOBODY,
            new RunResults(new KeptHistory(), CODEC, 0, 1),
            new StepRuns(
                    new JobStore(NO_DATA, new WorkerSchema("none"), "w").steps(),
                    RenewedLocks.UNCHANGED,
                    CODEC,
                    1_000,
                    NO_DATA,
                    null),
            job -> PredecessorResults.NONE);

    private final RunningAttempts attempts = new RunningAttempts();

    private Attempt add(long id) {
        RunnerSlots.@Nullable Runner none = null;
        Attempt attempt = new Attempt(TestJob.withId(id).build(), "w", SERVICES, job -> true, true, none);
        attempts.add(attempt);
        return attempt;
    }

    @Test
    void theLongestRunningComeFirstUpToTheLimit() {
        LongStream.rangeClosed(1, 30).forEach(id -> add(id).setClaimed());

        assertThat(attempts.longest(Duration.ZERO, 10))
                .extracting(run -> run.claim().jobId())
                .containsExactly(1L, 2L, 3L, 4L, 5L, 6L, 7L, 8L, 9L, 10L);
        assertThat(attempts.longest(Duration.ofDays(1), 10)).isEmpty();
    }

    @Test
    void whoHasReportedNeedNotRunLongButHasToBeClaimed() {
        Attempt reporting = add(1);
        reporting.progress(1, 2, "text");
        add(2).setClaimed();
        assertThat(attempts.longest(Duration.ofDays(1), 10)).isEmpty();

        reporting.setClaimed();

        assertThat(attempts.longest(Duration.ofDays(1), 10))
                .singleElement()
                .extracting(LongRun::progress)
                .isEqualTo(new Progress(1, 2, "text"));
        attempts.remove(reporting);
        assertThat(attempts.longest(Duration.ofDays(1), 10)).isEmpty();
    }
}
