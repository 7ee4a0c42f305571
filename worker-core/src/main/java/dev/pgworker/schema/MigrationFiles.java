package dev.pgworker.schema;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.zip.CRC32;

import org.jspecify.annotations.Nullable;
import org.springframework.core.io.Resource;
import org.springframework.core.io.support.PathMatchingResourcePatternResolver;

/**
 * Our migrations on the classpath, and whether a schema has them as they are here. That question is what nearly every start asks, and
 * starting Flyway for it takes half a second.
 */
final class MigrationFiles {

    private static final String REPEATABLE = "R__";

    private final WorkerSchema schema;
    private final String location;

    MigrationFiles(WorkerSchema schema, String location) {
        this.schema = schema;
        this.location = location;
    }

    /**
     * Returns the names of all migrations in the order in which they are applied, if a schema has these, unchanged, and no others; null if
     * Flyway has to find out how they differ.
     *
     * @param table Flyway's, which exists
     */
    @Nullable List<String> unchanged(Connection connection, String table) throws SQLException {
        Map<String, Integer> applied = new HashMap<>();
        try (Statement statement = connection.createStatement();
                ResultSet row =
                        statement.executeQuery(schema.in("select script, checksum, version, success from {schema}."
                                + table + " order by installed_rank"))) {
            while (row.next()) {
                int checksum = row.getInt("checksum");
                if (row.wasNull()) {
                    continue; // what Flyway notes about itself
                }
                if (!row.getBoolean("success")) {
                    return null;
                }
                applied.put(row.getString("script"), checksum);
            }
        }
        Map<String, Integer> here = checksums();
        return here.equals(applied) ? new ArrayList<>(here.keySet()) : null;
    }

    private Map<String, Integer> checksums() {
        Map<String, Integer> checksums =
                new TreeMap<>(Comparator.comparing((String name) -> name.startsWith(REPEATABLE))
                        .thenComparing(Comparator.naturalOrder()));
        try {
            for (Resource file : new PathMatchingResourcePatternResolver(MigrationFiles.class.getClassLoader())
                    .getResources("classpath*:" + location + "/*.sql")) {
                String name = String.valueOf(file.getFilename());
                String text = file.getContentAsString(StandardCharsets.UTF_8);
                checksums.put(
                        name, checksum(name.startsWith(REPEATABLE) ? text.replace("${schema}", schema.name()) : text));
            }
        } catch (IOException e) {
            return Map.of();
        }
        return checksums;
    }

    /** As Flyway makes it. */
    private static int checksum(String text) {
        CRC32 checksum = new CRC32();
        text.lines().forEach(line -> checksum.update(line.getBytes(StandardCharsets.UTF_8)));
        return (int) checksum.getValue();
    }
}
