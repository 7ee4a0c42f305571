package dev.pgworker.cli;

import java.util.concurrent.Callable;

/** A command that uses what all share. Returns its exit status. */
abstract class SessionCommand implements Callable<Integer> {

    final Session session;

    SessionCommand(Session session) {
        this.session = session;
    }
}
