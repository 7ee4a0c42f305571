package dev.pgworker.samples.secured;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.boot.context.event.ApplicationReadyEvent;
import org.springframework.context.event.EventListener;
import org.springframework.core.env.Environment;
import org.springframework.stereotype.Component;

/** Says at start how to try the application. */
@Component
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
                Ready. Log in at {} as ada with the password ada, and press the button, which adds job 1. Then look at it as
                sam, who may not change it, and run it as olga, who may:

                  curl -u sam:sam {}/actuator/pgworker/jobs
                  curl -i -u sam:sam -H 'Content-Type: application/json' -d '{"ids":"1"}' {}/actuator/pgworker/run-now
                  curl -u olga:olga -H 'Content-Type: application/json' -d '{"ids":"1"}' {}/actuator/pgworker/run-now
                """, url, url, url, url);
    }
}
