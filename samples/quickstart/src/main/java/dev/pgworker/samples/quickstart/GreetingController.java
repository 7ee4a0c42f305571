package dev.pgworker.samples.quickstart;

import jakarta.validation.Valid;
import org.springframework.http.HttpStatus;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestBody;
import org.springframework.web.bind.annotation.ResponseStatus;
import org.springframework.web.bind.annotation.RestController;

@RestController
class GreetingController {

    private final GreetingService greetings;

    GreetingController(GreetingService greetings) {
        this.greetings = greetings;
    }

    @PostMapping("/greetings")
    @ResponseStatus(HttpStatus.ACCEPTED)
    void add(@Valid @RequestBody Greeting greeting) {
        greetings.add(greeting);
    }
}
