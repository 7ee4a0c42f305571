package dev.pgworker.samples.datasources;

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
                Ready. Sell something, request the report of the month, and read it:

                  curl -H 'Content-Type: application/json' -d '{"customer":"Ada","month":"2026-11","cents":250}' {}/sales
                  curl -X PUT {}/reports/2026-11
                  curl {}/reports/2026-11
                """, url, url, url);
    }
}
