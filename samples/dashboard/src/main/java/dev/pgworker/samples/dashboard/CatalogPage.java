package dev.pgworker.samples.dashboard;

import java.math.BigDecimal;
import java.util.random.RandomGenerator;

import dev.pgworker.samples.dashboard.Jobs.Catalog;

/** A page of a partner's catalog. One in a while has a price that is none. */
final class CatalogPage {

    private CatalogPage() {}

    static void parse(Catalog catalog, int page, RandomGenerator random) {
        int line = random.nextInt(1, 250);
        String price = random.nextInt(25) == 0 ? "12,90 EUR" : "12.90";
        try {
            BigDecimal parsed = parsePrice(price);
            if (parsed.signum() <= 0) {
                throw new IllegalArgumentException(catalog.url() + ": line " + line + " costs nothing");
            }
        } catch (NumberFormatException e) {
            throw new IllegalArgumentException(
                    "%s: page %s, line %s: \"%s\" is no price".formatted(catalog.url(), page, line, price), e);
        }
    }

    private static BigDecimal parsePrice(String price) {
        return new BigDecimal(price).setScale(2);
    }
}
