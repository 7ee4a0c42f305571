package dev.pgworker.internal.lifecycle;

/** How a service learns that there is something for it to do, besides by its own looks. */
public enum Hearing {
    /** It does not: nobody listens at present. */
    NOTHING,
    /** It is notified; a notification may be lost. */
    NOTIFICATIONS,
    /** It is notified, and somebody who has just found that there is nothing for it looks every few seconds, and tells it if there is. */
    LOOKOUT
}
