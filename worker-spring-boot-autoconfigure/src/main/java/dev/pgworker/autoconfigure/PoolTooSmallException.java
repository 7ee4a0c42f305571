package dev.pgworker.autoconfigure;

/** The listening connection would be the only one of the pool, and nothing else could run. */
final class PoolTooSmallException extends IllegalStateException {

    private static final long serialVersionUID = 1L;

    PoolTooSmallException() {
        super("The connection pool has 1 connection, which the worker would keep for listening, so that nothing else"
                + " in the application could use the database.");
    }
}
