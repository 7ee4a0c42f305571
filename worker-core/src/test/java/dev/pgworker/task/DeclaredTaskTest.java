package dev.pgworker.task;

import java.lang.reflect.Type;
import java.math.BigDecimal;
import java.time.Instant;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.UUID;

import com.fasterxml.jackson.annotation.JsonCreator;
import com.fasterxml.jackson.annotation.JsonValue;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.springframework.util.ReflectionUtils;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.node.ObjectNode;

import dev.pgworker.Worker;
import dev.pgworker.job.Task;
import dev.pgworker.testing.TestSchema;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

/** Task constants beside the handlers of their tasks. */
@Tag("any-postgres")
@SuppressWarnings("UnusedVariable") // fields and parameters are read by reflection
class DeclaredTaskTest {

    record Greeting(String name) {}

    record Other(String name) {}

    interface Shape {}

    record Circle(int radius) implements Shape {}

    record Box<T>(T content) {}

    enum Colour {
        RED
    }

    interface Tasks {
        Task<Integer> HELLO = Task.of("hello", Integer.class);
    }

    static class Handlers implements Tasks {
        static final Task<Greeting> BYE = Task.of("bye", Greeting.class);
        private static final Task<List<Greeting>> MANY = new Task<>("many", listOfGreetings());
        static final Object NOT_TYPED = Task.of("x", String.class);
        static Task<String> notFinal = Task.of("y", String.class);
        final Task<String> notStatic = Task.of("z", String.class);

        static class Inner {
            static final Task<String> DEEP = Task.of("deep", String.class);
        }

        @JobHandler("hello")
        void hello(Greeting greeting) {}

        @JobHandler("bye")
        void bye() {}

        @JobHandler("many")
        BatchResult many(List<Other> others) {
            throw new UnsupportedOperationException();
        }
    }

    static class Broken {
        static final Task<String> TASK = fail();

        private static Task<String> fail() {
            throw new IllegalStateException("on purpose");
        }
    }

    private static Type listOfGreetings() {
        return type("listGreeting");
    }

    @Test
    void findsTheConstantsOfAClassAndWhatBelongsToIt() {
        assertThat(DeclaredTask.in(Handlers.class))
                .extracting(DeclaredTask::source)
                .containsExactlyInAnyOrder(
                        Tasks.class.getName() + ".HELLO",
                        Handlers.class.getName() + ".BYE",
                        Handlers.class.getName() + ".MANY",
                        Handlers.Inner.class.getName() + ".DEEP");
        assertThat(DeclaredTask.in(Broken.class)).isEmpty();
        assertThat(DeclaredTask.in(String.class)).isEmpty();
        assertThat(DeclaredTask.in(int[].class)).isEmpty();
    }

    @Test
    void aConstantWithAnotherTypeStopsTheBuild() {
        Worker.Builder builder = Worker.builder(TestSchema.pool(1))
                .tasks(JobHandlerMethods.find(new Handlers()))
                .declaredTasks(DeclaredTask.in(Handlers.class));

        assertThatExceptionOfType(HandlerDefinitionException.class)
                .isThrownBy(builder::build)
                .satisfies(refusal -> assertThat(refusal.problem())
                        .contains(
                                Tasks.class.getName() + ".HELLO of task \"hello\" has java.lang.Integer while "
                                        + Handlers.class.getName() + ".hello(Greeting) takes "
                                        + Greeting.class.getName(),
                                Handlers.class.getName() + ".MANY of task \"many\"")
                        .doesNotContain("bye", "deep"));
    }

    @Test
    void aConstantOfAFunctionIsCompared() {
        TaskRegistration hello = TaskRegistration.of(Task.of("hello", Greeting.class), (greeting, context) -> {});
        TaskRegistry registry = TaskRegistry.of(List.of(hello.with(TaskOptions.DEFAULT.withMaxAttempts(3))));

        assertThatCode(() -> registry.requireTypesOf(
                        List.of(new DeclaredTask(Task.of("hello", Greeting.class), "A"), declared("other"))))
                .doesNotThrowAnyException();
        assertThatExceptionOfType(HandlerDefinitionException.class)
                .isThrownBy(() -> registry.requireTypesOf(List.of(declared("hello"))));
    }

    private static DeclaredTask declared(String identifier) {
        return new DeclaredTask(Task.of(identifier, Integer.class), "B");
    }

    @Test
    void tenThousandMismatchesAreOneRefusal() {
        List<TaskRegistration> handlers = new ArrayList<>();
        List<DeclaredTask> constants = new ArrayList<>();
        for (int i = 0; i < 10_000; i++) {
            handlers.add(TaskRegistration.of(Task.of("t" + i, Greeting.class), (greeting, context) -> {}));
            constants.add(declared("t" + i));
        }

        assertThatExceptionOfType(HandlerDefinitionException.class)
                .isThrownBy(() -> TaskRegistry.of(handlers).requireTypesOf(constants));
    }

    /** Each field's type is one. */
    private static final class Types {
        Greeting greeting;
        Other other;
        Shape shape;
        Circle circle;
        int primitiveInt;
        Integer boxedInt;
        long primitiveLong;
        double primitiveDouble;
        String string;
        boolean primitiveBoolean;
        UUID uuid;
        Instant instant;
        Colour colour;
        Void nothing;
        Object object;
        JsonNode json;
        ObjectNode jsonObject;
        Map<String, Object> map;
        Map<String, Greeting> typedMap;
        List<Greeting> listGreeting;
        List<? extends Greeting> wildcardList;
        List<Other> listOther;
        List<Integer> listInt;
        Set<Greeting> setGreeting;
        Greeting[] arrayGreeting;
        int[] arrayInt;
        byte[] bytes;
        Optional<Greeting> maybeGreeting;
        Box<Greeting> boxGreeting;
        BigDecimal decimal;
        OffsetDateTime offset;
        Wrapped wrapped;
        Built built;
        List<String> listString;
        List<Wrapped> listWrapped;
        Iterable<Greeting> iterable;
        Box<Other> boxOther;

        @SuppressWarnings("rawtypes")
        List rawList;
    }

    record Wrapped(@JsonValue String value) {}

    static final class Built {

        @JsonCreator
        static Built of(int value) {
            return new Built();
        }
    }

    private static Type type(String field) {
        return java.util.Objects.requireNonNull(ReflectionUtils.findField(Types.class, field))
                .getGenericType();
    }

    @ParameterizedTest
    @CsvSource(textBlock = """
            greeting, greeting, true
            greeting, other, false
            boxedInt, greeting, false
            greeting, boxedInt, false
            boxedInt, primitiveInt, true
            primitiveInt, boxedInt, true
            boxedInt, primitiveLong, true
            primitiveLong, boxedInt, false
            primitiveLong, primitiveDouble, true
            decimal, primitiveDouble, true
            decimal, boxedInt, false
            instant, offset, true
            wrapped, string, true
            string, wrapped, true
            listString, listWrapped, true
            built, boxedInt, true
            iterable, listGreeting, true
            listGreeting, iterable, true
            boxedInt, string, false
            string, boxedInt, false
            string, primitiveBoolean, false
            string, uuid, true
            instant, string, true
            string, colour, true
            string, greeting, false
            circle, shape, true
            shape, circle, true
            shape, other, false
            greeting, shape, false
            greeting, nothing, true
            nothing, greeting, false
            greeting, object, true
            greeting, json, true
            greeting, jsonObject, true
            json, greeting, true
            greeting, map, true
            map, greeting, true
            greeting, typedMap, true
            boxedInt, map, true
            listGreeting, listGreeting, true
            listGreeting, wildcardList, true
            listGreeting, setGreeting, true
            listGreeting, arrayGreeting, true
            arrayGreeting, listGreeting, true
            arrayInt, listInt, true
            listGreeting, listOther, false
            listGreeting, rawList, true
            listGreeting, greeting, false
            greeting, listGreeting, false
            bytes, string, true
            bytes, arrayInt, false
            greeting, maybeGreeting, true
            other, maybeGreeting, false
            boxGreeting, boxGreeting, true
            boxGreeting, boxOther, false
            """)
    void typesThatHaveNothingToDoWithEachOtherDoNotFit(String written, String read, boolean fits) {
        assertThat(PayloadFit.fits(type(written), type(read))).isEqualTo(fits);
    }
}
