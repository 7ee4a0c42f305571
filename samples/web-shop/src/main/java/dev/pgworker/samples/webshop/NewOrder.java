package dev.pgworker.samples.webshop;

import jakarta.validation.constraints.NotBlank;
import jakarta.validation.constraints.Size;

/** The body of a request. The customer is also part of a queue's name, which has at most 128 characters. */
record NewOrder(
        @NotBlank @Size(max = 100) String customer,
        @NotBlank String item) {}
