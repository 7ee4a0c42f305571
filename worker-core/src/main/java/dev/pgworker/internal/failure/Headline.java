package dev.pgworker.internal.failure;

/** Class and message of an exception, whose methods may fail. */
final class Headline {

    /** The one of an exception may take this much, so that a huge message leaves room for the stack trace. */
    static final int LIMIT = 4_000;

    private Headline() {}

    /** Returns class and message of an exception; of a longer text the beginning and the length. Never throws. */
    static String of(Throwable error, int limit) {
        try {
            String headline = error.toString();
            return headline.length() > limit
                    ? headline.substring(0, limit) + " ... (" + headline.length() + " characters)"
                    : headline;
        } catch (Throwable e) {
            return unreadable(error, e);
        }
    }

    /** Returns the class of an exception or of something else that fails when it is asked for more, and how. */
    static String unreadable(Object error, Throwable why) {
        return error.getClass().getName() + " (whose message cannot be read: "
                + why.getClass().getName() + ")";
    }
}
