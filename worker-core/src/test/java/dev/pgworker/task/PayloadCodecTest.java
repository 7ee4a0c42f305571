package dev.pgworker.task;

import java.lang.reflect.Type;
import java.math.BigDecimal;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalDate;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.function.IntPredicate;
import java.util.stream.IntStream;

import com.fasterxml.jackson.annotation.JsonProperty;
import com.fasterxml.jackson.annotation.JsonSubTypes;
import com.fasterxml.jackson.annotation.JsonTypeInfo;
import com.fasterxml.jackson.annotation.JsonUnwrapped;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.core.ParameterizedTypeReference;
import tools.jackson.core.JacksonException;
import tools.jackson.databind.DeserializationFeature;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;
import tools.jackson.databind.node.ObjectNode;

import dev.pgworker.job.Job;
import dev.pgworker.job.JobSpec;
import dev.pgworker.job.Task;
import dev.pgworker.testing.TestJob;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

@Tag("any-postgres")
class PayloadCodecTest {

    record Address(String street, int zip) {}

    record Customer(String name, Address address) {}

    record Item(String name, BigDecimal price) {}

    record Order(long id, List<Item> items, Map<String, Item> extras) {}

    record Times(Instant instant, LocalDate date, OffsetDateTime offset, Duration duration) {}

    record Page<T>(T first, List<T> rest) {}

    @JsonTypeInfo(use = JsonTypeInfo.Id.NAME, property = "type")
    @JsonSubTypes({
        @JsonSubTypes.Type(value = Circle.class, name = "circle"),
        @JsonSubTypes.Type(value = Square.class, name = "square")
    })
    sealed interface Shape permits Circle, Square {}

    record Circle(double radius) implements Shape {}

    record Square(double side) implements Shape {}

    @JsonTypeInfo(use = JsonTypeInfo.Id.DEDUCTION)
    @JsonSubTypes({@JsonSubTypes.Type(Email.class), @JsonSubTypes.Type(Sms.class)})
    sealed interface Message permits Email, Sms {}

    record Email(String to) implements Message {}

    record Sms(String phone) implements Message {}

    static class Bean {
        public String name = "";
        public @Nullable Address address;
    }

    record Unwrapped(String name, @JsonUnwrapped Address address) {}

    record Scheduled(String name, @JsonProperty("_cron") Map<String, Object> cron) {}

    record ScheduledCustomer(
            Address address,
            @JsonProperty("_cron") @Nullable Object cron) {}

    @JsonTypeInfo(use = JsonTypeInfo.Id.NAME, property = "type")
    @JsonSubTypes({
        @JsonSubTypes.Type(value = WithoutCron.class, name = "without"),
        @JsonSubTypes.Type(value = WithCron.class, name = "with")
    })
    sealed interface Report permits WithoutCron, WithCron {}

    record WithoutCron(String name) implements Report {}

    record WithCron(@JsonProperty("_cron") Object cron) implements Report {}

    static class Nested {
        @JsonProperty
        void setJson(String json) {
            try {
                JsonMapper.shared().readValue(json, Address.class);
            } catch (JacksonException e) {
                throw new IllegalArgumentException("bad address: " + e.getMessage(), e);
            }
        }
    }

    @JsonTypeInfo(use = JsonTypeInfo.Id.NAME, include = JsonTypeInfo.As.WRAPPER_OBJECT)
    @JsonSubTypes(@JsonSubTypes.Type(value = Wrapped.class, name = "wrapped"))
    sealed interface Wrapper permits Wrapped {}

    record Wrapped(String name) implements Wrapper {}

    record Positive(int value) {
        Positive {
            if (value < 1) {
                throw new IllegalArgumentException("value must be positive\nand is not");
            }
        }
    }

    static final class Node {
        @JsonProperty
        @Nullable Node next;
    }

    record Failing(@Nullable String value) {
        @JsonProperty
        String name() {
            if (value == null) {
                throw new IllegalStateException("no name");
            }
            return value;
        }
    }

    private static final Type PAGE_OF_ITEMS = new ParameterizedTypeReference<Page<Item>>() {}.getType();
    private static final Type ITEMS = new ParameterizedTypeReference<List<Item>>() {}.getType();
    private static final Type ITEMS_BY_NAME = new ParameterizedTypeReference<Map<String, Item>>() {}.getType();
    private static final Type SHAPES = new ParameterizedTypeReference<List<Shape>>() {}.getType();

    private static final String RESERVED = "\"_trace\": {\"flags\": 1, \"trace_id\": \"a\", \"span_id\": [{}]},"
            + " \"_cron\": {\"ts\": \"2026-01-01T00:00:00.000Z\", \"backfilled\": false}";

    private final PayloadCodec codec = new PayloadCodec(JsonMapper.builder().build());
    private final JsonMapper strictMapper = JsonMapper.builder()
            .enable(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES)
            .build();
    private final PayloadCodec strict = new PayloadCodec(strictMapper);

    private @Nullable Object roundTrip(Object payload, Type type) {
        return codec.decode(Running.job(codec.encode("payload", payload)), type);
    }

    private @Nullable Object read(PayloadCodec codec, String payload, Type type) {
        return codec.decode(Running.job(payload), type);
    }

    @Test
    void aLoneSurrogateIsRefused() {
        PayloadCodec codec = new PayloadCodec(new JsonMapper());

        assertThatIllegalArgumentException()
                .isThrownBy(() -> codec.encode("requests[3].payload", Map.of("name", "x\uD83D")))
                .withMessage("requests[3].payload must not contain a lone surrogate, which PostgreSQL cannot store,"
                        + " but has U+D83D at index 10");
        assertThat(codec.encode("payload", "\uD83D\uDE00")).isEqualTo("\"\uD83D\uDE00\"");
    }

    @Test
    void recordsComeBack() {
        Order order = new Order(
                1,
                List.of(new Item("a", new BigDecimal("1.10")), new Item("b", new BigDecimal("12345678901234567890.5"))),
                Map.of("c", new Item("c", BigDecimal.ONE)));

        assertThat(roundTrip(order, Order.class)).isEqualTo(order);
    }

    @Test
    void aTaskGivesItsPayloadType() {
        Task<Address> task = Task.of("send", Address.class);

        Address address = codec.decode(Running.job("{\"street\": \"Elm\", \"zip\": 12}"), task);

        assertThat(address).isEqualTo(new Address("Elm", 12));
    }

    @Test
    void timesComeBack() {
        Times times = new Times(
                Instant.parse("2026-01-02T03:04:05.678901Z"),
                LocalDate.of(2026, 1, 2),
                OffsetDateTime.parse("2026-01-02T03:04:05Z"),
                Duration.ofMillis(90_001));

        assertThat(roundTrip(times, Times.class)).isEqualTo(times);
    }

    @Test
    void genericTypesComeBack() {
        Item item = new Item("a", BigDecimal.TEN);
        Page<Item> page = new Page<>(item, List.of(item, item));

        assertThat(roundTrip(page, PAGE_OF_ITEMS)).isEqualTo(page);
        assertThat(roundTrip(List.of(item), ITEMS)).isEqualTo(List.of(item));
        assertThat(roundTrip(Map.of("x", item), ITEMS_BY_NAME)).isEqualTo(Map.of("x", item));
    }

    @Test
    void sealedTypesComeBack() {
        assertThat(roundTrip(new Square(2), Shape.class)).isEqualTo(new Square(2));
        assertThat(roundTrip(new Sms("1"), Message.class)).isEqualTo(new Sms("1"));
    }

    @Test
    void aGenericTypeKeepsTheTypeIdsOfItsElements() {
        List<Shape> shapes = List.of(new Circle(1), new Square(2));

        String json = codec.encode("payload", shapes, SHAPES);

        assertThat(codec.decode(Running.job(json), SHAPES)).isEqualTo(shapes);
    }

    @Test
    void scalarsComeBack() {
        assertThat(roundTrip("text", String.class)).isEqualTo("text");
        assertThat(roundTrip(5, int.class)).isEqualTo(5);
        assertThat(roundTrip(TimeUnit.DAYS, TimeUnit.class)).isEqualTo(TimeUnit.DAYS);
    }

    @Test
    void jsonNodeIsThePayloadAsItStands() {
        String payload = "{\"a\": [1, null], " + RESERVED + "}";

        assertThat(read(strict, payload, JsonNode.class)).isEqualTo(strictMapper.readTree(payload));
        assertThat(read(strict, "null", JsonNode.class))
                .isInstanceOfSatisfying(
                        JsonNode.class, node -> assertThat(node.isNull()).isTrue());
    }

    @Test
    void noPayloadIsTheEmptyObject() {
        assertThat(codec.encode("payload", null)).isEqualTo("{}");
        assertThat(codec.encode("payload", null, Address.class)).isEqualTo("{}");
    }

    @Test
    void aJobSpecIsNoPayload() {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> codec.encode("payload", JobSpec.DEFAULT))
                .withMessageContaining("payload must not be a JobSpec")
                .withMessageContaining("third argument");
        assertThatIllegalArgumentException().isThrownBy(() -> codec.encode("payload", JobSpec.builder()));
        assertThatIllegalArgumentException().isThrownBy(() -> codec.encode("payload", JobSpec.DEFAULT, Object.class));
    }

    @Test
    void anUnwritableFieldIsNamed() {
        Object payload = Map.of("items", List.of(1, Map.of("odd key", new Failing(null))));

        assertThatIllegalArgumentException()
                .isThrownBy(() -> codec.encode("payload", payload))
                .withMessageStartingWith("payload of ")
                .withMessageContaining(" at $.items[1]['odd key'].name: ")
                .withMessageContaining("no name")
                .withCauseInstanceOf(JacksonException.class);
    }

    @Test
    void aCycleIsDescribedInBrief() {
        Node node = new Node();
        node.next = new Node();
        node.next.next = node;

        assertThatIllegalArgumentException()
                .isThrownBy(() -> codec.encode("payload", node))
                .withMessageContaining(" at $.next.next.")
                .satisfies(e -> assertThat(e.getMessage()).hasSizeLessThan(800).doesNotContain("\n"));
    }

    @Test
    void aValueOfAnotherTypeIsNotWrittenAsTheDeclaredOne() {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> codec.encode("payload", "text", Address.class))
                .withMessageContaining("payload of java.lang.String cannot be written as JSON at $: ");
    }

    static class WithoutConstructor {
        @SuppressWarnings("UnusedMethod")
        private WithoutConstructor(String name, int number) {
            assertThat(name).hasSize(number);
        }
    }

    @Test
    void aClassThatJacksonCannotConstructIsRefusedWithTheRemedy() {
        assertThatThrownBy(() -> read(codec, "{\"name\": \"x\"}", WithoutConstructor.class))
                .isInstanceOf(PayloadException.class)
                .hasMessageContaining(WithoutConstructor.class.getName())
                .hasMessageEndingWith(
                        "Make the class a record, give it a constructor without parameters, or compile it with -parameters");
    }

    @Test
    void theFieldThatDoesNotFitIsNamed() {
        assertThatThrownBy(() -> read(
                        codec, "{\"name\": \"x\", \"address\": {\"street\": \"s\", \"zip\": \"abc\"}}", Customer.class))
                .isInstanceOf(PayloadException.class)
                .hasMessageStartingWith("The payload of job 7 (task \"send\") cannot be read as "
                        + Customer.class.getName() + " at $.address.zip: ")
                .hasMessageContaining("\"abc\"")
                .hasMessageNotContainingAny("\n", "Source", "reference chain")
                .hasCauseInstanceOf(JacksonException.class);
        assertThatThrownBy(() -> read(codec, "[{\"price\": 1}, {\"price\": {}}]", ITEMS))
                .hasMessageContaining("java.util.List<" + Item.class.getName() + "> at $[1].price: ");
        assertThatThrownBy(() -> read(codec, "{\"items\": [{}, {}, {\"price\": \"x\"}]}", Order.class))
                .hasMessageContaining(" at $.items[2].price: ");
        assertThatThrownBy(() -> read(codec, "{\"extras\": {\"it's\": {\"price\": \"x\"}}}", Order.class))
                .hasMessageContaining(" at $.extras['it\\'s'].price: ");
    }

    @Test
    void theReasonFitsOnOneLine() {
        assertThatThrownBy(() -> read(codec, "{\"value\": 0}", Positive.class))
                .hasMessageContaining("value must be positive and is not")
                .hasMessageNotContainingAny("\n", "Source");
        assertThatThrownBy(() -> read(codec, "{\"json\": \"{\\\"zip\\\": \\\"x\\\"}\"}", Nested.class))
                .hasMessageContaining(" at $.json: ")
                .hasMessageContaining("bad address: ")
                .hasMessageNotContainingAny("\n", "Source");
        assertThatThrownBy(() -> read(codec, "{\"value\": ", Positive.class))
                .isInstanceOf(PayloadException.class)
                .hasMessageNotContainingAny("\n", "Source");
    }

    @Test
    void nullFitsNoOrdinaryType() {
        PayloadCodec lenient = new PayloadCodec(JsonMapper.builder()
                .disable(DeserializationFeature.FAIL_ON_NULL_FOR_PRIMITIVES)
                .build());

        for (Type type : List.of(String.class, ITEMS, int[].class, int.class, Integer.class, boolean.class)) {
            assertThatThrownBy(() -> read(lenient, " null ", type))
                    .isInstanceOf(PayloadException.class)
                    .hasMessageContainingAll("job 7", "\"send\"", " at $: the payload is null");
        }
    }

    /** A Rust worker stores null for an item of its crontab that has no payload. */
    @Test
    void nullIsTheEmptyObjectForTypesThatAreReadFromObjects() {
        Type map = new ParameterizedTypeReference<Map<String, Object>>() {}.getType();

        assertThat(read(codec, " null ", map)).isEqualTo(Map.of());
        assertThat(read(codec, "null", Customer.class)).isEqualTo(new Customer(null, null));
        assertThat(read(codec, "null", Bean.class)).isInstanceOf(Bean.class);
        assertThat(read(codec, "null", ObjectNode.class)).hasToString("{}");
        assertThat(read(codec, "null", Object.class)).isEqualTo(Map.of());
    }

    @Test
    void nullIsLeftToTypesWithAValueForIt() {
        Type optional = new ParameterizedTypeReference<Optional<Address>>() {}.getType();

        assertThat(read(codec, "null", optional)).isEqualTo(Optional.empty());
        assertThat(read(codec, "{}", Void.class)).isNull();
        assertThat(read(codec, "null", Void.class)).isNull();
    }

    @Test
    void reservedKeysAreToleratedByAStrictMapper() {
        Address address = new Address("s", 1);
        String fields = "\"street\": \"s\", \"zip\": 1";

        for (String payload : List.of(
                "{" + RESERVED + ", " + fields + "}",
                "{" + fields + ", " + RESERVED + "}",
                "{\"_trace\": 1, " + fields + ", \"_cron\": null}")) {
            assertThat(read(strict, payload, Address.class)).isEqualTo(address);
        }
        assertThat(read(strict, "{\"name\": \"n\", " + RESERVED + ", \"address\": {" + fields + "}}", Bean.class))
                .isInstanceOfSatisfying(Bean.class, bean -> {
                    assertThat(bean.name).isEqualTo("n");
                    assertThat(bean.address).isEqualTo(address);
                });
        assertThat(read(
                        strict,
                        "{\"first\": {\"name\": \"a\", \"price\": 1}, \"rest\": [], " + RESERVED + "}",
                        PAGE_OF_ITEMS))
                .isEqualTo(new Page<>(new Item("a", BigDecimal.ONE), List.of()));
        assertThat(read(strict, "{\"name\": \"n\", " + RESERVED + ", " + fields + "}", Unwrapped.class))
                .isEqualTo(new Unwrapped("n", address));
    }

    @Test
    void reservedKeysAreToleratedInSealedTypes() {
        assertThat(read(strict, "{\"type\": \"circle\", " + RESERVED + ", \"radius\": 1}", Shape.class))
                .isEqualTo(new Circle(1));
        assertThat(read(strict, "{" + RESERVED + ", \"radius\": 1, \"type\": \"circle\"}", Shape.class))
                .isEqualTo(new Circle(1));
        assertThat(read(strict, "{\"radius\": 1, \"type\": \"circle\", " + RESERVED + "}", Shape.class))
                .isEqualTo(new Circle(1));
        assertThat(read(strict, "{" + RESERVED + ", \"phone\": \"1\"}", Message.class))
                .isEqualTo(new Sms("1"));
    }

    @Test
    void reservedKeysAreNoEntriesOfATypedMap() {
        String item = "{\"name\": \"a\", \"price\": 1.10}";

        assertThat(read(strict, "{" + RESERVED + ", \"x\": " + item + "}", ITEMS_BY_NAME))
                .isEqualTo(Map.of("x", new Item("a", new BigDecimal("1.10"))));
        assertThat(read(codec, "{\"x\": " + item + ", " + RESERVED + "}", ITEMS_BY_NAME))
                .isEqualTo(Map.of("x", new Item("a", new BigDecimal("1.10"))));
        assertThat(read(strict, "{" + RESERVED + "}", ITEMS_BY_NAME)).isEqualTo(Map.of());
        assertThat(read(
                        strict,
                        "{\"_cron\": {}, \"1\": \"b\"}",
                        new ParameterizedTypeReference<Map<Integer, Object>>() {}.getType()))
                .isEqualTo(Map.of(1, "b"));
        assertThat(read(
                        strict,
                        "{\"x\": {\"_cron\": 1}}",
                        new ParameterizedTypeReference<Map<String, Map<String, Integer>>>() {}.getType()))
                .isEqualTo(Map.of("x", Map.of("_cron", 1)));
    }

    @Test
    void whoAsksForReservedKeysGetsThem() {
        Type anything = new ParameterizedTypeReference<Map<String, Object>>() {}.getType();

        assertThat(read(strict, "{\"_cron\": {\"ts\": 1}}", anything)).isEqualTo(Map.of("_cron", Map.of("ts", 1)));
        assertThat(read(strict, "{\"_cron\": {\"ts\": 1}}", Map.class)).isEqualTo(Map.of("_cron", Map.of("ts", 1)));
        assertThat(read(strict, "{\"name\": \"n\", \"_cron\": {\"ts\": 1}, \"_trace\": {}}", Scheduled.class))
                .isEqualTo(new Scheduled("n", Map.of("ts", 1)));
    }

    record Execution(String ts, boolean backfilled) {}

    record Executed(
            @JsonProperty("_cron") Execution cron, @Nullable String schedule) {}

    record Told(@JsonProperty("_cron") ToldExecution cron) {}

    record ToldExecution(String schedule) {}

    /** The schedule is told by this worker only, which must not make types for the crontabs of others unreadable. */
    @Test
    void theScheduleIsToleratedInATypeOfTheExecution() {
        String cron = "\"_cron\": {\"ts\": \"t\", \"backfilled\": true, \"schedule\": \"s\"}";
        for (int reading = 0; reading < 2; reading++) {
            assertThat(read(strict, "{" + cron + ", \"schedule\": \"other\"}", Executed.class))
                    .isEqualTo(new Executed(new Execution("t", true), "other"));
        }
        assertThat(read(strict, "{\"_cron\": {\"schedule\": \"s\"}}", Told.class))
                .isEqualTo(new Told(new ToldExecution("s")));
        assertThatThrownBy(() -> read(
                        strict, "{\"_cron\": {\"ts\": \"t\", \"backfilled\": true, \"other\": 1}}", Executed.class))
                .isInstanceOf(PayloadException.class)
                .hasMessageContaining(" at $._cron.other: ");
        assertThatThrownBy(() ->
                        read(strict, "{\"address\": {\"street\": \"s\", \"zip\": 1, \"schedule\": 1}}", Customer.class))
                .isInstanceOf(PayloadException.class)
                .hasMessageContaining("schedule");
    }

    @Test
    void aKeyUnknownToOneSubtypeStillReachesAnother() {
        assertThat(read(strict, "{\"type\": \"without\", \"name\": \"n\", \"_cron\": 1}", Report.class))
                .isEqualTo(new WithoutCron("n"));
        assertThat(read(strict, "{\"type\": \"with\", \"_cron\": 1}", Report.class))
                .isEqualTo(new WithCron(1));
    }

    @Test
    void aKeyWhosePathLooksTopLevelButIsNotStaysRefused() {
        assertThatThrownBy(() -> read(strict, "{\"wrapped\": {\"name\": \"n\", \"_cron\": 1}}", Wrapper.class))
                .isInstanceOf(PayloadException.class)
                .hasMessageContaining("_cron");
    }

    @Test
    void aRefusedInnerKeyDoesNotTakeTheOuterOneAway() {
        assertThatThrownBy(() -> read(
                        strict,
                        "{\"address\": {\"street\": \"s\", \"zip\": 1, \"_cron\": 1}, \"_cron\": 2}",
                        ScheduledCustomer.class))
                .isInstanceOf(PayloadException.class)
                .hasMessageContaining(" at $.address._cron: ");
        assertThat(read(strict, "{\"address\": null, \"_cron\": 2}", ScheduledCustomer.class))
                .isEqualTo(new ScheduledCustomer(null, 2));
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "{\"name\": \"n\", \"address\": {\"street\": \"s\", \"zip\": 1}, \"_other\": 1}",
                "{\"name\": \"n\", \"address\": {\"street\": \"s\", \"zip\": 1, \"_trace\": 1}}",
                "{\"name\": \"n\", \"address\": {\"_cron\": {}, \"street\": \"s\", \"zip\": 1}}"
            })
    void otherUnknownKeysAreTheMappersBusiness(String payload) {
        assertThat(read(codec, payload, Customer.class)).isInstanceOf(Customer.class);
        assertThat(read(codec, payload, Bean.class)).isInstanceOf(Bean.class);
        assertThatThrownBy(() -> read(strict, payload, Customer.class)).isInstanceOf(PayloadException.class);
        assertThatThrownBy(() -> read(strict, payload, Bean.class)).isInstanceOf(PayloadException.class);
    }

    @Test
    void theApplicationsMapperStaysAsItIs() {
        read(strict, "{\"street\": \"s\", \"zip\": 1, \"_trace\": 1}", Address.class);

        assertThatThrownBy(() -> strictMapper.readValue("{\"street\": \"s\", \"_trace\": 1}", Address.class))
                .isInstanceOf(JacksonException.class);
    }

    @Test
    void anElementOfAListIsNoTopLevel() {
        List<String> payloads = new ArrayList<>();
        payloads.add("[{\"name\": \"a\", \"price\": 1, \"_trace\": 1}]");
        payloads.add("[{\"_trace\": {}, \"name\": \"a\", \"price\": 1}]");

        assertThat(payloads)
                .allSatisfy(payload -> assertThatThrownBy(() -> read(strict, payload, ITEMS))
                        .isInstanceOf(PayloadException.class)
                        .hasMessageContaining("$[0]._trace"));
    }

    @Test
    void whatRemainsOfABatchStaysAsItWasWritten() {
        List<String> items = List.of(
                "0.12345678901234567890",
                "1e400",
                "{\"a\": 1,\"a\" :2}",
                "\"x, ]\\\" \\ud800\"",
                "[ 1 , [2] ]",
                "null",
                "-0.0",
                "{}",
                "[]",
                "true",
                "\"\"");
        Job job = TestJob.withId(1)
                .payload(" [ " + String.join(" ,\n ", items) + "\t] ")
                .build();

        assertThat(new PayloadCodec(new JsonMapper()).failedItems(job, results(items, index -> true)))
                .isEqualTo("[" + String.join(",", items) + "]");
        assertThat(new PayloadCodec(new JsonMapper()).failedItems(job, results(items, index -> false)))
                .isEqualTo("[]");
        for (int i = 0; i < items.size(); i++) {
            int only = i;
            assertThat(new PayloadCodec(new JsonMapper()).failedItems(job, results(items, index -> index == only)))
                    .isEqualTo("[" + items.get(i) + "]");
        }
    }

    private static BatchResult results(List<String> items, IntPredicate fails) {
        return BatchResult.of(IntStream.range(0, items.size())
                .mapToObj(index -> fails.test(index) ? new IllegalStateException() : null)
                .toList());
    }
}
