package dev.pgworker.samples.dashboard;

import java.io.IOException;
import java.net.SocketTimeoutException;
import java.util.random.RandomGenerator;

import org.springframework.stereotype.Component;

import dev.pgworker.samples.dashboard.Jobs.Charge;

/** The service that charges cards; as reliable as those of others are. */
@Component
class PaymentGateway {

    private final RandomGenerator random;

    PaymentGateway(RandomGenerator random) {
        this.random = random;
    }

    record Receipt(String transaction, String order) {}

    /** Charges a card, and keeps in mind that it has done so. */
    Receipt charge(Charge charge) {
        try {
            return new Receipt(post("/v2/charges", charge), charge.order());
        } catch (IOException e) {
            throw new GatewayException("The payment gateway did not answer for order " + charge.order(), e);
        }
    }

    private String post(String path, Charge charge) throws IOException {
        if (charge.card().endsWith("0002")) {
            throw new CardRefusedException("insufficient_funds", charge.card());
        }
        return read(path);
    }

    private String read(String path) throws IOException {
        if (random.nextInt(6) == 0) {
            throw new SocketTimeoutException("POST https://api.payments.example" + path + ": Read timed out after 5 s");
        }
        return "ch_" + Long.toString(random.nextLong(1L << 50, 1L << 52), 36);
    }

    static final class GatewayException extends RuntimeException {

        private static final long serialVersionUID = 1L;

        GatewayException(String message, Throwable cause) {
            super(message, cause);
        }
    }

    static final class CardRefusedException extends RuntimeException {

        private static final long serialVersionUID = 1L;

        CardRefusedException(String code, String card) {
            super("402 Payment Required: " + code + " (card " + card + ")");
        }
    }
}
