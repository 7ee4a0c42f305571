package dev.pgworker.samples.webshop;

/** Sends mail. */
interface Mailer {

    void send(String customer, String text);
}
