package dev.pgworker.samples.outbox;

import java.util.List;

import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.PutMapping;
import org.springframework.web.bind.annotation.RestController;

/** Lets the reader look into the broker and break it. */
@RestController
class BrokerController {

    private final InMemoryBroker broker;

    BrokerController(InMemoryBroker broker) {
        this.broker = broker;
    }

    @GetMapping("/broker/messages")
    List<Order> messages() {
        return broker.messages();
    }

    @PutMapping("/broker/failures/{times}")
    void fail(@PathVariable int times) {
        broker.fail(times);
    }
}
