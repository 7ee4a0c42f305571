package dev.pgworker.dashboard;

import jakarta.servlet.http.HttpServletRequest;

/**
 * Decides who may see the dashboard, and who may change what. A bean of this type takes the place of the roles of Spring
 * Security and, without Spring Security, of the restriction to requests from the same machine. It is called for every
 * request, by several threads at the same time.
 *
 * <p>If a method throws an exception, the request is refused.
 *
 * @since 0.1.0
 */
public interface DashboardAccess {

    /** Returns whether the sender of the request may read. */
    boolean mayRead(HttpServletRequest request);

    /**
     * Returns whether the sender of the request may carry out an action. Only called if {@code
     * pgworker.dashboard.allow-actions} is true and the sender may read.
     */
    boolean may(DashboardAction action, HttpServletRequest request);
}
