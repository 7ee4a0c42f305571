package dev.pgworker.task;

import java.util.ArrayList;
import java.util.List;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

@Tag("any-postgres")
class TaskRegistryTest {

    private static TaskRegistration task(String identifier, String source) {
        return new TaskRegistration(identifier, source, null, (context, codec) -> null, TaskOptions.DEFAULT);
    }

    @Test
    void findsByIdentifier() {
        TaskRegistration a = task("a", "A.run()");
        TaskRegistration b = task("b", "B.run()");

        TaskRegistry registry = TaskRegistry.of(List.of(b, a));

        assertThat(registry.identifiers()).containsExactly("b", "a");
        assertThat(registry.find("a")).isSameAs(a);
        assertThat(registry.find("c")).isNull();
        assertThat(registry.isEmpty()).isFalse();
        assertThat(TaskRegistry.of(List.of()).isEmpty()).isTrue();
    }

    @Test
    void neverChanges() {
        List<TaskRegistration> registrations = new ArrayList<>(List.of(task("a", "A.run()")));
        TaskRegistry registry = TaskRegistry.of(registrations);

        registrations.clear();

        assertThat(registry.identifiers()).containsExactly("a");
        assertThatThrownBy(() -> registry.identifiers().remove("a")).isInstanceOf(UnsupportedOperationException.class);
    }

    @Test
    void duplicatesAreRefusedAllAtOnce() {
        assertThatExceptionOfType(HandlerDefinitionException.class)
                .isThrownBy(() -> TaskRegistry.of(List.of(
                        task("a", "A.run()"),
                        task("b", "B.run()"),
                        task("c", "C.run()"),
                        task("a", "A2.run()"),
                        task("b", "B2.run()"),
                        task("a", "A3.run()"))))
                .satisfies(refusal -> {
                    assertThat(refusal.problem())
                            .contains("\"a\" by A.run() and A2.run() and A3.run()", "\"b\" by B.run() and B2.run()")
                            .doesNotContain("C.run()");
                    assertThat(refusal.action()).contains("own identifier");
                });
    }
}
