package dev.pgworker.autoconfigure.metrics;

import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;

import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.MultiGauge;
import io.micrometer.core.instrument.Tags;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;

import dev.pgworker.internal.failure.WorkerLog;
import dev.pgworker.limit.JobLimits;
import dev.pgworker.limit.LimitStatus;

/** Shows how much of each limit of one worker's schema is used. Used by the sampler's thread. */
final class LimitGauges {

    private static final Logger log = WorkerLog.of(LimitGauges.class);

    /** With more limits than that, the others have no gauges. */
    private static final int MOST = 200;

    private final JobLimits limits;
    private final MultiGauge waiting;
    private final MultiGauge used;
    private boolean failing;

    LimitGauges(String worker, JobLimits limits, MeterRegistry registry) {
        this.limits = limits;
        waiting = MultiGauge.builder("pgworker.limit.waiting")
                .description("Jobs that wait for a limit, or will when they are due")
                .tag(WorkerMetrics.WORKER, worker)
                .register(registry);
        used = MultiGauge.builder("pgworker.limit.used")
                .description("Jobs that run under a limit of concurrency")
                .tag(WorkerMetrics.WORKER, worker)
                .register(registry);
    }

    /** Leaves out what cannot be read: the other metrics do not need it. */
    void sample() {
        try {
            register(limits.list());
            failing = false;
        } catch (RuntimeException e) {
            clear();
            if (!failing) {
                failing = true;
                log.warn("Limits cannot be read; their metrics have no values until they can", e);
            }
        }
    }

    void clear() {
        register(List.of());
    }

    private void register(List<LimitStatus> limits) {
        waiting.register(rows(limits, LimitStatus::waiting), true);
        used.register(rows(limits, LimitStatus::used), true);
    }

    private static List<MultiGauge.Row<?>> rows(
            List<LimitStatus> limits, Function<LimitStatus, @Nullable Long> number) {
        List<MultiGauge.Row<?>> rows = new ArrayList<>();
        for (LimitStatus limit : limits.subList(0, Math.min(MOST, limits.size()))) {
            Long value = number.apply(limit);
            if (value != null) {
                rows.add(MultiGauge.Row.of(Tags.of("limit", limit.name()), value));
            }
        }
        return rows;
    }
}
