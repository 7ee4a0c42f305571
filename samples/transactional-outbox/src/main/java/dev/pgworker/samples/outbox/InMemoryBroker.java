package dev.pgworker.samples.outbox;

import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.stereotype.Component;

/** A broker that keeps its messages in memory and fails when told to. */
@Component
class InMemoryBroker implements Broker {

    private static final Logger log = LoggerFactory.getLogger(InMemoryBroker.class);

    private final List<Order> messages = new CopyOnWriteArrayList<>();
    private final AtomicInteger failures = new AtomicInteger();

    @Override
    public void publish(Order order) {
        if (failures.getAndUpdate(left -> Math.max(0, left - 1)) > 0) {
            throw new IllegalStateException("The broker is down");
        }
        messages.add(order);
        log.info("Published {}", order);
    }

    /** Lets as many of the next publications fail. */
    void fail(int times) {
        failures.set(times);
    }

    List<Order> messages() {
        return List.copyOf(messages);
    }
}
