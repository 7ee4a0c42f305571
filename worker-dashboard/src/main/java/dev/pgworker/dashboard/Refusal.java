package dev.pgworker.dashboard;

/** An answer other than the requested one: a status, and a sentence that says what is wrong and what to do. */
final class Refusal extends RuntimeException {

    private static final long serialVersionUID = 1L;

    private final int status;

    Refusal(int status, String sentence) {
        super(sentence);
        this.status = status;
    }

    int status() {
        return status;
    }

    String sentence() {
        return String.valueOf(getMessage());
    }
}
