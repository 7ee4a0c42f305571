package dev.pgworker.dashboard;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.Locale;
import java.util.stream.Collectors;
import java.util.stream.Stream;

import org.junit.jupiter.api.Test;
import tools.jackson.databind.JsonNode;

import static org.assertj.core.api.Assertions.assertThat;

/** docs/properties.md has the properties of the dashboard as their metadata says. */
class PropertiesTest {

    private static final Path PAGE = Path.of("../docs/properties.md");
    private static final String BEGIN = "<!-- dashboard properties -->\n";
    private static final String END = "<!-- /dashboard properties -->\n";

    private static final String HEAD = """

            ## pgworker.dashboard

            Of the module [worker-dashboard](dashboard.md).

            | Property | Type | Default | Description |
            |---|---|---|---|
            """;

    @Test
    void theReferenceHasEveryProperty() throws IOException {
        String table = table();
        String page = Files.readString(PAGE);
        int begin = page.indexOf(BEGIN) + BEGIN.length();
        int end = page.indexOf(END);
        if (Boolean.getBoolean("pgworker.write-docs")) {
            Files.writeString(PAGE, page.substring(0, begin) + table + page.substring(end));
            return;
        }

        assertThat(page.substring(begin, end))
                .as("docs/properties.md; -Dpgworker.write-docs=true writes it")
                .isEqualTo(table);
    }

    private static String table() throws IOException {
        try (InputStream metadata =
                PropertiesTest.class.getResourceAsStream("/META-INF/spring-configuration-metadata.json")) {
            return Http.json
                    .readTree(metadata)
                    .path("properties")
                    .valueStream()
                    .sorted(Comparator.comparing(
                            property -> property.path("name").asString()))
                    .map(PropertiesTest::row)
                    .collect(Collectors.joining("", HEAD, "\n"));
        }
    }

    private static String row(JsonNode property) {
        JsonNode value = property.path("defaultValue");
        return "| `" + property.path("name").asString() + "` | "
                + type(property.path("type").asString()) + " | "
                + (value.isMissingNode() ? "" : "`" + value.asString() + "`") + " | "
                + property.path("description").asString() + " |\n";
    }

    private static String type(String name) {
        if (name.equals(DashboardProperties.Payloads.class.getName())) {
            return Stream.of(DashboardProperties.Payloads.values())
                    .map(constant -> "`" + constant.name().toLowerCase(Locale.ROOT) + "`")
                    .collect(Collectors.joining(", "));
        }
        return "`" + name.replaceAll("[\\w.]+[.$]", "") + "`";
    }
}
