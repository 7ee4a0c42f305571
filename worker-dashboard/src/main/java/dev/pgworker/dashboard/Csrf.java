package dev.pgworker.dashboard;

import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.SecureRandom;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;
import java.util.regex.Pattern;

import jakarta.servlet.http.Cookie;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import org.jspecify.annotations.Nullable;
import org.springframework.util.ClassUtils;

/**
 * Protects changes from pages of other sites. A change needs a header with the value of a cookie that no other site can read, a
 * content type that no form can send, and must not come from elsewhere as far as the browser says so. The server remembers
 * nothing, so that each instance of an application accepts what another one has handed out.
 */
final class Csrf {

    private static final String HEADER = "X-PgWorker-Csrf";
    private static final String COOKIE = "pgworker-csrf";
    private static final Pattern TOKEN = Pattern.compile("[A-Za-z0-9_-]{43}");

    private static final boolean SECURITY_PRESENT =
            ClassUtils.isPresent("org.springframework.security.web.csrf.CsrfToken", Csrf.class.getClassLoader());

    private final SecureRandom random = new SecureRandom();

    /** Returns the headers that a change has to have, and sets the cookie where it is missing. */
    Map<String, Object> view(HttpServletRequest request, HttpServletResponse response, String path) {
        String token = cookie(request);
        if (token == null) {
            byte[] bytes = new byte[32];
            random.nextBytes(bytes);
            token = Base64.getUrlEncoder().withoutPadding().encodeToString(bytes);
            Cookie cookie = new Cookie(COOKIE, token);
            cookie.setPath(path);
            cookie.setHttpOnly(true);
            cookie.setSecure(request.isSecure());
            cookie.setAttribute("SameSite", "Strict");
            response.addCookie(cookie);
        }
        Map<String, String> headers = new LinkedHashMap<>();
        headers.put(HEADER, token);
        if (SECURITY_PRESENT) {
            SecurityToken.addTo(headers, request);
        }
        Map<String, Object> view = new LinkedHashMap<>();
        view.put("header", HEADER);
        view.put("token", token);
        view.put("headers", headers);
        return view;
    }

    private static @Nullable String cookie(HttpServletRequest request) {
        Cookie[] cookies = request.getCookies();
        if (cookies != null) {
            for (Cookie cookie : cookies) {
                if (cookie.getName().equals(COOKIE)
                        && TOKEN.matcher(cookie.getValue()).matches()) {
                    return cookie.getValue();
                }
            }
        }
        return null;
    }

    /**
     * Checks a change.
     *
     * @throws Refusal if it may have been sent by another site
     */
    void check(HttpServletRequest request) {
        String type = request.getContentType();
        if (type == null || !type.toLowerCase(Locale.ROOT).matches("application/json *(;.*)?")) {
            throw new Refusal(415, "Changes are sent as application/json.");
        }
        if (!isSameOrigin(request)) {
            throw new Refusal(403, "Changes are made from the dashboard's own pages alone.");
        }
        String cookie = cookie(request);
        String header = request.getHeader(HEADER);
        if (cookie == null
                || header == null
                || !MessageDigest.isEqual(
                        cookie.getBytes(StandardCharsets.UTF_8), header.getBytes(StandardCharsets.UTF_8))) {
            throw new Refusal(403, "The header " + HEADER + " is missing or outdated; api/me has it. Reload the page.");
        }
    }

    /** Browsers send Sec-Fetch-Site to secure servers and to localhost, and Origin to all. */
    private static boolean isSameOrigin(HttpServletRequest request) {
        String site = request.getHeader("Sec-Fetch-Site");
        if (site != null) {
            return site.equals("same-origin");
        }
        String origin = request.getHeader("Origin");
        if (origin == null) {
            return true;
        }
        String authority;
        try {
            authority = URI.create(origin).getRawAuthority();
        } catch (IllegalArgumentException e) {
            return false;
        }
        // No other site can make a browser send the second header. The third is what the server makes of both.
        return authority != null
                && (authority.equalsIgnoreCase(request.getHeader("Host"))
                        || authority.equalsIgnoreCase(request.getHeader("X-Forwarded-Host"))
                        || authority.equalsIgnoreCase(ownAuthority(request)));
    }

    /** As browsers write it: without the port that the scheme has by default. */
    private static String ownAuthority(HttpServletRequest request) {
        int port = request.getServerPort();
        boolean standard = port <= 0 || port == (request.getScheme().equals("https") ? 443 : 80);
        return standard ? request.getServerName() : request.getServerName() + ":" + port;
    }

    /** Apart, so that the outer class loads without Spring Security. */
    private static final class SecurityToken {

        static void addTo(Map<String, String> headers, HttpServletRequest request) {
            Object attribute = request.getAttribute(org.springframework.security.web.csrf.CsrfToken.class.getName());
            if (attribute instanceof org.springframework.security.web.csrf.CsrfToken token) {
                headers.put(token.getHeaderName(), token.getToken());
            }
        }
    }
}
