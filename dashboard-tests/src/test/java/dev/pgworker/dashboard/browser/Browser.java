package dev.pgworker.dashboard.browser;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.logging.Level;

import org.awaitility.Awaitility;
import org.openqa.selenium.By;
import org.openqa.selenium.Keys;
import org.openqa.selenium.OutputType;
import org.openqa.selenium.StaleElementReferenceException;
import org.openqa.selenium.WebElement;
import org.openqa.selenium.chrome.ChromeDriver;
import org.openqa.selenium.chrome.ChromeDriverService;
import org.openqa.selenium.chrome.ChromeOptions;
import org.openqa.selenium.logging.LogEntry;
import org.openqa.selenium.logging.LogType;
import org.openqa.selenium.logging.LoggingPreferences;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

import static org.assertj.core.api.Assertions.assertThat;

/** A headless Chromium that writes down what it says and whom it asks. */
final class Browser implements AutoCloseable {

    private static final Duration PATIENCE = Duration.ofMinutes(2);
    private static final JsonMapper json = new JsonMapper();
    private static final String AXE = read("/axe.min.js");

    /** What can be pressed; one question to the browser, because a list has hundreds of links. */
    private static final String PRESSABLE = """
            const [within, name] = arguments;
            const nameOf = one => one.getAttribute("aria-label") ?? one.innerText.trim();
            const all = [...document.querySelectorAll(["button", "a", "summary", "[role=menuitem]"].map(kind => within + " " + kind))]
              .filter(one => one.checkVisibility({visibilityProperty: true}));
            """;

    private final ChromeDriver driver;
    private final Path profile;
    private String base;

    private String scheme = "";
    private String size = "";

    private final List<String> complaints = new ArrayList<>();
    private final List<String> requests = new ArrayList<>();

    /**
     * Starts one.
     *
     * @param base where the dashboard is, with a slash at the end
     */
    Browser(String base) {
        this.base = base;
        try {
            profile = Files.createTempDirectory("browser");
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        LoggingPreferences logs = new LoggingPreferences();
        logs.enable(LogType.BROWSER, Level.ALL);
        logs.enable(LogType.PERFORMANCE, Level.ALL);
        ChromeOptions options = new ChromeOptions();
        options.setBinary(Chromium.browser().orElseThrow().toFile());
        options.addArguments(
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--disable-quic",
                "--no-first-run",
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-sync",
                "--hide-scrollbars",
                "--force-prefers-reduced-motion",
                "--lang=en-US",
                "--window-size=1280,900",
                "--user-data-dir=" + profile);
        options.setCapability("goog:loggingPrefs", logs);
        ChromeDriverService service = new ChromeDriverService.Builder()
                .usingDriverExecutable(Chromium.driver().orElseThrow().toFile())
                .usingAnyFreePort()
                .build();
        driver = new ChromeDriver(service, options);
    }

    @Override
    public void close() {
        driver.quit();
        try (var files = Files.walk(profile)) {
            files.sorted(java.util.Comparator.reverseOrder()).forEach(file -> {
                boolean unused = file.toFile().delete();
            });
        } catch (IOException | UncheckedIOException e) {
            // A file of the browser's that vanished meanwhile; they lie in a temporary directory.
        }
    }

    // Where

    /** Goes over to another application; what the page of the former one still asks or says does not count. */
    void use(String other) {
        if (base.equals(other)) {
            return;
        }
        driver.get("about:blank");
        base = other;
        List<String> unusedRequests = requests();
        List<String> unusedComplaints = complaints();
    }

    /** Opens a page by its address. */
    void load(String path) {
        driver.get(base + path);
    }

    /** Goes to a page as a link of the dashboard does, which is quicker; or opens it if the dashboard is not there yet. */
    void open(String path) {
        if (!String.valueOf(driver.getCurrentUrl()).startsWith(base)) {
            load(path);
            return;
        }
        // What is there a moment later is the new page, or what stands in its place until it is loaded.
        driver.executeAsyncScript("""
                history.pushState({}, '', arguments[0]);
                dispatchEvent(new PopStateEvent('popstate'));
                requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(arguments[1])));
                """, base + path);
    }

    void reload() {
        driver.navigate().refresh();
    }

    void back() {
        driver.navigate().back();
    }

    /** Returns the path and query of the page, below the dashboard's base. */
    String address() {
        return Objects.requireNonNull(driver.getCurrentUrl()).substring(base.length());
    }

    /** Sets the colours that the user prefers. */
    void prefer(String wanted) {
        if (scheme.equals(wanted)) {
            return;
        }
        scheme = wanted;
        driver.executeCdpCommand(
                "Emulation.setEmulatedMedia",
                Map.of(
                        "features",
                        List.of(
                                Map.of("name", "prefers-color-scheme", "value", wanted),
                                Map.of("name", "prefers-reduced-motion", "value", "reduce"))));
        // Until it is drawn, colours of both may be mixed.
        driver.executeAsyncScript(
                "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(() => done()))");
    }

    void resize(int width, int height) {
        String wanted = width + "x" + height;
        if (size.equals(wanted)) {
            return;
        }
        size = wanted;
        driver.executeCdpCommand(
                "Emulation.setDeviceMetricsOverride",
                Map.of("width", width, "height", height, "deviceScaleFactor", 1, "mobile", width < 600));
    }

    // Tabs

    String tab() {
        return driver.getWindowHandle();
    }

    /** Opens another tab and goes to it. */
    String newTab() {
        driver.switchTo().newWindow(org.openqa.selenium.WindowType.TAB);
        return tab();
    }

    /** Opens another window and goes to it. */
    String newWindow() {
        driver.switchTo().newWindow(org.openqa.selenium.WindowType.WINDOW);
        return tab();
    }

    void goTo(String tab) {
        driver.switchTo().window(tab);
    }

    void closeTab() {
        driver.close();
    }

    // What is there

    WebElement find(String css) {
        return driver.findElement(By.cssSelector(css));
    }

    List<WebElement> all(String css) {
        return driver.findElements(By.cssSelector(css));
    }

    /** Returns what the page says, or a part of it. */
    String text(String css) {
        return find(css).getText();
    }

    Object run(String script, Object... arguments) {
        return driver.executeScript(script, arguments);
    }

    /** Waits until the page, or a part of it, contains a text. */
    void awaitText(String css, String text) {
        try {
            await(() -> says(css, text));
        } catch (org.awaitility.core.ConditionTimeoutException e) {
            throw new AssertionError(
                    "Waited in vain for \"" + text + "\" in " + css + " of " + address() + ", which says:\n"
                            + all("body").stream()
                                    .map(WebElement::getText)
                                    .findFirst()
                                    .orElse(""),
                    e);
        }
    }

    void awaitNoText(String css, String text) {
        await(() -> !says(css, text));
    }

    private boolean says(String css, String text) {
        return all(css).stream().anyMatch(element -> element.getText().contains(text));
    }

    WebElement await(String css) {
        await(() -> shown(css) != null);
        return Objects.requireNonNull(shown(css), css);
    }

    private @org.jspecify.annotations.Nullable WebElement shown(String css) {
        return (WebElement) run("""
                return [...document.querySelectorAll(arguments[0])].find(one => one.checkVisibility({visibilityProperty: true})) ?? null
                """, css);
    }

    /** Returns the ids of the rows of the page's list. */
    List<String> rows() {
        Object ids = run("return [...document.querySelectorAll('main tr[data-id]')].map(row => row.dataset.id)");
        return ((List<?>) ids).stream().map(String::valueOf).toList();
    }

    /** Waits for what holds sooner or later; elements may be replaced meanwhile, or lie under a message that goes away. */
    void await(java.util.concurrent.Callable<Boolean> condition) {
        Awaitility.await()
                .atMost(PATIENCE)
                // Most of what is waited for is there already.
                .pollDelay(Duration.ZERO)
                .pollInterval(Duration.ofMillis(20))
                .pollInSameThread()
                // Each call would replace the one before.
                .ignoreExceptionsMatching(failure -> failure instanceof StaleElementReferenceException
                        || failure instanceof org.openqa.selenium.ElementClickInterceptedException
                        || failure instanceof org.openqa.selenium.NoSuchElementException)
                .until(condition);
    }

    // What the user does

    void click(String css) {
        await(() -> {
            WebElement element = shown(css);
            if (element == null) {
                return false;
            }
            element.click();
            return true;
        });
    }

    /** Presses the button, link, tab or menu item that is called so. */
    void press(String name) {
        press("body", name);
    }

    /** Presses what is called so inside a part of the page. */
    void press(String within, String name) {
        try {
            await(() -> tryToPress(within, name));
        } catch (org.awaitility.core.ConditionTimeoutException e) {
            throw new AssertionError(
                    "There is no \"" + name + "\" to press in " + within + " of " + address() + ", but "
                            + pressable(within),
                    e);
        }
    }

    private boolean tryToPress(String within, String name) {
        WebElement found = (WebElement)
                run(PRESSABLE + "return all.find(one => !one.disabled && nameOf(one) === name) ?? null", within, name);
        if (found == null) {
            return false;
        }
        found.click();
        return true;
    }

    private Object pressable(String within) {
        return run(PRESSABLE + "return all.map(nameOf)", within, "");
    }

    void type(String css, String text) {
        WebElement field = await(css);
        field.clear();
        field.sendKeys(text);
    }

    /** Presses keys where the focus is. */
    void keys(CharSequence... keys) {
        new org.openqa.selenium.interactions.Actions(driver).sendKeys(keys).perform();
    }

    /** Presses the tabulator until what has the focus matches. */
    void tabTo(String css) {
        for (int i = 0; i < 200; i++) {
            if (Boolean.TRUE.equals(run("return document.activeElement.matches(arguments[0])", css))) {
                return;
            }
            keys(Keys.TAB);
        }
        throw new AssertionError("The tabulator does not lead to " + css);
    }

    // What it shows

    byte[] picture() {
        return driver.getScreenshotAs(OutputType.BYTES);
    }

    /**
     * Returns the violations that the accessibility checks find, each with the elements that they are about.
     *
     * @param rule the only check to make; null for all
     */
    List<String> violations(@org.jspecify.annotations.Nullable String rule) {
        if (!Boolean.TRUE.equals(run("return 'axe' in window"))) {
            run(AXE);
        }
        Object found = driver.executeAsyncScript("""
                const done = arguments[arguments.length - 1];
                axe.run(document, {resultTypes: ["violations"], ...(arguments[0] ? {runOnly: [arguments[0]]} : {})}).then(
                  result => done(result.violations.map(violation => violation.id + ": " + violation.help + " "
                    + violation.nodes.map(node => node.target.join(" ") + " (" + node.failureSummary + ")").join("; "))),
                  failure => done(["axe: " + failure]));
                """, rule);
        return ((List<?>) found).stream().map(String::valueOf).toList();
    }

    // What it says

    /** Returns what the console says that nobody has asked for; that a stream or a request has broken off is expected. */
    List<String> complaints() {
        for (LogEntry entry : driver.manage().logs().get(LogType.BROWSER)) {
            complaints.add(entry.getLevel() + " " + entry.getMessage());
        }
        List<String> taken = List.copyOf(complaints);
        complaints.clear();
        return taken;
    }

    /** Returns the addresses that were asked since the last call. */
    List<String> requests() {
        for (LogEntry entry : driver.manage().logs().get(LogType.PERFORMANCE)) {
            JsonNode message = json.readTree(entry.getMessage()).path("message");
            if (message.path("method").asString("").equals("Network.requestWillBeSent")) {
                requests.add(message.path("params").path("request").path("url").asString(""));
            }
        }
        List<String> taken = List.copyOf(requests);
        requests.clear();
        return taken;
    }

    /** Checks that nothing was complained about, and nobody but the application asked. */
    void checkQuiet() {
        assertThat(complaints()).as("what the console says").isEmpty();
        assertThat(requests())
                .as("what was asked")
                .allMatch(url -> url.startsWith(base.substring(0, base.indexOf('/', 8) + 1))
                        || url.startsWith("data:")
                        || url.equals("about:blank")
                        // The page with which the browser begins.
                        || url.startsWith("chrome:"));
    }

    private static String read(String resource) {
        try (InputStream stream = Browser.class.getResourceAsStream(resource)) {
            return new String(Objects.requireNonNull(stream, resource).readAllBytes(), StandardCharsets.UTF_8);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
