package dev.pgworker.job;

import java.lang.reflect.ParameterizedType;
import java.util.List;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.springframework.core.ParameterizedTypeReference;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

@Tag("any-postgres")
class TaskTest {

    /** One character to PostgreSQL, two UTF-16 units to Java. */
    private static final String SMILEY = "\uD83D\uDE00";

    @Test
    void keepsItsPayloadType() {
        assertThat(Task.of("send", String.class)).isEqualTo(new Task<String>("send", String.class));
        assertThat(Task.of("send", new ParameterizedTypeReference<List<String>>() {})
                        .payloadType())
                .isInstanceOfSatisfying(
                        ParameterizedType.class,
                        type -> assertThat(type.getActualTypeArguments()).containsExactly(String.class));
    }

    @Test
    void theIdentifierHasUpTo128Characters() {
        assertThat(Task.of("x".repeat(128), String.class).identifier()).hasSize(128);
        assertThat(Task.of(SMILEY.repeat(128), String.class).identifier()).hasSize(256);
        assertThatIllegalArgumentException()
                .isThrownBy(() -> Task.of("x".repeat(129), String.class))
                .withMessage("identifier must have at most 128 characters, but has 129");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> Task.of(SMILEY.repeat(129), String.class))
                .withMessage("identifier must have at most 128 characters, but has 129");
    }

    @Test
    void theIdentifierIsNeitherNullNorEmptyNorHoldsNul() {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> Task.of(null, String.class))
                .withMessage("identifier must not be null");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> Task.of("", String.class))
                .withMessage("identifier must not be empty");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> Task.of("a\0b", String.class))
                .withMessageContainingAll("identifier", "NUL");
    }

    @Test
    void thePayloadTypeIsNotNull() {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> Task.of("send", (Class<?>) null))
                .withMessage("payloadType must not be null");
    }
}
