package dev.pgworker.samples.recovery;

import java.util.concurrent.CountDownLatch;

import dev.pgworker.testsupport.TestPostgres;

/** A PostgreSQL for several processes: prints its JDBC URL and lives until it is told to end. */
final class RecoveryDatabase {

    private RecoveryDatabase() {}

    public static void main(String[] args) throws InterruptedException {
        System.out.println("URL " + TestPostgres.jdbcUrl());
        new CountDownLatch(1).await();
    }
}
