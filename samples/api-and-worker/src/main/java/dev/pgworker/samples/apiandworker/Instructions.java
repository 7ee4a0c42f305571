package dev.pgworker.samples.apiandworker;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.boot.context.event.ApplicationReadyEvent;
import org.springframework.context.annotation.Profile;
import org.springframework.context.event.EventListener;
import org.springframework.core.env.Environment;
import org.springframework.stereotype.Component;

/** Says at start how to try the application. */
@Component
@Profile("!worker")
class Instructions {

    private static final Logger log = LoggerFactory.getLogger(Instructions.class);

    private final Environment environment;

    Instructions(Environment environment) {
        this.environment = environment;
    }

    @EventListener(ApplicationReadyEvent.class)
    void print() {
        String url = "http://localhost:" + environment.getProperty("local.server.port");
        log.info("""
                Ready, in process {}. Request an export, and see which process has written it:

                  curl -i -X POST {}/exports
                  curl {}/exports/1
                """, ProcessHandle.current().pid(), url, url);
    }
}
