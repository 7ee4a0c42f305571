package dev.pgworker.dashboard;

import java.security.Principal;

import jakarta.servlet.http.HttpServletRequest;
import org.jspecify.annotations.Nullable;

/**
 * Who looks at the dashboard.
 *
 * @param principal null if nobody has signed in
 */
record Visitor(@Nullable Principal principal) {

    private static final int LONGEST_NAME = 255;

    static Visitor of(HttpServletRequest request) {
        return new Visitor(request.getUserPrincipal());
    }

    @Nullable String name() {
        return principal == null ? null : principal.getName();
    }

    /** Returns the name under which changes are told: on one line, and never empty. */
    String actingName() {
        String name = name();
        String plain = name == null
                ? ""
                : name.replaceAll("[\\p{Cntrl}\\p{Cs}\\u0085\\u2028\\u2029]+", " ")
                        .strip();
        if (plain.isEmpty()) {
            return "dashboard";
        }
        return plain.length() <= LONGEST_NAME ? plain : plain.substring(0, LONGEST_NAME);
    }
}
