package dev.pgworker.samples.dashboard;

import java.util.List;
import java.util.Locale;
import java.util.random.RandomGenerator;
import java.util.stream.IntStream;

import org.springframework.scheduling.annotation.Scheduled;
import org.springframework.stereotype.Component;

import dev.pgworker.job.JobScheduler;
import dev.pgworker.job.JobSpec;
import dev.pgworker.samples.dashboard.Jobs.Catalog;
import dev.pgworker.samples.dashboard.Jobs.Photos;

import static dev.pgworker.samples.dashboard.Jobs.IMPORT_CATALOG;
import static dev.pgworker.samples.dashboard.Jobs.RESIZE_PHOTOS;

/** They upload photos of products, and catalogs of partners. */
@Component
class Staff {

    private static final List<String> PRODUCTS = List.of("teapot-blue", "kettle-steel", "cups-porcelain", "darjeeling");
    private static final List<String> PARTNERS = List.of("acme", "nordwind", "tea-and-more");

    private final JobScheduler jobs;
    private final RandomGenerator random;

    Staff(JobScheduler jobs, RandomGenerator random) {
        this.jobs = jobs;
        this.random = random;
    }

    @Scheduled(fixedDelayString = "${shop.order-every}")
    void work() {
        switch (random.nextInt(16)) {
            case 0 -> uploadPhotos();
            case 1 -> importCatalog();
            default -> {}
        }
    }

    /** Photos that are uploaded again before the first ones are resized take their place. */
    void uploadPhotos() {
        String product = PRODUCTS.get(random.nextInt(PRODUCTS.size()));
        List<String> files = IntStream.rangeClosed(1, random.nextInt(12, 40))
                .mapToObj(i -> String.format(Locale.ROOT, "%s-%02d.jpg", product, i))
                .toList();
        jobs.addJob(
                RESIZE_PHOTOS,
                new Photos(product, files, List.of(320, 800, 1600)),
                JobSpec.builder().jobKey("photos:" + product).build());
    }

    /** The catalogs of a partner are imported in the order in which they came. */
    void importCatalog() {
        String partner = PARTNERS.get(random.nextInt(PARTNERS.size()));
        String url = "https://%s.example/catalog-%s.csv"
                .formatted(partner.toLowerCase(Locale.ROOT), random.nextInt(100, 999));
        jobs.addJob(
                IMPORT_CATALOG,
                new Catalog(partner, url, random.nextInt(5, 30)),
                JobSpec.builder()
                        .queueName("partner:" + partner)
                        .flags("partner-api")
                        .build());
    }
}
