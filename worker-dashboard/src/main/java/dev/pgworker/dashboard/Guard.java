package dev.pgworker.dashboard;

import java.util.List;
import java.util.stream.Stream;

import jakarta.servlet.http.HttpServletRequest;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;

import dev.pgworker.internal.failure.WorkerLog;

/** Lets requests pass that may see or change what they ask for. */
final class Guard {

    private static final Logger log = WorkerLog.of(Guard.class);

    private final DashboardAccess access;
    private final boolean allowActions;
    private final Csrf csrf;
    private final boolean securityChains;

    /**
     * Creates a guard.
     *
     * @param securityChains whether Spring Security has filter chains, which may ask a visitor to sign in
     */
    Guard(DashboardAccess access, boolean allowActions, Csrf csrf, boolean securityChains) {
        this.access = access;
        this.allowActions = allowActions;
        this.csrf = csrf;
        this.securityChains = securityChains;
    }

    /**
     * Checks that the request may read.
     *
     * @throws Refusal if not
     * @throws RuntimeException that Spring Security answers by asking the visitor of a page to sign in
     */
    void requireReader(HttpServletRequest request, boolean page) {
        if (mayRead(request)) {
            return;
        }
        boolean anonymous = request.getUserPrincipal() == null;
        if (anonymous && page && securityChains) {
            SignIn.ask();
        }
        throw new Refusal(anonymous && securityChains ? 401 : 403, whyNot(request));
    }

    private boolean mayRead(HttpServletRequest request) {
        try {
            return access.mayRead(request);
        } catch (RuntimeException e) {
            log.warn(
                    "The access to the dashboard is refused, because {} failed",
                    access.getClass().getName(),
                    e);
            return false;
        }
    }

    private String whyNot(HttpServletRequest request) {
        return access instanceof ExplainedAccess explained
                ? explained.whyNot(request)
                : "You may not see the dashboard.";
    }

    /**
     * Checks that the request may carry out an action, and that its sender wants to.
     *
     * @throws Refusal if not
     */
    void requireActor(DashboardAction action, HttpServletRequest request) {
        if (!allowActions) {
            throw new Refusal(403, READ_ONLY);
        }
        csrf.check(request);
        if (!may(action, request)) {
            throw new Refusal(403, "You may not carry out the action " + action.id() + ".");
        }
    }

    /**
     * Checks that the request may carry out some action, before its body says which.
     *
     * @throws Refusal if not
     */
    void requireAnyActor(HttpServletRequest request) {
        if (!allowActions) {
            throw new Refusal(403, READ_ONLY);
        }
        csrf.check(request);
        if (actions(request).isEmpty()) {
            throw new Refusal(403, "You may look, but not change anything.");
        }
    }

    private static final String READ_ONLY = "The dashboard is read-only: pgworker.dashboard.allow-actions is false.";

    private boolean may(DashboardAction action, HttpServletRequest request) {
        try {
            return access.may(action, request);
        } catch (RuntimeException e) {
            log.warn(
                    "An action is refused, because {} failed", access.getClass().getName(), e);
            return false;
        }
    }

    /** Returns the actions that the sender of a request may carry out. */
    List<String> actions(HttpServletRequest request) {
        return allowActions
                ? Stream.of(DashboardAction.values())
                        .filter(action -> may(action, request))
                        .map(DashboardAction::id)
                        .toList()
                : List.of();
    }

    /** Returns why the sender may change nothing, or null if there is something. */
    @Nullable String readOnlyReason(List<String> actions) {
        if (!allowActions) {
            return READ_ONLY;
        }
        return actions.isEmpty() ? "You may look, but not change anything." : null;
    }

    /** Apart, so that the outer class loads without Spring Security. */
    private static final class SignIn {

        /** Those who have not passed a chain are asked by nobody. */
        static void ask() {
            if (org.springframework.security.core.context.SecurityContextHolder.getContext()
                            .getAuthentication()
                    instanceof org.springframework.security.authentication.AnonymousAuthenticationToken) {
                throw new org.springframework.security.access.AccessDeniedException("The dashboard needs a user");
            }
        }
    }
}
