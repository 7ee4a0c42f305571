package dev.pgworker.task.elsewhere;

import dev.pgworker.task.JobHandler;

/** Has a handler that a proxy class of any package can override. */
public class PublicBase {

    @JobHandler("send")
    public void send() {}
}
