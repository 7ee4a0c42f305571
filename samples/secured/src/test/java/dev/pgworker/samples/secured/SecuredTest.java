package dev.pgworker.samples.secured;

import java.io.IOException;
import java.net.CookieManager;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Base64;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.boot.test.context.SpringBootTest.WebEnvironment;
import org.springframework.boot.test.web.server.LocalServerPort;
import org.springframework.test.annotation.DirtiesContext;
import org.springframework.test.context.DynamicPropertyRegistry;
import org.springframework.test.context.DynamicPropertySource;

import dev.pgworker.job.JobQueries;
import dev.pgworker.job.JobScheduler;
import dev.pgworker.job.JobSpec;
import dev.pgworker.testsupport.TestPostgres;

import static org.assertj.core.api.Assertions.assertThat;

@SpringBootTest(webEnvironment = WebEnvironment.RANDOM_PORT)
@DirtiesContext
class SecuredTest {

    private static final String DATABASE = TestPostgres.newDatabase("secured");
    private static final Pattern CSRF = Pattern.compile("name=\"_csrf\"[^>]*value=\"([^\"]+)\"");

    @LocalServerPort
    int port;

    @Autowired
    JobScheduler jobs;

    @Autowired
    JobQueries queries;

    private final HttpClient program = HttpClient.newHttpClient();
    private final HttpClient browser =
            HttpClient.newBuilder().cookieHandler(new CookieManager()).build();

    private long job;

    @DynamicPropertySource
    static void database(DynamicPropertyRegistry registry) {
        registry.add("spring.datasource.url", () -> DATABASE);
    }

    @BeforeEach
    void addJob() {
        job = jobs.addJob(
                        "hello",
                        new Greeting("Grace"),
                        JobSpec.builder().runIn(Duration.ofHours(1)).build())
                .id();
    }

    @Test
    void anOperatorChangesJobsWithCredentialsAlone() throws Exception {
        HttpResponse<String> answer = send(program, complete("olga"));

        assertThat(answer.statusCode()).isEqualTo(200);
        assertThat(queries.find(job)).isEmpty();
    }

    @Test
    void whoMayOnlyLookCannotChangeJobs() throws Exception {
        assertThat(send(program, as("sam", endpoint("/jobs"))).body()).contains("\"hello\"");

        assertThat(send(program, complete("sam")).statusCode()).isEqualTo(403);
        assertThat(queries.find(job)).isPresent();
    }

    @Test
    void theEndpointIsClosedToOtherUsersAndToNobody() throws Exception {
        assertThat(send(program, as("ada", endpoint("/jobs"))).statusCode()).isEqualTo(403);
        assertThat(send(program, complete("ada")).statusCode()).isEqualTo(403);
        assertThat(send(program, endpoint("/jobs")).statusCode()).isEqualTo(401);
        assertThat(send(program, complete()).statusCode()).isEqualTo(401);
        assertThat(send(program, as("olga:wrong", complete())).statusCode()).isEqualTo(401);
        assertThat(queries.find(job)).isPresent();
    }

    /** Otherwise a form of another site could change jobs in the name of an operator who is logged in. */
    @Test
    void theSessionOfABrowserDoesNotOpenTheEndpoint() throws Exception {
        logIn("olga");

        HttpResponse<String> answer = send(browser, complete());

        assertThat(answer.statusCode()).isEqualTo(401);
        assertThat(answer.headers().firstValue("WWW-Authenticate")).isEmpty();
        assertThat(queries.find(job)).isPresent();
    }

    @Test
    void theRestOfTheApplicationNeedsACsrfToken() throws Exception {
        logIn("ada");

        assertThat(send(browser, form("/greetings", "")).statusCode()).isEqualTo(403);

        String token = csrfToken("/");
        assertThat(send(browser, form("/greetings", "_csrf=" + token)).body()).matches("Job \\d+ is added");
    }

    @Test
    void healthIsPublicAndPagesAreNot() throws Exception {
        assertThat(send(program, request("/actuator/health")).statusCode()).isEqualTo(200);
        assertThat(send(program, request("/")).statusCode()).isNotEqualTo(200);
    }

    private void logIn(String user) throws IOException, InterruptedException {
        String token = csrfToken("/login");
        HttpResponse<String> answer =
                send(browser, form("/login", "username=" + user + "&password=" + user + "&_csrf=" + token));
        assertThat(answer.headers().firstValue("Location").orElse("")).doesNotContain("error");
        assertThat(send(browser, request("/")).statusCode()).isEqualTo(200);
    }

    private String csrfToken(String page) throws IOException, InterruptedException {
        Matcher token = CSRF.matcher(send(browser, request(page)).body());
        assertThat(token.find()).as("a CSRF token in " + page).isTrue();
        return URLEncoder.encode(token.group(1), StandardCharsets.UTF_8);
    }

    private HttpRequest.Builder complete(String user) {
        return as(user, complete());
    }

    private HttpRequest.Builder complete() {
        return endpoint("/complete")
                .header("Content-Type", "application/json")
                .POST(BodyPublishers.ofString("{\"ids\":\"" + job + "\"}"));
    }

    private HttpRequest.Builder endpoint(String path) {
        return request("/actuator/pgworker" + path);
    }

    private HttpRequest.Builder form(String path, String fields) {
        return request(path)
                .header("Content-Type", "application/x-www-form-urlencoded")
                .POST(BodyPublishers.ofString(fields));
    }

    private HttpRequest.Builder request(String path) {
        return HttpRequest.newBuilder(URI.create("http://localhost:" + port + path))
                .header("Accept", "text/html, */*");
    }

    /** A password is the same as the name, unless it follows after a colon. */
    private static HttpRequest.Builder as(String user, HttpRequest.Builder request) {
        String credentials = user.contains(":") ? user : user + ":" + user;
        return request.header(
                "Authorization",
                "Basic " + Base64.getEncoder().encodeToString(credentials.getBytes(StandardCharsets.UTF_8)));
    }

    private static HttpResponse<String> send(HttpClient client, HttpRequest.Builder request)
            throws IOException, InterruptedException {
        return client.send(request.build(), BodyHandlers.ofString());
    }
}
