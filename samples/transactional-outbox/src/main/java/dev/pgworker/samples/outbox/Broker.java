package dev.pgworker.samples.outbox;

/** Where other systems hear about orders. */
interface Broker {

    /** Returns when the broker has the message; throws if it may not have it. */
    void publish(Order order);
}
