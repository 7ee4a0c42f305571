package dev.pgworker.samples.quickstart;

import jakarta.validation.constraints.NotBlank;
import jakarta.validation.constraints.Pattern;
import jakarta.validation.constraints.Size;

/** Whom to greet: the body of a request and the payload of a job. PostgreSQL stores neither NUL nor half a character. */
record Greeting(
        @NotBlank @Size(max = 200) @Pattern(regexp = "[^\\x00\\p{Cs}]*", message = "must be text that PostgreSQL can store") String name) {}
