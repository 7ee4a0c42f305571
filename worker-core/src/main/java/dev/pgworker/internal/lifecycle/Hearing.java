package dev.pgworker.internal.lifecycle;

/** How a service learns that there is something for it to do, besides by its own looks. */
public enum Hearing {
    /** It does not: there is no listener at present. */
    NOTHING,
    /** It is notified; a notification may be lost. */
    NOTIFICATIONS,
    /**
     * It is notified. The lookout has just found nothing for it, looks every few seconds, and notifies it if there is
     * something.
     */
    LOOKOUT
}
