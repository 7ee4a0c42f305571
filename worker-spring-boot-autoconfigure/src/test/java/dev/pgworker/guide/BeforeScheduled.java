package dev.pgworker.guide;

import org.springframework.scheduling.annotation.Scheduled;
import org.springframework.stereotype.Component;

/** Spring's own scheduling, which the page on it begins with. */
final class BeforeScheduled {

    private BeforeScheduled() {}

    @Component
    static class Reminders {

        private final Mailer mailer;

        Reminders(Mailer mailer) {
            this.mailer = mailer;
        }

        @Scheduled(cron = "0 0 8 * * MON-FRI", zone = "Europe/Berlin")
        void remind() {
            mailer.remindDebtors();
        }
    }
}
