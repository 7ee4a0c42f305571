package dev.pgworker.dashboard;

import jakarta.servlet.http.HttpServletRequest;

/** Decides by the roles of a user who has signed in, whoever authenticates: Spring Security tells the request. */
final class RoleAccess implements ExplainedAccess {

    private final String role;
    private final String actionsRole;

    RoleAccess(DashboardProperties properties) {
        role = properties.role();
        actionsRole = properties.actionsRole();
    }

    @Override
    public boolean mayRead(HttpServletRequest request) {
        return request.getUserPrincipal() != null && (request.isUserInRole(role) || request.isUserInRole(actionsRole));
    }

    @Override
    public boolean may(DashboardAction action, HttpServletRequest request) {
        return request.getUserPrincipal() != null && request.isUserInRole(actionsRole);
    }

    @Override
    public String whyNot(HttpServletRequest request) {
        return request.getUserPrincipal() == null
                ? "You have not signed in. If there is nowhere to sign in, the application needs a filter chain of Spring"
                        + " Security that authenticates requests to the dashboard."
                : "The dashboard is for users with the role " + role + " or " + actionsRole
                        + " (pgworker.dashboard.role, pgworker.dashboard.actions-role).";
    }
}
