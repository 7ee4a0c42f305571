package dev.pgworker.samples.dashboard;

import java.time.Duration;
import java.util.List;
import java.util.random.RandomGenerator;

import org.springframework.stereotype.Component;

import dev.pgworker.samples.dashboard.Jobs.Catalog;
import dev.pgworker.samples.dashboard.Jobs.Index;
import dev.pgworker.samples.dashboard.Jobs.Photos;
import dev.pgworker.samples.dashboard.Jobs.Stock;
import dev.pgworker.task.JobContext;
import dev.pgworker.task.JobControlException;
import dev.pgworker.task.JobHandler;

/** What is done for products: slow jobs that say how far they have come, and partners who send what nobody can read. */
@Component
class ProductHandlers {

    private final ShopProperties shop;
    private final RandomGenerator random;

    ProductHandlers(ShopProperties shop, RandomGenerator random) {
        this.shop = shop;
        this.random = random;
    }

    record Resized(int files, List<Integer> widths) {}

    @JobHandler("resize_photos")
    Resized resize(Photos photos, JobContext context) throws InterruptedException {
        int done = 0;
        for (String file : photos.files()) {
            context.progress(done, photos.files().size(), file);
            shop.work(7);
            done++;
        }
        return new Resized(done, photos.widths());
    }

    @JobHandler(value = "import_catalog", maxAttempts = 3)
    void importCatalog(Catalog catalog, JobContext context) throws InterruptedException {
        for (int page = 1; page <= catalog.pages(); page++) {
            context.progress(page - 1, catalog.pages(), "page " + page + " of " + catalog.url());
            shop.work(5);
            CatalogPage.parse(catalog, page, random);
        }
    }

    /** A partner who asks for a pause gets one, and the attempt counts. */
    @JobHandler("sync_stock")
    void syncStock(Stock stock) throws InterruptedException {
        shop.work(6);
        if (random.nextInt(4) == 0) {
            throw JobControlException.retryIn(
                    Duration.ofSeconds(45),
                    "429 Too Many Requests from " + stock.partner() + ", Retry-After: 45",
                    null);
        }
    }

    /** Its jobs are flagged: no worker takes them while the flag is forbidden. */
    @JobHandler("rebuild_search_index")
    void rebuildIndex(Index index) throws InterruptedException {
        shop.work(600);
    }
}
