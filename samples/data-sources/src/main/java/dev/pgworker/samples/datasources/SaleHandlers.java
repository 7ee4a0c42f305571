package dev.pgworker.samples.datasources;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.stereotype.Component;

import dev.pgworker.samples.datasources.SaleService.Receipt;
import dev.pgworker.task.JobHandler;

/** Runs jobs of the main database. */
@Component
class SaleHandlers {

    private static final Logger log = LoggerFactory.getLogger(SaleHandlers.class);

    @JobHandler("receipt")
    void receipt(Receipt receipt) {
        log.info("Receipt for {}: {} cents", receipt.customer(), receipt.cents());
    }
}
