package dev.pgworker.samples.webshop;

import org.springframework.boot.SpringApplication;

import dev.pgworker.testsupport.EmbeddedDatabase;

/** Starts the shop with an embedded PostgreSQL unless {@code spring.datasource.url} names another. */
final class WebShopTestApplication {

    private WebShopTestApplication() {}

    public static void main(String[] args) {
        SpringApplication application = new SpringApplication(WebShopApplication.class);
        application.addInitializers(new EmbeddedDatabase());
        application.run(args);
    }
}
