package dev.pgworker.internal.store;

/** What becomes of a job that did not succeed. */
public enum ReleaseAction {
    /** It runs again after a delay, and the attempt counts. */
    RETRY("retry"),
    /** It has failed permanently. */
    FAIL("fail"),
    /** It runs again, and the attempt does not count. */
    BACK("back");

    final String sqlName;

    ReleaseAction(String sqlName) {
        this.sqlName = sqlName;
    }
}
