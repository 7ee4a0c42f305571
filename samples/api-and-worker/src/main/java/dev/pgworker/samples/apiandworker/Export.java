package dev.pgworker.samples.apiandworker;

/** Which export a job is to write. */
record Export(long id) {}
