package dev.pgworker.samples.secured;

import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.util.Base64;

import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.Test;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.boot.test.context.SpringBootTest.WebEnvironment;
import org.springframework.boot.test.web.server.LocalServerPort;
import org.springframework.jdbc.core.simple.JdbcClient;
import org.springframework.test.annotation.DirtiesContext;
import org.springframework.test.context.DynamicPropertyRegistry;
import org.springframework.test.context.DynamicPropertySource;

import dev.pgworker.testsupport.TestPostgres;

import static org.assertj.core.api.Assertions.assertThat;

@SpringBootTest(webEnvironment = WebEnvironment.RANDOM_PORT)
@DirtiesContext
class SecuredTest {

    private static final String SCHEMA = "secured_" + ProcessHandle.current().pid();

    @LocalServerPort
    int port;

    @DynamicPropertySource
    static void database(DynamicPropertyRegistry registry) {
        registry.add("spring.datasource.url", TestPostgres::jdbcUrl);
        registry.add("worker.schema.name", () -> SCHEMA);
    }

    @AfterAll
    static void dropSchema(@Autowired JdbcClient jdbc) {
        jdbc.sql("drop schema " + SCHEMA + " cascade").update();
    }

    @Test
    void anOperatorChangesJobsWithoutACsrfToken() throws Exception {
        HttpResponse<String> answer = sweep("operator");

        assertThat(answer.statusCode()).isEqualTo(200);
        assertThat(answer.body()).startsWith("{");
    }

    @Test
    void othersDoNot() throws Exception {
        assertThat(sweep("user").statusCode()).isEqualTo(403);
        assertThat(sweep("nobody").statusCode()).isEqualTo(401);
    }

    @Test
    void whatIsNotTheEndpointIsProtectedAsBefore() throws Exception {
        assertThat(post("/elsewhere", "operator").statusCode()).isBetween(401, 403);
    }

    private HttpResponse<String> sweep(String user) throws Exception {
        return post("/actuator/worker/sweep", user);
    }

    private HttpResponse<String> post(String path, String user) throws Exception {
        String credentials = Base64.getEncoder().encodeToString((user + ":secret").getBytes(StandardCharsets.UTF_8));
        HttpRequest request = HttpRequest.newBuilder(URI.create("http://localhost:" + port + path))
                .header("Content-Type", "application/json")
                .header("Authorization", "Basic " + credentials)
                .POST(BodyPublishers.ofString("{\"dryRun\": true}"))
                .build();
        return HttpClient.newHttpClient().send(request, BodyHandlers.ofString());
    }
}
