package dev.pgworker.samples.dashboard;

import java.util.List;
import java.util.random.RandomGenerator;

import org.springframework.stereotype.Component;

import dev.pgworker.crontab.CronJob;
import dev.pgworker.samples.dashboard.Jobs.Campaign;
import dev.pgworker.samples.dashboard.Jobs.Carts;
import dev.pgworker.samples.dashboard.Jobs.Report;
import dev.pgworker.schedule.Misfire;
import dev.pgworker.task.JobContext;
import dev.pgworker.task.JobHandler;

/** What runs on a schedule. The reports have a worker of their own. */
@Component
class ReportHandlers {

    private static final List<String> CHAPTERS =
            List.of("orders", "returns", "payments", "stock", "partners", "newsletter", "summary");

    private final ShopProperties shop;
    private final RandomGenerator random;

    ReportHandlers(ShopProperties shop, RandomGenerator random) {
        this.shop = shop;
        this.random = random;
    }

    record WrittenReport(String file, int rows, String period) {}

    @CronJob(
            id = "month-end-report",
            cron = "0 30 18 LW * *",
            zone = "Europe/Berlin",
            misfire = Misfire.RUN_ONCE,
            payload = "{period: \"this month\", format: \"pdf\"}")
    @JobHandler(value = "sales_report", worker = "reports")
    WrittenReport salesReport(Report report, JobContext context) throws InterruptedException {
        for (int i = 0; i < CHAPTERS.size(); i++) {
            context.progress(i, CHAPTERS.size(), "Chapter " + CHAPTERS.get(i));
            shop.work(60);
        }
        return new WrittenReport(
                "reports/" + context.job().id() + "." + report.format(),
                random.nextInt(2_000, 40_000),
                report.period());
    }

    @JobHandler("send_newsletter")
    void newsletter(Campaign campaign, JobContext context) throws InterruptedException {
        for (int sent = 0; sent < 20_000; sent += 500) {
            context.progress(sent, 20_000, campaign.audience());
            shop.work(5);
        }
    }

    @JobHandler("clear_carts")
    void clearCarts(Carts carts) throws InterruptedException {
        shop.work(5);
    }
}
