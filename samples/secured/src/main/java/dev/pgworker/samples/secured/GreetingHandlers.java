package dev.pgworker.samples.secured;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.stereotype.Component;

import dev.pgworker.task.JobHandler;

@Component
class GreetingHandlers {

    private static final Logger log = LoggerFactory.getLogger(GreetingHandlers.class);

    @JobHandler("hello")
    void hello(Greeting greeting) {
        log.info("Hello, {}", greeting.name());
    }
}
