package dev.pgworker.dashboard.browser;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.RegisterExtension;

import dev.pgworker.testsupport.TestPostgres;

/** One application and one browser for all tests that need no others, because both take seconds to start. */
@ExtendWith(Chromium.class)
abstract class DashboardTest {

    @RegisterExtension
    static final Shared shared = new Shared();

    Shop shop;
    Stock stock;
    Browser browser;

    @BeforeEach
    void begin() {
        shop = shared.shop();
        stock = new Stock(shop);
        browser = shared.browser();
        browser.use(shop.dashboard());
        browser.resize(1280, 900);
        browser.prefer("light");
    }

    /** No page writes to the console, breaks the content security policy, or asks anybody else. */
    @AfterEach
    void end() {
        if (!browser.all("dialog").isEmpty()) {
            // It would be in the way of what comes next.
            browser.load("");
        }
        browser.checkQuiet();
        stock.clear();
    }

    static final class Shared implements org.junit.jupiter.api.extension.BeforeAllCallback {

        private Started started;

        @Override
        public void beforeAll(ExtensionContext context) {
            started = context.getRoot()
                    .getStore(ExtensionContext.Namespace.create(Shared.class))
                    .computeIfAbsent(Started.class, key -> new Started(), Started.class);
        }

        Shop shop() {
            return started.shop;
        }

        Browser browser() {
            return started.browser;
        }
    }

    static final class Started implements AutoCloseable {

        final Shop shop = new Shop(TestPostgres.newDatabase("browser"));
        final Browser browser = new Browser(shop.dashboard());

        @Override
        public void close() {
            browser.close();
            shop.close();
        }
    }
}
