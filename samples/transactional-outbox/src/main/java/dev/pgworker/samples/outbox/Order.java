package dev.pgworker.samples.outbox;

/** A row of {@code orders}, and what the broker is told about it. */
record Order(long id, String customer, String item, String status, long change) {}
