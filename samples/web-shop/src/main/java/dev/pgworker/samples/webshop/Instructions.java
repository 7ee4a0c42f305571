package dev.pgworker.samples.webshop;

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
                Ready. Order twice, pay for the first, look at the invoices' numbers, and wait for the one reminder:

                  curl -H 'Content-Type: application/json' -d '{"customer":"ada","item":"tea"}' {}/orders
                  curl -H 'Content-Type: application/json' -d '{"customer":"ada","item":"cup"}' {}/orders
                  curl -X POST {}/orders/1/payment
                  curl {}/orders
                """, url, url, url, url);
    }
}
