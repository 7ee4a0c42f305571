package dev.pgworker.dashboard;

import java.io.IOException;
import java.net.CookieManager;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;

import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/** Requests of one visitor, who keeps cookies. */
final class Http {

    static final JsonMapper json = new JsonMapper();

    static {
        // Read when the first client is made.
        System.setProperty("jdk.httpclient.allowRestrictedHeaders", "host,content-length");
    }

    private final String base;
    private final HttpClient client;
    private final Map<String, String> headers = new LinkedHashMap<>();

    Http(String base) {
        this.base = base;
        this.client = HttpClient.newBuilder()
                .version(HttpClient.Version.HTTP_1_1)
                .connectTimeout(Duration.ofMinutes(1))
                .cookieHandler(new CookieManager())
                .build();
    }

    /** Adds a header to all requests from now on. */
    Http with(String name, String value) {
        headers.put(name, value);
        return this;
    }

    Http without(String name) {
        headers.remove(name);
        return this;
    }

    /** Fetches what changes need, and sends it from now on. */
    Http withCsrf() {
        return withCsrf("/me");
    }

    Http withCsrf(String path) {
        headers.put("Content-Type", "application/json");
        json(path)
                .path("csrf")
                .path("headers")
                .properties()
                .forEach(
                        header -> headers.put(header.getKey(), header.getValue().asString()));
        return this;
    }

    HttpResponse<String> get(String path) {
        return send("GET", path, "");
    }

    HttpResponse<String> post(String path, String body) {
        return send("POST", path, body);
    }

    HttpResponse<String> send(String method, String path, String body) {
        HttpRequest.Builder request = HttpRequest.newBuilder(URI.create(base + path))
                .timeout(Duration.ofMinutes(5))
                .method(
                        method,
                        body.isEmpty()
                                ? HttpRequest.BodyPublishers.noBody()
                                : HttpRequest.BodyPublishers.ofString(body));
        headers.forEach(request::header);
        try {
            return client.send(request.build(), HttpResponse.BodyHandlers.ofString());
        } catch (IOException e) {
            throw new AssertionError(method + " " + path, e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new AssertionError(e);
        }
    }

    /** Returns the answer to a successful request. */
    JsonNode json(String path) {
        return ok(get(path));
    }

    JsonNode json(String path, String body) {
        return ok(post(path, body));
    }

    static JsonNode ok(HttpResponse<String> response) {
        if (response.statusCode() != 200) {
            throw new AssertionError(response.request().uri() + ": " + response.statusCode() + " " + response.body());
        }
        return json.readTree(response.body());
    }

    static String error(HttpResponse<String> response) {
        return json.readTree(response.body()).path("error").asString();
    }
}
