package dev.pgworker.autoconfigure;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;

import tools.jackson.databind.JsonNode;

/** The tables of docs/properties.md, one for each group of properties, as the configuration metadata says them. */
final class PropertiesPage {

    private static final String BEGIN = "<!-- properties -->\n";
    private static final String END = "<!-- /properties -->\n";

    private PropertiesPage() {}

    static String tables(JsonNode metadata) {
        Map<String, List<JsonNode>> groups = StreamSupport.stream(metadata.spliterator(), false)
                .sorted((a, b) -> key(a).compareTo(key(b)))
                .collect(Collectors.groupingBy(PropertiesPage::group, LinkedHashMap::new, Collectors.toList()));
        return groups.entrySet().stream()
                .map(group -> "\n## " + group.getKey()
                        + "\n\n| Property | Type | Default | Description |\n|---|---|---|---|\n"
                        + group.getValue().stream().map(PropertiesPage::row).collect(Collectors.joining()))
                .collect(Collectors.joining("", "", "\n"));
    }

    /** Sorts properties of a group together, the plain ones first. */
    private static String key(JsonNode property) {
        String group = group(property);
        return (group.startsWith("pgworker") ? "0" : "1") + group + " "
                + property.path("name").asString();
    }

    private static String group(JsonNode property) {
        String name = property.path("name").asString();
        String[] parts = name.split("\\.", -1);
        if (name.startsWith("management.")) {
            return "management";
        }
        return parts.length == 2 ? "pgworker" : parts[0] + "." + parts[1];
    }

    private static String row(JsonNode property) {
        JsonNode value = property.path("defaultValue");
        return "| `" + property.path("name").asString() + "` | "
                + type(property.path("type").asString()) + " | "
                + (value.isMissingNode() ? "" : "`" + text(value) + "`") + " | "
                + property.path("description").asString() + " |\n";
    }

    /** The constants of an enumeration, or the simple name of any other type. */
    private static String type(String name) {
        try {
            Object[] constants = Class.forName(name).getEnumConstants();
            if (constants != null) {
                return Stream.of(constants)
                        .map(constant -> "`"
                                + ((Enum<?>) constant)
                                        .name()
                                        .toLowerCase(Locale.ROOT)
                                        .replace('_', '-') + "`")
                        .collect(Collectors.joining(", "));
            }
        } catch (ClassNotFoundException e) {
            // A generic type.
        }
        return "`" + name.replaceAll("[\\w.]+[.$]", "") + "`";
    }

    private static String text(JsonNode value) {
        return value.isArray()
                ? StreamSupport.stream(value.spliterator(), false)
                        .map(JsonNode::asString)
                        .collect(Collectors.joining(", "))
                : value.asString();
    }

    static String tablesOf(String page) {
        return page.substring(page.indexOf(BEGIN) + BEGIN.length(), page.indexOf(END));
    }

    static String replace(String page, String tables) {
        return page.substring(0, page.indexOf(BEGIN) + BEGIN.length()) + tables + page.substring(page.indexOf(END));
    }
}
