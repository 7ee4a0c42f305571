package dev.pgworker.internal.failure;

import org.jspecify.annotations.Nullable;

/**
 * Whether the database has answered the calling thread, if that is the thread of a service: the proof that it can be used,
 * which the return of a step that only waited is not.
 */
public final class DatabaseContact {

    private static final ThreadLocal<@Nullable DatabaseContact> CURRENT = new ThreadLocal<>();

    private boolean made;

    private DatabaseContact() {}

    /** Watches the calling thread until it ends, or {@link #unwatch} is called. */
    public static DatabaseContact watch() {
        DatabaseContact contact = new DatabaseContact();
        CURRENT.set(contact);
        return contact;
    }

    /** Watches the calling thread no longer. */
    public static void unwatch() {
        CURRENT.remove();
    }

    /** Notes that a statement of the calling thread has succeeded. Does nothing on threads that are not watched. */
    public static void made() {
        DatabaseContact contact = CURRENT.get();
        if (contact != null) {
            contact.made = true;
        }
    }

    /** Returns whether contact has been made since the last call. Called on the watched thread. */
    public boolean take() {
        boolean result = made;
        made = false;
        return result;
    }
}
