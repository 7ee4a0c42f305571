package dev.pgworker.testing;

import java.io.IOException;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.net.URISyntaxException;
import java.net.URL;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Stream;
import java.util.zip.CRC32;

import org.jspecify.annotations.Nullable;
import org.springframework.jdbc.datasource.SingleConnectionDataSource;

import dev.pgworker.schema.SchemaMigrator;
import dev.pgworker.schema.WorkerSchema;
import dev.pgworker.testsupport.TestPostgres;

/**
 * Installs a schema as {@link SchemaMigrator} does, in a third of its time: once in each JVM it records what the migrator
 * asks of its connection, and asks the same for each schema.
 */
final class SchemaInstaller {

    /** Stands for the schema in what is recorded, and is contained in nothing else there. */
    private static final WorkerSchema RECORDED =
            new WorkerSchema("recorded" + ProcessHandle.current().pid());

    private static final List<Call> CALLS = record();

    /** The files of functions, whose checksums in the history depend on the schema. */
    private static final Map<String, List<String>> FUNCTIONS = functions();

    private SchemaInstaller() {}

    /**
     * A call on the connection, or on a statement.
     *
     * @param statement the number of the statement; null for a call on the connection
     * @param created the number of the statement that the call creates; null if it creates none
     */
    private record Call(
            @Nullable Integer statement,
            Method method,
            List<@Nullable Object> arguments,
            @Nullable Integer created) {

        @Nullable Object[] argumentsFor(WorkerSchema schema) {
            return arguments.stream()
                    .map(a -> a instanceof String text ? text.replace(RECORDED.name(), schema.name()) : a)
                    .toArray();
        }
    }

    static void install(Connection connection, WorkerSchema schema) {
        try (Statement settings = connection.createStatement()) {
            // They were checked when they were recorded.
            settings.execute("set check_function_bodies = off");
            Map<Integer, Statement> statements = new HashMap<>();
            for (Call call : CALLS) {
                Object target = call.statement() == null ? connection : statements.get(call.statement());
                Object result = invoke(call.method(), target, call.argumentsFor(schema));
                if (call.created() != null) {
                    statements.put(call.created(), (Statement) result);
                }
            }
            writeChecksums(connection, schema);
        } catch (Throwable e) {
            throw new IllegalStateException("Schema " + schema.name() + " could not be installed", e);
        }
    }

    /** As Flyway makes them: of the text with the name of the schema, without ends of lines. */
    private static void writeChecksums(Connection connection, WorkerSchema schema) throws SQLException {
        String update = schema.in("update {schema}.worker_flyway_history set checksum = ? where script = ?");
        try (PreparedStatement statement = connection.prepareStatement(update)) {
            for (Map.Entry<String, List<String>> file : FUNCTIONS.entrySet()) {
                CRC32 checksum = new CRC32();
                for (String line : file.getValue()) {
                    checksum.update(line.replace("${schema}", schema.name()).getBytes(StandardCharsets.UTF_8));
                }
                statement.setInt(1, (int) checksum.getValue());
                statement.setString(2, file.getKey());
                statement.addBatch();
            }
            statement.executeBatch();
        }
    }

    private static Map<String, List<String>> functions() {
        URL migrations = Objects.requireNonNull(SchemaMigrator.class.getResource("migration"));
        Map<String, List<String>> functions = new HashMap<>();
        try (Stream<Path> files = Files.list(Path.of(migrations.toURI()))) {
            for (Path file : files.toList()) {
                String name = file.getFileName().toString();
                if (name.startsWith("R__")) {
                    functions.put(name, Files.readAllLines(file));
                }
            }
            return functions;
        } catch (IOException | URISyntaxException e) {
            throw new IllegalStateException(e);
        }
    }

    private static List<Call> record() {
        List<Call> calls = new ArrayList<>();
        SingleConnectionDataSource real = new SingleConnectionDataSource(TestPostgres.jdbcUrl(), true);
        try {
            Connection recording = recording(real.getConnection(), calls);
            new SchemaMigrator(new SingleConnectionDataSource(recording, true), RECORDED).migrate();
            try (Statement statement = real.getConnection().createStatement()) {
                statement.execute(RECORDED.in("drop schema {schema} cascade"));
            }
            return List.copyOf(calls);
        } catch (SQLException e) {
            throw new IllegalStateException(e);
        } finally {
            real.destroy();
        }
    }

    private static Connection recording(Connection connection, List<Call> calls) {
        return (Connection) proxy(Connection.class, connection, null, calls, new AtomicInteger());
    }

    private static Object proxy(
            Class<?> type, Object target, @Nullable Integer statement, List<Call> calls, AtomicInteger statements) {
        return Proxy.newProxyInstance(type.getClassLoader(), new Class<?>[] {type}, (self, method, arguments) -> {
            Object result = invoke(method, target, arguments);
            Integer created =
                    statement == null && result instanceof Statement ? (Integer) statements.incrementAndGet() : null;
            if (hasEffect(method)) {
                calls.add(
                        new Call(statement, method, arguments == null ? List.of() : Arrays.asList(arguments), created));
            }
            return created == null ? result : proxy(method.getReturnType(), result, created, calls, statements);
        });
    }

    private static boolean hasEffect(Method method) {
        String name = method.getName();
        return method.getDeclaringClass() != Object.class
                && !name.startsWith("get")
                && !name.startsWith("is")
                && !name.endsWith("rap")
                && !name.startsWith("clear");
    }

    private static @Nullable Object invoke(Method method, Object target, @Nullable Object @Nullable [] arguments)
            throws Throwable {
        try {
            return method.invoke(target, arguments);
        } catch (InvocationTargetException e) {
            throw e.getCause();
        }
    }
}
