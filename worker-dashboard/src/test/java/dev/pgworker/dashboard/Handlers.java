package dev.pgworker.dashboard;

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

import org.springframework.context.annotation.Configuration;

import dev.pgworker.crontab.CronJob;
import dev.pgworker.task.JobContext;
import dev.pgworker.task.JobHandler;

/** Handlers of an application whose jobs are looked at. */
@Configuration(proxyBeanMethods = false)
class Handlers {

    private final CountDownLatch release = new CountDownLatch(1);

    @JobHandler("slow")
    void slow(JobContext context) throws InterruptedException {
        context.progress(1, 3, "first part");
        if (!release.await(5, TimeUnit.MINUTES)) {
            throw new IllegalStateException("Nobody has released the job");
        }
    }

    @JobHandler(value = "fails", maxAttempts = 1)
    void fails() {
        throw new IllegalStateException("first line\nsecond line");
    }

    @JobHandler("quick")
    void quick() {}

    @CronJob(value = "0 4 * * *", zone = "Europe/Berlin")
    @JobHandler("nightly")
    void nightly() {}

    void release() {
        release.countDown();
    }
}
