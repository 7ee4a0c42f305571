package dev.pgworker.dashboard;

import jakarta.servlet.http.HttpServletRequest;

/** Access that can say why it was refused. */
interface ExplainedAccess extends DashboardAccess {

    /** Returns why the sender of the request may not read, and what would change that. */
    String whyNot(HttpServletRequest request);
}
