package dev.pgworker.guide;

interface Mailer {

    void send(String address, String number);

    void remindDebtors();
}
