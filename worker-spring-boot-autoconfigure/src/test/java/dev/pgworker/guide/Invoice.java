package dev.pgworker.guide;

record Invoice(String number, String address) {}
