package dev.pgworker.samples.kotlin

import org.springframework.http.HttpStatus
import org.springframework.web.bind.annotation.PostMapping
import org.springframework.web.bind.annotation.RequestBody
import org.springframework.web.bind.annotation.ResponseStatus
import org.springframework.web.bind.annotation.RestController

@RestController
class GreetingController(private val service: GreetingService) {

    @PostMapping("/greetings")
    @ResponseStatus(HttpStatus.ACCEPTED)
    fun greet(@RequestBody greeting: Greeting) = service.greet(greeting)

    @PostMapping("/newsletters")
    @ResponseStatus(HttpStatus.ACCEPTED)
    fun greetAll(@RequestBody greetings: List<Greeting>) = service.greetAll(greetings)
}
