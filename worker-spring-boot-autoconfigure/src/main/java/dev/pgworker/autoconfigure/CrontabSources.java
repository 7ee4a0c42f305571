package dev.pgworker.autoconfigure;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.Map;

import org.jspecify.annotations.Nullable;
import org.springframework.boot.context.properties.source.InvalidConfigurationPropertyValueException;
import org.springframework.core.io.Resource;

import dev.pgworker.crontab.Crontab;

/** The crontab texts among the properties. */
final class CrontabSources {

    private CrontabSources() {}

    /**
     * Reads both texts.
     *
     * @throws dev.pgworker.crontab.CrontabException if anything in them is wrong
     * @throws InvalidConfigurationPropertyValueException if the file cannot be read
     */
    static Crontab read(@Nullable String text, @Nullable Resource file) {
        Map<String, String> texts = new LinkedHashMap<>();
        if (text != null) {
            texts.put("worker.crontab", text);
        }
        if (file != null) {
            texts.put("worker.crontab-file (" + file.getDescription() + ")", content(file));
        }
        return Crontab.parse(texts);
    }

    private static String content(Resource file) {
        try {
            return file.getContentAsString(StandardCharsets.UTF_8);
        } catch (IOException e) {
            throw new InvalidConfigurationPropertyValueException(
                    "worker.crontab-file", file, "It cannot be read: " + e.getMessage() + ".");
        }
    }
}
