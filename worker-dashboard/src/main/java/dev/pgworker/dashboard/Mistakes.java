package dev.pgworker.dashboard;

import java.util.ArrayList;
import java.util.List;
import java.util.function.Supplier;

import org.jspecify.annotations.Nullable;

/** Collects what is wrong with a request, so that all of it is told at once. */
final class Mistakes {

    private final List<String> messages = new ArrayList<>();

    /** Returns a value; null if it is wrong. */
    <T> @Nullable T read(Supplier<? extends @Nullable T> value) {
        try {
            return value.get();
        } catch (IllegalArgumentException e) {
            messages.add(String.valueOf(e.getMessage()));
            return null;
        }
    }

    boolean isRight(Supplier<?> value) {
        int before = messages.size();
        Object unused = read(value);
        return messages.size() == before;
    }

    /** Refuses the request if there are any. */
    void refuse() {
        if (!messages.isEmpty()) {
            throw new IllegalArgumentException(String.join("; ", messages));
        }
    }
}
