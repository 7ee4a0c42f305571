package dev.pgworker.samples.sqlandnode;

import java.util.Objects;

import com.fasterxml.jackson.annotation.JsonProperty;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.stereotype.Component;

import dev.pgworker.task.JobContext;
import dev.pgworker.task.JobHandler;

/** Runs the jobs that other programs add; this one adds none. */
@Component
class ThumbnailHandlers {

    /**
     * The payload, by its names in JSON. These are what the programs agree on.
     *
     * @param width in pixels; null for the usual one
     */
    record Picture(
            String url, @JsonProperty("max_width") @Nullable Integer width) {}

    private static final int USUAL_WIDTH = 200;

    private static final Logger log = LoggerFactory.getLogger(ThumbnailHandlers.class);

    @JobHandler("make_thumbnail")
    void make(Picture picture, JobContext context) {
        log.info(
                "{}: {}, {} pixels wide",
                context,
                picture.url(),
                Objects.requireNonNullElse(picture.width(), USUAL_WIDTH));
    }
}
