package dev.pgworker.autoconfigure;

import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;

import dev.pgworker.task.JobHandler;

/** A bean with a handler. */
public class Greetings {

    record Greeting(String name) {}

    final List<String> names = new CopyOnWriteArrayList<>();

    volatile Thread thread;

    @JobHandler("hello")
    void hello(Greeting greeting) {
        names.add(greeting.name());
        thread = Thread.currentThread();
    }
}
