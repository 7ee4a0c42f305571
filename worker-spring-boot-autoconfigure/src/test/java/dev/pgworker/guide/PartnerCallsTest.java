package dev.pgworker.guide;

import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

import dev.pgworker.Worker;
import dev.pgworker.autoconfigure.testing.TestDatabase;
import dev.pgworker.job.JobScheduler;
import dev.pgworker.limit.JobLimits;
import dev.pgworker.limit.Limit;
import dev.pgworker.limit.LimitStatus;

import static org.assertj.core.api.Assertions.assertThat;

/** The example of docs/limits.md does what the page says. */
class PartnerCallsTest {

    @RegisterExtension
    final TestDatabase db = new TestDatabase().installed();

    private final Map<String, AtomicInteger> running = new ConcurrentHashMap<>();
    private final Map<String, Integer> most = new ConcurrentHashMap<>();
    private final AtomicInteger deleted = new AtomicInteger();

    private final PartnerCalls.Partner partner = new PartnerCalls.Partner() {
        @Override
        public void upload(String tenant, long document) {
            AtomicInteger now = running.computeIfAbsent(tenant, name -> new AtomicInteger());
            most.merge(tenant, now.incrementAndGet(), Math::max);
            now.decrementAndGet();
        }

        @Override
        public void delete(String tenant, long document) {
            deleted.incrementAndGet();
        }

        @Override
        public void index(String tenant, long document) {}
    };

    @Test
    @Tag("thorough")
    void thePartnerIsCalledAsOftenAsIsAllowed() {
        db.runner()
                .withBean(PartnerCalls.Partner.class, () -> partner)
                .withBean(PartnerCalls.PartnerHandlers.class)
                .withBean(PartnerCalls.TenantPlans.class)
                .withPropertyValues("pgworker.auto-startup=false", "pgworker.concurrency=8")
                .run(context -> {
                    JobScheduler jobs = context.getBean(JobScheduler.class);
                    Worker worker = context.getBean(Worker.class);
                    assertThat(worker.declaredLimits())
                            .containsExactlyInAnyOrder(
                                    Limit.rate("partner", 600, Duration.ofMinutes(1), "upload", "delete-upload")
                                            .withBurst(20),
                                    Limit.concurrency("upload.running.tenant", 3, "upload")
                                            .per("tenant"));
                    for (int i = 0; i < 12; i++) {
                        jobs.addJob("upload", Map.of("tenant", "acme", "id", i));
                        jobs.addJob("delete-upload", Map.of("tenant", "acme", "id", i));
                    }
                    assertThat(worker.runOnce()).isBetween(20L, 24L);
                    assertThat(most.get("acme")).isBetween(1, 3);
                    assertThat(deleted).hasValueBetween(1, 12);

                    PartnerCalls.TenantPlans plans = context.getBean(PartnerCalls.TenantPlans.class);
                    plans.allow(2);
                    plans.slowDown();
                    plans.prefer("acme");
                    JobLimits limits = context.getBean(JobLimits.class);
                    assertThat(limits.list())
                            .extracting(LimitStatus::name)
                            .containsExactly("mail", "partner", "report-turns", "reports", "upload.running.tenant");
                    assertThat(plans.usage()).isEqualTo(List.of());
                    plans.lift();
                    worker.runOnce();
                    assertThat(limits.find("reports")).isEmpty();
                });
    }
}
