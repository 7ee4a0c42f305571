package dev.pgworker.samples.secured;

/** Whom to greet: the payload of a job. */
record Greeting(String name) {}
