package dev.pgworker.samples.apiandworker;

import java.net.URI;

import org.springframework.context.annotation.Profile;
import org.springframework.http.ResponseEntity;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RestController;

@RestController
@Profile("!worker")
class ExportController {

    private final ExportService exports;

    ExportController(ExportService exports) {
        this.exports = exports;
    }

    @PostMapping("/exports")
    ResponseEntity<Void> request() {
        return ResponseEntity.accepted()
                .location(URI.create("/exports/" + exports.request()))
                .build();
    }

    @GetMapping("/exports/{id}")
    ResponseEntity<String> content(@PathVariable long id) {
        return ResponseEntity.of(exports.content(id));
    }
}
