package dev.pgworker.dashboard;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.Locale;
import java.util.Optional;
import java.util.Set;

import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;

/**
 * Answers all requests to the dashboard. It stands beside the application's {@code DispatcherServlet}, so that no setting,
 * controller or exception handler of the application has an effect on it, while its filters, those of Spring Security
 * included, have the same as everywhere.
 */
final class DashboardServlet extends HttpServlet {

    private static final long serialVersionUID = 1L;

    private static final Set<String> METHODS = Set.of("GET", "HEAD", "POST");

    private static final String POLICY =
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:;"
                    + " font-src 'self'; connect-src 'self'; base-uri 'self'; form-action 'none'; frame-ancestors 'none'";

    /** A payload, with what JSON adds to its text. */
    private static final int LONGEST_BODY = 2 * Json.LONGEST_PAYLOAD;

    private final transient Guard guard;
    private final transient StaticFiles files;
    private final transient Api api;

    DashboardServlet(Guard guard, StaticFiles files, Api api) {
        this.guard = guard;
        this.files = files;
        this.api = api;
    }

    @Override
    protected void service(HttpServletRequest request, HttpServletResponse response) throws IOException {
        protect(response);
        try {
            answer(request, response);
        } catch (Refusal refusal) {
            refuse(refusal, request, response);
        } catch (RuntimeException e) {
            if (isForFilters(e)) {
                throw e;
            }
            refuse(Failures.explain(e), request, response);
        }
    }

    /** Spring Security's filter answers it. */
    private static boolean isForFilters(RuntimeException e) {
        return e.getClass().getName().startsWith("org.springframework.security.");
    }

    private static void protect(HttpServletResponse response) {
        response.setHeader("Content-Security-Policy", POLICY);
        response.setHeader("X-Content-Type-Options", "nosniff");
        response.setHeader("X-Frame-Options", "DENY");
        response.setHeader("Referrer-Policy", "same-origin");
        response.setHeader("Cross-Origin-Opener-Policy", "same-origin");
        response.setHeader("Cross-Origin-Resource-Policy", "same-origin");
        response.setHeader("Cache-Control", "no-store");
    }

    private void answer(HttpServletRequest request, HttpServletResponse response) throws IOException {
        String method = request.getMethod();
        if (!METHODS.contains(method)) {
            response.setHeader("Allow", "GET, HEAD, POST");
            throw new Refusal(405, "The method must be GET, HEAD or POST.");
        }
        String path = request.getPathInfo();
        if (path == null) {
            guard.requireReader(request, true);
            response.setStatus(302);
            response.setHeader("Location", base(request));
        } else if (path.equals("/api") || path.startsWith("/api/")) {
            guard.requireReader(request, false);
            callApi(path.substring("/api".length()), request, response);
        } else {
            boolean asset = path.startsWith("/assets/");
            guard.requireReader(request, !asset);
            if (method.equals("POST")) {
                response.setHeader("Allow", "GET, HEAD");
                throw new Refusal(405, "The method must be GET or HEAD.");
            }
            sendFile(file(path.substring(1), asset, request), request, response);
        }
    }

    /** Every path that is neither a file nor data is one of the page's own. */
    private StaticFiles.StaticFile file(String path, boolean asset, HttpServletRequest request) {
        if (!asset) {
            return files.index(base(request));
        }
        Optional<StaticFiles.StaticFile> file = files.asset(path);
        return file.orElseThrow(() -> new Refusal(404, "There is no such file."));
    }

    private static String base(HttpServletRequest request) {
        return request.getContextPath() + request.getServletPath() + "/";
    }

    private void callApi(String path, HttpServletRequest request, HttpServletResponse response) throws IOException {
        boolean post = request.getMethod().equals("POST");
        Object result = post
                ? api.post(path, request, () -> Json.read("The body", body(request)))
                : api.get(path, request, response);
        if (result != null) {
            response.setContentType("application/json");
            send(200, Json.bytes(result), request, response);
        }
    }

    private static String body(HttpServletRequest request) {
        if (request.getContentLengthLong() > LONGEST_BODY) {
            throw tooLong();
        }
        try (InputStream stream = request.getInputStream()) {
            ByteArrayOutputStream body = new ByteArrayOutputStream();
            byte[] part = new byte[8192];
            for (int read = stream.read(part); read >= 0; read = stream.read(part)) {
                body.write(part, 0, read);
                if (body.size() > LONGEST_BODY) {
                    throw tooLong();
                }
            }
            return body.toString(StandardCharsets.UTF_8);
        } catch (IOException e) {
            throw new Refusal(400, "The body could not be read.");
        }
    }

    private static Refusal tooLong() {
        return new Refusal(413, "The body must not be larger than 20 MB.");
    }

    private static void sendFile(StaticFiles.StaticFile file, HttpServletRequest request, HttpServletResponse response)
            throws IOException {
        response.setHeader("Cache-Control", "no-cache");
        response.setHeader("ETag", file.tag());
        response.setHeader("Vary", "Accept-Encoding");
        String known = request.getHeader("If-None-Match");
        if (known != null && known.contains(file.tag())) {
            response.setStatus(304);
            return;
        }
        response.setContentType(file.type());
        String encodings = request.getHeader("Accept-Encoding");
        boolean gzip = encodings != null && encodings.toLowerCase(Locale.ROOT).contains("gzip");
        if (gzip) {
            response.setHeader("Content-Encoding", "gzip");
        }
        send(200, file.content(gzip), request, response);
    }

    private static void refuse(Refusal refusal, HttpServletRequest request, HttpServletResponse response)
            throws IOException {
        if (response.isCommitted()) {
            return;
        }
        response.resetBuffer();
        if (refusal.status() == 503) {
            response.setHeader("Retry-After", "5");
        }
        response.setContentType("application/json");
        byte[] body = Json.bytes(new View().put("error", refusal.sentence()).map());
        send(refusal.status(), body, request, response);
    }

    private static void send(int status, byte[] body, HttpServletRequest request, HttpServletResponse response)
            throws IOException {
        response.setStatus(status);
        response.setContentLength(body.length);
        if (!request.getMethod().equals("HEAD")) {
            response.getOutputStream().write(body);
        }
    }
}
