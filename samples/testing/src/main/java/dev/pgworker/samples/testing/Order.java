package dev.pgworker.samples.testing;

/** What somebody ordered: the payload of its jobs. */
record Order(int id, String email) {}
