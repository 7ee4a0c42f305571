package dev.pgworker.task;

import java.lang.reflect.Type;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.StringJoiner;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;

import org.jspecify.annotations.Nullable;
import tools.jackson.core.JsonParser;
import tools.jackson.core.JsonToken;
import tools.jackson.core.StreamReadConstraints;
import tools.jackson.core.json.JsonFactory;
import tools.jackson.databind.JavaType;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.ObjectWriter;
import tools.jackson.databind.json.JsonMapper;

import dev.pgworker.internal.argument.Arguments;
import dev.pgworker.job.Job;
import dev.pgworker.job.JobSpec;
import dev.pgworker.job.Task;

/**
 * Serializes payloads to JSON and reads them back, with the configuration of the application's {@code JsonMapper}.
 *
 * <p>In addition, the top-level keys {@code _trace} and {@code _cron}, which other workers and crontabs add to
 * payloads, never make a payload unreadable, however strict the mapper is. A type that declares a property with such a
 * name still receives it. Thread-safe.
 *
 * @since 0.1.0
 */
public final class PayloadCodec {

    private static final String EMPTY_OBJECT = "{}";

    /** Reads what PostgreSQL takes for JSON, without limits but that of the depth. */
    private static final JsonMapper STRICT = new JsonMapper(JsonFactory.builder()
            .streamReadConstraints(StreamReadConstraints.builder()
                    .maxNumberLength(Integer.MAX_VALUE)
                    .maxStringLength(Integer.MAX_VALUE)
                    .maxNameLength(Integer.MAX_VALUE)
                    .build())
            .build());

    private final JsonMapper mapper;
    private final @Nullable PayloadValidator validator;
    // Both are bounded by the number of payload types in the application.
    private final ConcurrentMap<Type, PayloadReader> readers = new ConcurrentHashMap<>();
    private final ConcurrentMap<Type, ObjectWriter> writers = new ConcurrentHashMap<>();

    /** Creates a codec that uses the given mapper without changing its configuration. */
    public PayloadCodec(JsonMapper mapper) {
        this(mapper, null);
    }

    /**
     * Creates a codec that uses the given mapper without changing its configuration.
     *
     * @param validator checks each payload that is written or read; null for none
     */
    public PayloadCodec(JsonMapper mapper, @Nullable PayloadValidator validator) {
        this.mapper = Arguments.requireNonNull("mapper", mapper);
        this.validator = validator;
    }

    /**
     * Returns a payload as JSON text, serialized as its run-time type.
     *
     * @param argumentName the name of the payload in messages
     * @param payload the payload, or null for the empty object
     * @throws IllegalArgumentException if the payload is invalid or cannot be serialized (the message names the argument and the path
     *     of the offending field), if it contains a lone surrogate, which would be stored as another character, or if
     *     it is a {@link JobSpec}, which is not intended as a payload
     */
    public String encode(String argumentName, @Nullable Object payload) {
        return encode(argumentName, payload, null);
    }

    /**
     * Returns a payload as JSON text, serialized as the given type. Only in this way do the elements of a generic type,
     * for example {@code List<Shape>}, keep the type ids of a polymorphic {@code Shape}.
     *
     * @param argumentName the name of the payload in messages
     * @param payload the payload, or null for the empty object
     * @param type the type as which the payload will be read; null to use its run-time type
     * @throws IllegalArgumentException as for {@link #encode(String, Object)}, and if the payload is not of that type
     */
    public String encode(String argumentName, @Nullable Object payload, @Nullable Type type) {
        if (payload == null) {
            return EMPTY_OBJECT;
        }
        if (payload instanceof JobSpec || payload instanceof JobSpec.Builder) {
            throw new IllegalArgumentException(argumentName + " must not be a JobSpec: pass the JobSpec as the third"
                    + " argument, after the payload (null for none)");
        }
        if (validator != null) {
            try {
                validator.validate(payload);
            } catch (IllegalArgumentException e) {
                throw new IllegalArgumentException(
                        argumentName + " of " + payload.getClass().getName() + " is invalid: " + e.getMessage(), e);
            }
        }
        String json;
        try {
            json = type == null
                    ? mapper.writeValueAsString(payload)
                    : writer(type).writeValueAsString(payload);
        } catch (RuntimeException e) {
            JsonFailure failure = JsonFailure.of(e);
            throw new IllegalArgumentException(
                    argumentName + " of " + payload.getClass().getName() + " cannot be written as JSON at "
                            + failure.path() + ": " + failure.reason(),
                    e);
        }
        return Arguments.requireStorable(argumentName, json);
    }

    /**
     * Returns the result of a run as JSON text, serialized as its run-time type.
     *
     * @param identifier the task, for the message of an exception
     * @throws PayloadException if the result cannot be serialized, or contains a lone surrogate, or if what the mapper writes is
     *     not one JSON value
     */
    public String encodeResult(String identifier, Object result) {
        String json = encodeResult(identifier, result, Integer.MAX_VALUE);
        if (json == null) {
            throw new PayloadException(
                    "The result of task \"" + identifier + "\" has more than " + Integer.MAX_VALUE + " bytes", null);
        }
        return json;
    }

    /**
     * As {@link #encodeResult(String, Object)}, but gives up as soon as the text is longer than it may be.
     *
     * @param mostBytes how long the text may be, as UTF-8
     * @return the text; null if it is longer
     */
    public @Nullable String encodeResult(String identifier, Object result, int mostBytes) {
        String name = "The result of task \"" + identifier + "\"";
        BoundedText text = new BoundedText(mostBytes);
        try {
            mapper.writeValue(text, result);
        } catch (RuntimeException e) {
            if (text.isFull()) {
                return null;
            }
            JsonFailure failure = JsonFailure.of(e);
            throw new PayloadException(
                    name + " of " + result.getClass().getName() + " cannot be written as JSON at " + failure.path()
                            + ": " + failure.reason(),
                    e);
        }
        if (text.isFull()) {
            return null;
        }
        String json = text.toString();
        requireOneValue(name, json);
        try {
            return Arguments.requireStorable(name, json);
        } catch (IllegalArgumentException e) {
            throw new PayloadException(String.valueOf(e.getMessage()), e);
        }
    }

    /** A mapper may be configured to write raw text as it is. */
    private static void requireOneValue(String name, String json) {
        int values = 0;
        int depth = 0;
        try (JsonParser parser = STRICT.createParser(json)) {
            for (JsonToken token = parser.nextToken(); token != null; token = parser.nextToken()) {
                if (token.isStructEnd()) {
                    depth--;
                } else {
                    values += depth == 0 && token != JsonToken.PROPERTY_NAME ? 1 : 0;
                    depth += token.isStructStart() ? 1 : 0;
                }
            }
        } catch (RuntimeException e) {
            throw new PayloadException(
                    name + " is not written as JSON: " + JsonFailure.of(e).reason(), e);
        }
        if (values != 1) {
            throw new PayloadException(name + " must be written as one JSON value, but as " + values, null);
        }
    }

    /**
     * Returns the payload of a job, as the payload type of a task; null only if that type is {@link Void}.
     *
     * @throws PayloadException if the payload does not fit the type
     */
    @SuppressWarnings({"unchecked", "NullAway"}) // Task ties P to payloadType, and only P = Void gives null
    public <P> P decode(Job job, Task<P> task) {
        return (P) decode(job, Arguments.requireNonNull("task", task).payloadType());
    }

    /**
     * Returns the payload of a job as a value of the given type. For {@link tools.jackson.databind.JsonNode}, this is
     * the payload as stored, including {@code _trace} and {@code _cron}.
     *
     * @param type a class or generic type without type variables
     * @return the value; null only if the type is {@link Void}
     * @throws PayloadException if the payload is invalid or does not fit the type. A payload that is null fits only {@code JsonNode},
     *     {@code Void}, and types for which Jackson has a value for null, such as {@code Optional}; for maps, records
     *     and other classes with properties it is read as the empty object, which other workers store as null
     */
    public @Nullable Object decode(Job job, Type type) {
        Arguments.requireNonNull("job", job);
        PayloadReader reader = readers.get(Arguments.requireNonNull("type", type));
        if (reader == null) {
            reader = readers.computeIfAbsent(type, t -> PayloadReader.of(mapper, mapper.constructType(t)));
        }
        Object value;
        try {
            value = reader.read(job.payload());
        } catch (RuntimeException e) {
            JsonFailure failure = JsonFailure.of(e);
            throw unreadable(job, type, failure.path(), failure.reason(), e);
        }
        if (value == null && !reader.mayBeNull()) {
            throw unreadable(job, type, "$", "the payload is null", null);
        }
        if (validator != null && value != null) {
            try {
                validator.validate(value);
            } catch (IllegalArgumentException e) {
                throw new PayloadException(
                        "The payload of job " + job.id() + " (task \"" + job.taskIdentifier() + "\"), read as "
                                + type.getTypeName() + ", is invalid: " + e.getMessage(),
                        e,
                        true);
            }
        }
        return value;
    }

    /**
     * Returns JSON text as a value of the given type.
     *
     * @param what the text, the subject of an exception's message
     * @param type a class or generic type without type variables
     * @param remedy what to do if the text does not fit, a sentence without its full stop
     * @return the value; null only if the text is {@code null}
     * @throws PayloadException if the text does not fit the type
     */
    public @Nullable Object decodeResult(String what, String json, Type type, String remedy) {
        Arguments.requireNonNull("what", what);
        Arguments.requireNonNull("remedy", remedy);
        JavaType read = mapper.constructType(Arguments.requireNonNull("type", type));
        try {
            return mapper.readValue(Arguments.requireNonNull("json", json), read);
        } catch (RuntimeException e) {
            JsonFailure failure = JsonFailure.of(e);
            throw new PayloadException(
                    what + " cannot be read as " + read.toCanonical() + " at " + failure.path() + ": "
                            + failure.reason() + ". " + remedy,
                    e);
        }
    }

    /**
     * Checks that the payload of a job is a list of at least one item.
     *
     * @throws PayloadException if it is not
     */
    void requireItems(Job job) {
        JsonNode payload = mapper.readTree(job.payload());
        if (!payload.isArray() || payload.isEmpty()) {
            throw new PayloadException(
                    "The payload of job " + job.id() + " (task \"" + job.taskIdentifier() + "\") must be an array of at"
                            + " least one item, but is "
                            + (payload.isArray()
                                    ? "empty"
                                    : "of type " + payload.getNodeType().name().toLowerCase(Locale.ROOT)),
                    null);
        }
    }

    /**
     * Returns the failed items of a batch job, character for character as they are in its payload.
     *
     * @param result the outcome of each item
     * @return a JSON array
     * @throws IllegalArgumentException if the number of entries in the result differs from the number of items in the
     *     payload
     */
    public String failedItems(Job job, BatchResult result) {
        Arguments.requireNonNull("result", result);
        List<String> items = items(Arguments.requireNonNull("job", job).payload());
        if (items.size() != result.errors().size()) {
            throw new IllegalArgumentException("The handler of task \"" + job.taskIdentifier() + "\" reported "
                    + result.errors().size() + " results for " + items.size() + " items");
        }
        StringJoiner failed = new StringJoiner(",", "[", "]");
        for (int i = 0; i < items.size(); i++) {
            if (result.errors().get(i) != null) {
                failed.add(items.get(i));
            }
        }
        return failed.toString();
    }

    /** Returns the texts of an array's elements: from where each begins to where the next one does, without the comma between. */
    private List<String> items(String array) {
        List<String> items = new ArrayList<>();
        try (JsonParser parser = mapper.createParser(array)) {
            parser.nextToken();
            int begin = -1;
            for (JsonToken token = parser.nextToken(); token != null; token = parser.nextToken()) {
                int next = (int) parser.currentTokenLocation().getCharOffset();
                if (begin >= 0) {
                    String item = array.substring(begin, next).stripTrailing();
                    items.add(
                            item.endsWith(",")
                                    ? item.substring(0, item.length() - 1).stripTrailing()
                                    : item);
                }
                begin = next;
                parser.skipChildren();
            }
        }
        return items;
    }

    private PayloadException unreadable(Job job, Type type, String path, String reason, @Nullable Throwable cause) {
        return new PayloadException(
                "The payload of job " + job.id() + " (task \"" + job.taskIdentifier() + "\") cannot be read as "
                        + mapper.constructType(type).toCanonical() + " at " + path + ": " + reason,
                cause);
    }

    private ObjectWriter writer(Type type) {
        ObjectWriter writer = writers.get(type);
        return writer != null ? writer : writers.computeIfAbsent(type, t -> mapper.writerFor(mapper.constructType(t)));
    }
}
