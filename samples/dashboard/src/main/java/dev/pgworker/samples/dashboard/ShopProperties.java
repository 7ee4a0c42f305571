package dev.pgworker.samples.dashboard;

import java.time.Duration;

import org.springframework.boot.context.properties.ConfigurationProperties;

/**
 * How busy the shop is.
 *
 * @param orderEvery the time between two orders
 * @param step what a step of the work takes
 */
@ConfigurationProperties("shop")
record ShopProperties(Duration orderEvery, Duration step) {

    /** Works for so many steps. */
    void work(int steps) throws InterruptedException {
        Thread.sleep(step.multipliedBy(steps).toMillis());
    }
}
