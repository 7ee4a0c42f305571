package dev.pgworker.dashboard.browser;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;

import io.zonky.test.db.postgres.embedded.EmbeddedPostgres;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import static org.assertj.core.api.Assertions.assertThat;

/** The application and its database stop and start again while a page is open. */
class OutageTest extends DashboardTest {

    @TempDir
    Path directory;

    private EmbeddedPostgres database;
    private Shop fragile;

    @BeforeEach
    void start() throws IOException {
        Files.createDirectory(directory.resolve("data"));
        database = database(0);
        fragile = new Shop(url());
        browser.use(fragile.dashboard());
    }

    @AfterEach
    void stop() throws IOException {
        browser.use(shop.dashboard());
        browser.load("");
        // It has asked the other application.
        browser.complaints();
        browser.requests();
        fragile.close();
        database.close();
    }

    /** Both at the places where they were. */
    @Test
    @Tag("thorough")
    void thePageTellsAndGoesOnByItself() throws IOException {
        browser.load("");
        browser.awaitText(".sidebar .connection", "Live");
        browser.run("window.notReloaded = true");

        int databasePort = database.getPort();
        database.close();
        browser.awaitText("main", "The database cannot be reached");
        database = database(databasePort);
        browser.awaitText(".sidebar .connection", "Live");
        browser.awaitNoText("main", "cannot be reached");

        int port = fragile.port();
        fragile.close();
        browser.awaitText(".sidebar .connection", "Reconnecting");
        browser.awaitText("main", "What is shown is the last known state");
        fragile = new Shop(url(), "server.port=" + port);
        browser.awaitText(".sidebar .connection", "Live");
        new Stock(fragile).reminder("ada");
        browser.await(() ->
                browser.find("main .tile.is-scheduled .tile-number").getText().equals("1"));

        assertThat(browser.run("return window.notReloaded")).isEqualTo(true);
        assertThat(browser.complaints())
                .as("but for what the browser tells of requests that failed")
                .allMatch(text -> text.contains("Failed to load resource") || text.contains("net::ERR"));
    }

    private EmbeddedPostgres database(int port) throws IOException {
        return EmbeddedPostgres.builder()
                .setPGStartupWait(Duration.ofMinutes(2))
                .setDataDirectory(directory.resolve("data"))
                .setCleanDataDirectory(false)
                .setPort(port)
                .start();
    }

    private String url() {
        return database.getJdbcUrl("postgres", "postgres");
    }
}
