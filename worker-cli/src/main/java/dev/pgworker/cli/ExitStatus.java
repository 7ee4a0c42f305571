package dev.pgworker.cli;

/** With what status a command ends. */
final class ExitStatus {

    static final int OK = 0;

    /** The database refused, a crontab is wrong, or something unexpected happened. */
    static final int FAILED = 1;

    /** An option or argument is wrong; nothing was done. */
    static final int USAGE = 2;

    /** A job, key, worker or recurring job that was named does not exist or was not changed; the others were. */
    static final int NOT_FOUND = 3;

    /** The schema is not installed, not up to date, or of a kind that this version does not work with. */
    static final int SCHEMA = 4;

    /** There is no connection: server, database, login. */
    static final int CONNECTION = 5;

    /** Nobody confirmed it; nothing was done. */
    static final int NOT_CONFIRMED = 6;

    /** Whoever reads standard output has gone, as {@code head} does. */
    static final int BROKEN_PIPE = 141;

    private ExitStatus() {}
}
