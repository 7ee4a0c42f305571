package dev.pgworker.task.elsewhere;

import dev.pgworker.task.JobHandler;

/** Has a handler that a proxy class of another package cannot override. */
public class PackagePrivateBase {

    @JobHandler("send")
    void send() {}
}
