package dev.pgworker.autoconfigure.testing;

import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;

import dev.pgworker.task.JobHandler;

/** A bean with a handler. */
public class Greetings {

    public record Greeting(String name) {}

    public final List<String> names = new CopyOnWriteArrayList<>();

    public volatile Thread thread;

    @JobHandler("hello")
    public void hello(Greeting greeting) {
        names.add(greeting.name());
        thread = Thread.currentThread();
    }
}
