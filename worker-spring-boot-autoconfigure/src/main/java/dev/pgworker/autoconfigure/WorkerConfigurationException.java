package dev.pgworker.autoconfigure;

/** What the application says of its workers does not fit together. */
final class WorkerConfigurationException extends IllegalStateException {

    private static final long serialVersionUID = 1L;

    private final String action;

    /**
     * Creates an exception.
     *
     * @param problem what is wrong
     * @param action what to do about it
     */
    WorkerConfigurationException(String problem, String action) {
        super(problem + " " + action);
        this.action = action;
    }

    String problem() {
        String message = String.valueOf(getMessage());
        return message.substring(0, message.length() - action.length()).strip();
    }

    String action() {
        return action;
    }
}
