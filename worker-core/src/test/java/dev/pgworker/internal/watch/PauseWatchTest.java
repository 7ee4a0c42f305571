package dev.pgworker.internal.watch;

import java.time.Duration;
import java.util.List;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import dev.pgworker.internal.engine.HeldBack;
import dev.pgworker.internal.engine.WorkerContext;
import dev.pgworker.internal.event.WorkerEvents;
import dev.pgworker.internal.failure.Outage;
import dev.pgworker.internal.lifecycle.Hearing;
import dev.pgworker.internal.lifecycle.Started;
import dev.pgworker.internal.lifecycle.WorkSignal;
import dev.pgworker.internal.store.PauseStore;
import dev.pgworker.job.PauseTarget;
import dev.pgworker.testing.TestSchema;

import static org.assertj.core.api.Assertions.assertThat;

class PauseWatchTest {

    @RegisterExtension
    final TestSchema db = new TestSchema();

    private volatile Hearing hearing = Hearing.NOTHING;

    private PauseWatch watch() {
        return new PauseWatch(
                new PauseStore(db.dataSource(), db.schema()),
                new HeldBack(),
                () -> hearing,
                () -> {},
                new WorkerContext(
                        "w",
                        new WorkerEvents("w", List.of(), List.of()),
                        new Outage(),
                        new WorkSignal(),
                        new Started(() -> false)));
    }

    @ParameterizedTest
    @CsvSource({"NOTHING, 800, 800", "NOTIFICATIONS, 2000, 2000", "LOOKOUT, 60000, 2000"})
    @Tag("thorough")
    void looksTheMoreSeldomTheMoreItIsTold(Hearing heard, long nothing, long paused) throws Exception {
        hearing = heard;
        PauseWatch watch = watch();
        assertThat(watch.work()).isEqualTo(Duration.ofMillis(nothing));

        db.operations().pause(PauseTarget.task("a"), null);

        assertThat(watch.work()).isEqualTo(Duration.ofMillis(paused));
        assertThat(watch.current()).hasSize(1);
    }

    @Test
    void looksOftenWhileAQueueIsPaused() throws Exception {
        hearing = Hearing.LOOKOUT;
        db.operations().pause(PauseTarget.queue("q"), null);

        assertThat(watch().work()).isEqualTo(Duration.ofMillis(800));
    }
}
