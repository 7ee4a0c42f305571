package dev.pgworker.dashboard.browser;

import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.FieldSource;

import dev.pgworker.job.Job;
import dev.pgworker.job.JobSpec;
import dev.pgworker.limit.Limit;

import static org.assertj.core.api.Assertions.assertThat;

/** Whatever stands in a job is text: it makes no markup, runs no script, and leaves its place in no link. */
@Tag("thorough")
class HostileTextTest extends DashboardTest {

    static final List<String> CORPUS = List.of(
            "<script>window.pwned=1</script>",
            "<img src=x onerror=\"window.pwned=1\">",
            "\"><svg onload=window.pwned=1>",
            "' onmouseover='window.pwned=1",
            "</script></style></textarea><script>window.pwned=1</script>",
            "<iframe srcdoc=\"<script>parent.pwned=1</script>\"></iframe>",
            "<a href=\"javascript:window.pwned=1\">here</a>",
            "<style>*{display:none}</style><base href=//evil.example/>",
            "javascript:window.pwned=1",
            "{{constructor.constructor('window.pwned=1')()}}${window.pwned=1}",
            "../../../maintenance?a=b&c=d#e%2F%00",
            "\u202Egnp.exe\u202C \u200B\uFEFF \u2066a\u2069",
            "__proto__",
            "a\nb\r\n\tc\u0001\u007F",
            "&lt;b&gt;&amp;&#x3c;&quot;",
            "\uD83D\uDE00\u0301\u0301\u0301 \u0627\u0644\u0639\u0631\u0628\u064A\u0629",
            "' or 1=1; drop table x; -- \\' \\");

    /** In every field that a job, its run and its worker have. */
    @ParameterizedTest
    @FieldSource("CORPUS")
    void textStaysText(String text) {
        Job job = shop.jobs()
                .addJob(
                        text,
                        Map.of(text, List.of(text, Map.of(text, text))),
                        JobSpec.builder()
                                .queueName(text)
                                .jobKey(text)
                                .flags(text.replace(",", ""))
                                .build());
        stock.change(
                "update graphile_worker._private_jobs set attempts = 25, last_error = ? where id = ?",
                text + "\n\tat " + text + "(X.java:1)\nCaused by: " + text,
                job.id());
        String flag = text.replace(",", "");
        browser.open("jobs?flag=" + encode(flag) + "&search=" + encode(text) + "&key=" + encode(text) + "&queue="
                + encode(text));
        browser.await(() -> rows().equals(List.of(String.valueOf(job.id()))));
        onlyText();
        browser.click("main tr .row-link");
        browser.await("main .error-view");
        onlyText();
        // The links of the page lead to this job, whatever its names consist of.
        for (String name : List.of("task", "queue")) {
            assertThat(browser.run(
                            "return new URL(document.querySelector(`main aside a[href*='${arguments[0]}=']`).href).search",
                            name))
                    .isEqualTo("?" + name + "=" + encode(text));
        }
        browser.click("main aside a[href*='task=']");
        browser.await(() -> rows().equals(List.of(String.valueOf(job.id()))));
        assertThat(browser.address()).isEqualTo("jobs?task=" + encode(text));
    }

    private static String encode(String text) {
        return URLEncoder.encode(text, StandardCharsets.UTF_8);
    }

    @Test
    void soDoTheNamesOnAllOtherPages() {
        for (String text : CORPUS) {
            stock.change(
                    "insert into graphile_worker._private_workers (id, last_heartbeat_at, metadata) values (?, now() - interval '1 hour', null)",
                    text);
            stock.change(
                    "insert into graphile_worker._private_known_crontabs (identifier, known_since) values (?, now())",
                    text);
            shop.schedules().put(stock.yearly(text, text).build());
            stock.change("update graphile_worker.pgworker_schedules set problem = ? where name = ?", text, text);
            shop.limits().put(Limit.concurrency(text, 1, text).per(List.of(text)));
            Job job = shop.jobs()
                    .addJob(text, text, JobSpec.builder().queueName(text).build());
            stock.change(
                    "update graphile_worker._private_jobs set locked_at = now() - interval '1 hour', locked_by = ? where id = ?",
                    text,
                    job.id());
        }
        try {
            for (String page : List.of(
                    "", "queues", "tasks", "workers", "recurring", "limits", "maintenance", "jobs?state=running")) {
                browser.open(page);
                browser.await("main h1");
                browser.awaitNoText("main", "Loading");
                browser.await(() -> browser.all("main .skeleton").isEmpty());
                onlyText();
            }
            // Each name leads to its own page.
            for (String text : CORPUS) {
                browser.open("recurring/schedule?name=" + encode(text));
                browser.await(() -> browser.all("main .skeleton").isEmpty());
                assertThat(browser.all("main aside")).as(text).isNotEmpty();
                onlyText();
                browser.open("limits/limit?name=" + encode(text));
                browser.await(() -> browser.all("main .skeleton").isEmpty());
                assertThat(browser.all("main aside")).as(text).isNotEmpty();
                onlyText();
            }
        } finally {
            CORPUS.forEach(text -> shop.limits().delete(text));
            stock.change(
                    "delete from graphile_worker._private_known_crontabs where identifier not in ('nightly-mail', 'charges')");
            stock.change("delete from graphile_worker._private_workers where id not like 'pgworker-%'");
        }
    }

    /** Progress, result and error as a handler says them, live and in the history. */
    @Test
    void soDoesWhatAHandlerSays() {
        Shop.Handlers.mayEnd = new java.util.concurrent.CountDownLatch(1);
        String text = String.join(" ", CORPUS).replace("\n", " ");
        Job running = shop.jobs().addJob("import_catalog", Map.of("progress", text));
        try {
            browser.open("jobs/" + running.id());
            browser.awaitText("main .situation", "pwned");
            onlyText();
            browser.open("");
            browser.awaitText("main", "pwned");
            onlyText();
        } finally {
            Shop.Handlers.mayEnd.countDown();
        }
        browser.open("jobs/" + running.id());
        browser.awaitText("main .timeline", "Result");
        onlyText();
        Job echo = shop.jobs()
                .addJob("echo", text, JobSpec.builder().maxAttempts(1).build());
        browser.await(() -> stock.now(echo).lastError() != null);
        browser.open("history?task=echo");
        browser.await(() -> rows().contains(String.valueOf(echo.id())));
        onlyText();
    }

    /** Filters that nobody can have meant are answered with a sentence. */
    @Test
    void soDoWrongAddresses() {
        for (String address : List.of(
                "jobs?state=%3Cscript%3E",
                "jobs?sort=__proto__",
                "jobs?after=%00",
                "jobs?from=yesterday",
                "jobs?instance=%3Cimg%20src%3Dx%3E",
                "jobs/%3Cscript%3E",
                "jobs?search=%ED%A0%80%00",
                "?window=constructor")) {
            browser.load(address);
            browser.await("main h1");
            browser.await(() -> browser.all("main .skeleton").isEmpty());
            onlyText();
        }
        // The browser itself tells of each 400 and 404.
        assertThat(browser.complaints()).allMatch(complaint -> complaint.contains(" status of 40"));
    }

    private void onlyText() {
        assertThat(browser.run("return window.pwned")).isNull();
        assertThat(browser.run("""
                        const own = new URL(document.baseURI).origin;
                        return [...document.querySelectorAll("*")].filter(element =>
                            ["IFRAME", "OBJECT", "EMBED", "STYLE", "FORM"].includes(element.tagName) && element.closest("table, .json, .error-view")
                            || element.tagName === "SCRIPT" && !element.getAttribute("src")?.startsWith("assets/")
                            || element.tagName === "BASE" && element !== document.head.querySelector("base")
                            || element.tagName === "IMG" && !element.getAttribute("src").startsWith("assets/")
                            || [...element.attributes].some(attribute => attribute.name.startsWith("on"))
                            || ["href", "src", "action", "xlink:href"].some(name => element.hasAttribute(name)
                              && !["http:", "https:", "data:"].includes(new URL(element.getAttribute(name), document.baseURI).protocol))
                            || element.tagName === "A" && (element.origin !== own || !element.pathname.startsWith("/pgworker/")))
                          .map(element => element.outerHTML.slice(0, 300))
                        """)).isEqualTo(List.of());
    }

    private List<String> rows() {
        return browser.rows();
    }
}
