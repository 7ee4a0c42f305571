package dev.pgworker.task;

import java.util.regex.Pattern;

import tools.jackson.core.JacksonException;

/**
 * Where and why Jackson failed, in one line.
 *
 * @param path the field, such as {@code $.address.zip} or {@code $.items[2].price}; {@code $} is the value as a whole
 * @param reason what is wrong there, by Jackson
 */
record JsonFailure(String path, String reason) {

    /** A cycle of objects fails hundreds of levels deep: its beginning is enough. */
    private static final int MAX_PATH = 200;

    private static final Pattern PLAIN_NAME = Pattern.compile("[\\p{L}_$][\\p{L}\\p{N}_$-]*");
    private static final Pattern LOCATION_LINE = Pattern.compile("\\R\\s*at \\[[^\\r\\n]*");
    private static final Pattern LINE_BREAK = Pattern.compile("\\s*\\R\\s*");

    /** Of Jackson, for a class with constructors whose parameters have no names. */
    private static final String NO_CREATOR = "no delegate- or property-based Creator";

    /** Returns the description of any exception that a {@code JsonMapper} throws, those of custom code included. */
    static JsonFailure of(RuntimeException exception) {
        if (exception instanceof JacksonException jackson) {
            String reason = oneLine(jackson.getOriginalMessage());
            return new JsonFailure(
                    path(jackson),
                    reason.contains(NO_CREATOR)
                            ? reason
                                    + ". Make the class a record, give it a constructor without parameters, or compile it"
                                    + " with -parameters"
                            : reason);
        }
        return new JsonFailure("$", oneLine(exception.toString()));
    }

    private static String path(JacksonException exception) {
        StringBuilder path = new StringBuilder("$");
        for (JacksonException.Reference reference : exception.getPath()) {
            String name = reference.getPropertyName();
            if (name == null) {
                path.append('[').append(Math.max(reference.getIndex(), 0)).append(']');
            } else if (PLAIN_NAME.matcher(name).matches()) {
                path.append('.').append(name);
            } else {
                path.append("['").append(name.replace("'", "\\'")).append("']");
            }
            if (path.length() > MAX_PATH) {
                return path.substring(0, MAX_PATH) + "...";
            }
        }
        return path.toString();
    }

    private static String oneLine(String message) {
        String withoutLocation = LOCATION_LINE.matcher(message).replaceAll("");
        return LINE_BREAK.matcher(withoutLocation).replaceAll(" ").strip();
    }
}
