package dev.pgworker.samples.apiandworker;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.context.annotation.Profile;
import org.springframework.stereotype.Component;

import dev.pgworker.task.JobHandler;

@Component
@Profile("!api")
class ExportHandlers {

    private static final Logger log = LoggerFactory.getLogger(ExportHandlers.class);

    private final ExportService exports;

    ExportHandlers(ExportService exports) {
        this.exports = exports;
    }

    @JobHandler("export")
    void write(Export export) {
        exports.finish(
                export.id(), "written by process " + ProcessHandle.current().pid());
        log.info("Export {} is finished", export.id());
    }
}
