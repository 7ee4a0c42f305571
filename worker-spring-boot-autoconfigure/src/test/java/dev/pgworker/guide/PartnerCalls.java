package dev.pgworker.guide;

import java.time.Duration;
import java.util.List;
import java.util.Map;

import org.springframework.stereotype.Component;
import org.springframework.stereotype.Service;

import dev.pgworker.limit.FairShare;
import dev.pgworker.limit.JobLimits;
import dev.pgworker.limit.Limit;
import dev.pgworker.limit.LimitUsage;
import dev.pgworker.limit.MaxRunning;
import dev.pgworker.limit.RateLimit;
import dev.pgworker.task.JobHandler;

/** The code of docs/limits.md. */
final class PartnerCalls {

    private PartnerCalls() {}

    interface Partner {

        void upload(String tenant, long document);

        void delete(String tenant, long document);

        void index(String tenant, long document);
    }

    @Component
    static class PartnerHandlers {

        private final Partner partner;

        PartnerHandlers(Partner partner) {
            this.partner = partner;
        }

        record Document(String tenant, long id) {}

        @JobHandler("upload")
        @RateLimit(name = "partner", value = 600, period = "1m", burst = 20)
        @MaxRunning(value = 3, per = "tenant")
        void upload(Document document) {
            partner.upload(document.tenant(), document.id());
        }

        @JobHandler("delete-upload")
        @RateLimit(name = "partner", value = 600, period = "1m", burst = 20)
        void delete(Document document) {
            partner.delete(document.tenant(), document.id());
        }
    }

    @Component
    static class IndexHandlers {

        private final Partner partner;

        IndexHandlers(Partner partner) {
            this.partner = partner;
        }

        record Page(String tenant, long id) {}

        @JobHandler("index")
        @FairShare(
                per = "tenant",
                weights = {"acme=3", "trial=0.5"})
        void index(Page page) {
            partner.index(page.tenant(), page.id());
        }
    }

    @Service
    static class TenantPlans {

        private final JobLimits limits;

        TenantPlans(JobLimits limits) {
            this.limits = limits;
        }

        void allow(int reportsAtOnce) {
            limits.put(Limit.concurrency("reports", reportsAtOnce, "report").per("tenant"));
        }

        void slowDown() {
            limits.put(Limit.rate("mail", 100, Duration.ofMinutes(1), "mail").withBurst(10));
        }

        void prefer(String tenant) {
            limits.put(Limit.fairShare("report-turns", "report").per("tenant").withWeights(Map.of(tenant, 3.0)));
        }

        List<LimitUsage> usage() {
            return limits.usage("reports", null, 100);
        }

        void lift() {
            limits.delete("reports");
        }
    }
}
