package dev.pgworker.samples.webshop;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.stereotype.Component;

/** Logs mail instead of sending it. */
@Component
class LoggingMailer implements Mailer {

    private static final Logger log = LoggerFactory.getLogger(LoggingMailer.class);

    @Override
    public void send(String customer, String text) {
        log.info("Mail to {}: {}", customer, text);
    }
}
