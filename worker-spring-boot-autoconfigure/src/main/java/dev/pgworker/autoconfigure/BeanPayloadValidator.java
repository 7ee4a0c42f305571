package dev.pgworker.autoconfigure;

import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;

import jakarta.validation.ConstraintViolation;
import jakarta.validation.Path;
import jakarta.validation.Validator;

import dev.pgworker.task.PayloadValidator;

/** Checks payloads, and the items of lists, by the constraints of their classes. Messages tell paths and rules, and no values. */
final class BeanPayloadValidator implements PayloadValidator {

    private static final int MOST_TOLD = 20;

    private final Validator validator;

    BeanPayloadValidator(Validator validator) {
        this.validator = validator;
    }

    @Override
    public void validate(Object payload) {
        Set<String> problems = new TreeSet<>();
        if (payload instanceof List<?> items) {
            int place = 0;
            for (Object item : items) {
                if (item != null) {
                    check(item, "[" + place + "].", problems);
                }
                place++;
            }
        } else {
            check(payload, "", problems);
        }
        if (!problems.isEmpty()) {
            List<String> told =
                    new ArrayList<>(problems.stream().limit(MOST_TOLD).toList());
            if (problems.size() > MOST_TOLD) {
                told.add((problems.size() - MOST_TOLD) + " more");
            }
            throw new IllegalArgumentException(String.join("; ", told));
        }
    }

    private void check(Object value, String prefix, Set<String> problems) {
        for (ConstraintViolation<Object> violation : validator.validate(value)) {
            String path = prefix + path(violation.getPropertyPath());
            problems.add((path.isEmpty() ? "it" : path) + " " + violation.getMessage());
        }
    }

    /** Without the keys of maps, which are part of the payload. */
    private static String path(Path path) {
        StringBuilder text = new StringBuilder();
        for (Path.Node node : path) {
            if (node.isInIterable()) {
                text.append('[')
                        .append(node.getIndex() == null ? "" : node.getIndex())
                        .append(']');
            }
            if (node.getName() != null) {
                text.append(text.isEmpty() ? "" : ".").append(node.getName());
            }
        }
        return text.toString();
    }
}
