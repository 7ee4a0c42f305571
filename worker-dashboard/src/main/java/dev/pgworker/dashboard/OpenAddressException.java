package dev.pgworker.dashboard;

import org.jspecify.annotations.Nullable;

/** Others than this machine can reach a dashboard that nobody has to sign in to. */
final class OpenAddressException extends IllegalStateException {

    private static final long serialVersionUID = 1L;

    /**
     * Creates an exception.
     *
     * @param address where the server listens; null for all addresses
     */
    OpenAddressException(@Nullable String address) {
        super("The dashboard is enabled without Spring Security, and the server listens on "
                + (address == null ? "all addresses" : address) + ", which others than this machine can reach.");
    }
}
