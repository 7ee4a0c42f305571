package dev.pgworker.samples.datasources;

/**
 * What somebody has bought: the body of a request.
 *
 * @param month such as 2026-11
 * @param cents the price
 */
record Sale(String customer, String month, long cents) {}
