package dev.pgworker.samples.testing;

interface Mailer {

    void send(String email, String text);
}
