package dev.pgworker.samples.quickstart;

import jakarta.validation.constraints.NotBlank;

/** Whom to greet: the body of a request and the payload of a job. */
record Greeting(@NotBlank String name) {}
