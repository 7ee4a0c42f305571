package dev.pgworker.samples.triggers;

/** Sends mail. */
interface Mailer {

    void send(String address, String text);
}
