package dev.pgworker.dashboard;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.Socket;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.util.List;

import org.apache.catalina.valves.RemoteIpValve;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.tomcat.ConfigurableTomcatWebServerFactory;
import org.springframework.boot.web.server.WebServerFactoryCustomizer;
import org.springframework.boot.web.servlet.FilterRegistrationBean;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.mock.web.MockHttpServletRequest;
import org.springframework.web.filter.ForwardedHeaderFilter;

import static org.assertj.core.api.Assertions.assertThat;

/** Without Spring Security: who has access, what is answered to whom, and that every answer protects itself. */
class UnsecuredTest {

    private static Application application;

    @BeforeAll
    static void start() {
        application = Application.unsecured("pgworker.dashboard.allow-actions=true");
    }

    @AfterAll
    static void stop() {
        application.close();
    }

    @Test
    void thisMachineHasAccess() {
        assertThat(application.http().get("/pgworker/").statusCode()).isEqualTo(200);
        assertThat(application.api().json("/me").path("actions")).hasSize(15);
        assertThat(application.api().json("/me").path("version").asString()).matches("[0-9]+\\.[0-9]+.*");
    }

    @ParameterizedTest
    @CsvSource({
        "Forwarded, for=1.2.3.4",
        "X-Forwarded-For, 127.0.0.1",
        "x-forwarded-proto, https",
        "X-Forwarded-Host, localhost",
        "X-Real-IP, 127.0.0.1",
        "Via, 1.1 proxy",
        "CF-Connecting-IP, 1.2.3.4",
        "True-Client-IP, 1.2.3.4",
        "X-Envoy-External-Address, 1.2.3.4",
        "WL-Proxy-Client-IP, 1.2.3.4",
        "Forwarded-For, 1.2.3.4",
        "X-Forward-For, 1.2.3.4",
        "X_Forwarded_For, 1.2.3.4",
        "X-Originating-IP, 1.2.3.4",
        "X-Remote-IP, 1.2.3.4",
        "X-Remote-Addr, 1.2.3.4",
        "X-Client-IP, 1.2.3.4",
        "X-Cluster-Client-IP, 1.2.3.4",
        "Fastly-Client-IP, 1.2.3.4",
        "X-ProxyUser-Ip, 1.2.3.4",
        "X-Arr-ClientIP, 1.2.3.4"
    })
    void whatAProxyHasPassedOnIsRefused(String header, String value) {
        HttpResponse<String> answer = application.http().with(header, value).get("/pgworker/api/me");

        assertThat(answer.statusCode()).isEqualTo(403);
        assertThat(Http.error(answer)).contains("proxy").contains("Add Spring Security");
        assertThat(application.http().with(header, value).get("/pgworker/").statusCode())
                .isEqualTo(403);
    }

    @Test
    void whatAProxyHasPassedOnByAnOldProtocolIsRefused() throws IOException {
        for (String protocol : List.of("1.0 403", "1.1 200")) {
            try (Socket socket = new Socket(InetAddress.getLoopbackAddress(), application.port())) {
                String version = protocol.substring(0, 3);
                socket.getOutputStream()
                        .write(("GET /pgworker/api/me HTTP/" + version
                                        + "\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                                .getBytes(StandardCharsets.US_ASCII));
                String answer = new String(socket.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
                assertThat(answer).startsWith("HTTP/1.1 " + protocol.substring(4));
            }
        }
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "evil.example",
                "evil.example:8080",
                "localhost.evil.example",
                "127.0.0.1.evil.example",
                "10.0.0.1",
                "0.0.0.0",
                "[::]"
            })
    void namesOfOtherMachinesAreRefused(String host) {
        assertThat(application.http().with("Host", host).get("/pgworker/api/me").statusCode())
                .isEqualTo(403);
    }

    @ParameterizedTest
    @ValueSource(strings = {"localhost", "LOCALHOST:8080", "127.0.0.1", "127.1.2.3:99", "[::1]", "[::1]:8080"})
    void namesOfThisMachineAreAccepted(String host) {
        assertThat(application.http().with("Host", host).get("/pgworker/api/me").statusCode())
                .isEqualTo(200);
    }

    @ParameterizedTest
    @ValueSource(strings = {"10.1.2.3", "192.168.0.1", "fe80::1", "::", "8.8.8.8", "128.0.0.1", "localhost", ""})
    void otherMachinesAreRefused(String peer) {
        MockHttpServletRequest request = new MockHttpServletRequest();
        request.addHeader("Host", "localhost");
        request.setRemoteAddr(peer);

        assertThat(new LoopbackAccess(false).mayRead(request)).isFalse();
        assertThat(new LoopbackAccess(false).may(DashboardAction.REMOVE, request))
                .isFalse();
    }

    @ParameterizedTest
    @ValueSource(strings = {"127.0.0.1", "127.8.8.8", "::1", "0:0:0:0:0:0:0:1"})
    void nobodyIsTrustedWhereHeadersChangeTheSender(String peer) {
        MockHttpServletRequest request = new MockHttpServletRequest();
        request.addHeader("Host", "localhost");
        request.setRemoteAddr(peer);

        assertThat(new LoopbackAccess(false).mayRead(request)).isTrue();
        assertThat(new LoopbackAccess(true).mayRead(request)).isFalse();
        assertThat(new LoopbackAccess(true).whyNot(request)).contains("server.forward-headers-strategy");
    }

    /** Tomcat takes the sender from a header that it has been given the name of, whatever the strategy says. */
    @Test
    void aHeaderDoesNotMakeASenderLocal() {
        try (Application behind = Application.unsecured(
                "pgworker.enabled=false",
                "server.forward-headers-strategy=none",
                "server.tomcat.remoteip.remote-ip-header=x-sender")) {
            assertThat(behind.api()
                            .with("X-Sender", "127.0.0.1")
                            .get("/default/jobs")
                            .statusCode())
                    .isEqualTo(403);
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class OwnValve {

        @Bean
        WebServerFactoryCustomizer<ConfigurableTomcatWebServerFactory> valve() {
            return factory -> {
                RemoteIpValve valve = new RemoteIpValve();
                valve.setRemoteIpHeader("x-sender");
                factory.addEngineValves(valve);
            };
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class OwnFilter {

        @Bean
        FilterRegistrationBean<ForwardedHeaderFilter> filter() {
            return new FilterRegistrationBean<>(new ForwardedHeaderFilter());
        }
    }

    @ParameterizedTest
    @ValueSource(classes = {OwnValve.class, OwnFilter.class})
    void whatAnApplicationItselfTakesFromHeadersIsNotBelieved(Class<?> configuration) {
        try (Application behind = Application.unsecured(List.of(configuration), "pgworker.enabled=false")) {
            HttpResponse<String> answer =
                    behind.api().with("X-Sender", "127.0.0.1").get("/default/jobs");

            assertThat(answer.statusCode()).isEqualTo(403);
            assertThat(Http.error(answer)).contains("filter or valve");
        }
    }

    @ParameterizedTest
    @CsvSource({
        "/pgworker/api/me, cross-site, no-cors, 403",
        "/pgworker/api/default/live, same-site, cors, 403",
        "/pgworker/api/default/jobs, cross-site, navigate, 403",
        "/pgworker/, cross-site, no-cors, 403",
        "/pgworker/, cross-site, navigate, 200",
        "/pgworker/api/me, same-origin, cors, 200",
        "/pgworker/api/me, none, navigate, 200"
    })
    void pagesOfOtherSitesReadNothing(String path, String site, String mode, int status) {
        assertThat(application
                        .http()
                        .with("Sec-Fetch-Site", site)
                        .with("Sec-Fetch-Mode", mode)
                        .get(path)
                        .statusCode())
                .isEqualTo(status);
    }

    @Test
    void everyAnswerProtectsItself() {
        for (String path :
                new String[] {"/pgworker/", "/pgworker/api/me", "/pgworker/api/nonsense", "/pgworker/assets/none.js"}) {
            HttpResponse<String> answer = application.http().get(path);

            assertThat(answer.headers().firstValue("Content-Security-Policy"))
                    .as(path)
                    .hasValueSatisfying(policy -> assertThat(policy)
                            .contains("default-src 'none'", "frame-ancestors 'none'")
                            .doesNotContain("unsafe"));
            assertThat(answer.headers().firstValue("X-Content-Type-Options")).hasValue("nosniff");
            assertThat(answer.headers().firstValue("X-Frame-Options")).hasValue("DENY");
            assertThat(answer.headers().firstValue("Cache-Control"))
                    .hasValue(path.equals("/pgworker/") ? "no-cache" : "no-store");
        }
    }

    @Test
    void thePageKnowsWhereItIs() {
        assertThat(application.http().get("/pgworker/").body()).contains("<base href=\"/pgworker/\">");
        assertThat(application.http().get("/pgworker/jobs?state=failed").body()).contains("<base href=\"/pgworker/\">");
        HttpResponse<String> redirect = application.http().get("/pgworker");
        assertThat(redirect.statusCode()).isEqualTo(302);
        assertThat(redirect.headers().firstValue("Location")).hasValue("/pgworker/");
    }

    @Test
    void filesAreNotSentAgain() {
        HttpResponse<String> first = application.http().get("/pgworker/");
        String tag = first.headers().firstValue("ETag").orElseThrow();

        HttpResponse<String> second =
                application.http().with("If-None-Match", tag).get("/pgworker/");

        assertThat(second.statusCode()).isEqualTo(304);
        assertThat(second.body()).isEmpty();
        assertThat(second.headers().firstValue("Content-Security-Policy")).isPresent();
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "/pgworker/assets/../index.html",
                "/pgworker/assets/%2e%2e/index.html",
                "/pgworker/assets/..%2findex.html",
                "/pgworker/assets/%2e%2e%2f%2e%2e%2fDashboardServlet.class",
                "/pgworker/assets/..%5cindex.html",
                "/pgworker/assets//etc/passwd",
                "/pgworker/assets/.hidden.js",
                "/pgworker/assets/x.class",
                "/pgworker/assets/",
                "/pgworker/assets/%00.js",
                "/pgworker/..;/application.properties"
            })
    void nothingElseIsServed(String path) {
        String answer =
                raw(application.port(), "GET " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");

        assertThat(answer).containsPattern("^HTTP/1.1 (404|400|200)");
        // What is left of such a path may lead to the page itself, and to nothing else.
        assertThat(answer).doesNotContain("Êþº¾", "root:");
        assertThat(answer.startsWith("HTTP/1.1 200")).isEqualTo(answer.contains("<title>PgWorker</title>"));
    }

    @Test
    void aLongPathIsNotFound() {
        String answer = raw(
                application.port(),
                "GET /pgworker/assets" + "/a".repeat(2_500)
                        + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");

        assertThat(answer).startsWith("HTTP/1.1 404");
    }

    /** Sends what an HTTP client would not. */
    static String raw(int port, String request) {
        try (Socket socket = new Socket(InetAddress.getLoopbackAddress(), port)) {
            socket.setSoTimeout(10_000);
            socket.getOutputStream().write(request.getBytes(StandardCharsets.ISO_8859_1));
            return new String(socket.getInputStream().readAllBytes(), StandardCharsets.ISO_8859_1);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"PUT", "DELETE", "PATCH", "OPTIONS", "PROPFIND"})
    void otherMethodsAreRefused(String method) {
        HttpResponse<String> answer = application.http().send(method, "/pgworker/api/me", "");

        assertThat(answer.statusCode()).isEqualTo(405);
        assertThat(answer.headers().firstValue("Allow")).hasValue("GET, HEAD, POST");
        assertThat(answer.headers().firstValue("Access-Control-Allow-Origin")).isEmpty();
    }

    @Test
    void headIsAGetWithoutBody() {
        HttpResponse<String> head = application.http().send("HEAD", "/pgworker/", "");

        assertThat(head.statusCode()).isEqualTo(200);
        assertThat(head.body()).isEmpty();
        assertThat(head.headers().firstValueAsLong("Content-Length").orElse(0)).isPositive();
        assertThat(application
                        .http()
                        .send("HEAD", "/pgworker/api/default/live", "")
                        .statusCode())
                .isEqualTo(405);
    }

    @ParameterizedTest
    @ValueSource(strings = {"text/html", "application/xml", "*/*;q=0", "!!", "image/png"})
    void dataIsJsonWhateverIsAccepted(String accept) {
        HttpResponse<String> answer = application.http().with("Accept", accept).get("/pgworker/api/none/overview");

        assertThat(answer.statusCode()).isEqualTo(404);
        assertThat(answer.headers().firstValue("Content-Type"))
                .hasValueSatisfying(type -> assertThat(type).startsWith("application/json"));
        assertThat(Http.error(answer)).isEqualTo("The worker must be one of [default].");
    }

    @Test
    void changesNeedTheTokenOfTheVisitor() {
        Http visitor = application.api().withCsrf();
        String body = "{\"task\":\"t\",\"payload\":\"{}\"}";

        assertThat(visitor.post("/default/jobs", body).statusCode()).isEqualTo(200);
        assertThat(visitor.with("X-PgWorker-Csrf", "A".repeat(43))
                        .post("/default/jobs", body)
                        .statusCode())
                .isEqualTo(403);
        assertThat(visitor.without("X-PgWorker-Csrf")
                        .post("/default/jobs", body)
                        .statusCode())
                .isEqualTo(403);
        // A header without the cookie is what another site could guess.
        assertThat(application
                        .api()
                        .with("Content-Type", "application/json")
                        .with("X-PgWorker-Csrf", "A".repeat(43))
                        .post("/default/jobs", body)
                        .statusCode())
                .isEqualTo(403);
        assertThat(application.queries().backlog().ready()).isEqualTo(1);
    }

    @ParameterizedTest
    @CsvSource({
        "Sec-Fetch-Site, cross-site, 403",
        "Sec-Fetch-Site, same-site, 403",
        "Sec-Fetch-Site, none, 403",
        "Sec-Fetch-Site, same-origin, 400",
        "Origin, https://evil.example, 403",
        "Origin, null, 403",
        "Origin, http://localhost, 403",
        "Origin, %%%, 403",
        "Content-Type, text/plain, 415",
        "Content-Type, application/x-www-form-urlencoded, 415",
        "Content-Type, application/jsonx, 415"
    })
    void changesComeFromThePagesAlone(String header, String value, int status) {
        assertThat(application
                        .api()
                        .withCsrf()
                        .with(header, value)
                        .post("/default/jobs", "{}")
                        .statusCode())
                .isEqualTo(status);
    }

    @Test
    void aChangeFromTheSameOriginIsAccepted() {
        Http visitor = application.api().withCsrf().with("Origin", "http://localhost:" + application.port());

        assertThat(Http.error(visitor.post("/default/jobs", "{}"))).isEqualTo("task is required.");
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "{|The body is not JSON",
                "[]|The body must be a JSON object",
                "{\"task\":\"a\",\"task\":\"b\"}|The body is not JSON: Duplicate",
                "{\"task\":\"a\"} {}|The body is not JSON: Trailing token found after value (line 1",
                "{\"task\":\"t\",\"payload\":\"NaN\"}|payload is not JSON: Non-standard token 'NaN' (line 1",
                "{\"task\":\"t\",\"payload\":\"{/**/}\"}|payload is not JSON: Unexpected character ('/' (code 47)) (line 1",
                "{\"task\":{}}|task must be a text, a number or a boolean",
                "{\"task\":\"t\",\"payload\":\"{\"}|payload is not JSON: Unexpected end-of-input: expected close marker for Object (line 1, column 2).",
                "{\"task\":\"t\",\"payload\":\"\\u0000\"}|payload is not JSON",
                "{\"task\":\"t\",\"payload\":\"1e9999999999999\"}|payload has a number whose exponent is out of range",
                "{\"task\":\"t\",\"priority\":99999}|priority must be between",
                "{\"task\":\"t\",\"priority\":\"x\"}|priority must be an integer",
                "{\"task\":\"t\",\"runAt\":\"tomorrow\"}|runAt must be an instant",
                "{\"task\":\"t\",\"keyMode\":\"x\"}|keyMode must be one of replace, preserve_run_at, unsafe_dedupe",
                "{\"task\":\"t\",\"flags\":\"x\"}|flags must be a list",
                "{\"task\":\"<img src=x onerror=alert(1)>\\ud800\"}|surrogate"
            })
    void wrongInputIsNamed(String body, String message) {
        HttpResponse<String> answer = application.api().withCsrf().post("/default/jobs", body);

        assertThat(answer.statusCode()).isEqualTo(400);
        assertThat(answer.headers().firstValue("Content-Type").orElseThrow()).startsWith("application/json");
        assertThat(Http.error(answer)).contains(message);
    }

    @Test
    void deepAndLargeBodiesAreRefused() {
        Http visitor = application.api().withCsrf();

        assertThat(visitor.post("/default/jobs", "[".repeat(100_000)).statusCode())
                .isEqualTo(400);
        String payload = "\"" + "x".repeat(11 * 1024 * 1024) + "\"";
        assertThat(visitor.post("/default/jobs", "{\"task\":\"t\",\"payload\":" + payload + "}")
                        .statusCode())
                .isEqualTo(413);
        assertThat(visitor.post("/default/jobs", " ".repeat(50 * 1024 * 1024)).statusCode())
                .isEqualTo(413);
    }
}
