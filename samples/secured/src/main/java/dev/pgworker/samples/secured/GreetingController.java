package dev.pgworker.samples.secured;

import java.security.Principal;
import java.time.Duration;

import org.springframework.http.MediaType;
import org.springframework.security.web.csrf.CsrfToken;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.util.HtmlUtils;

import dev.pgworker.job.JobScheduler;
import dev.pgworker.job.JobSpec;
import dev.pgworker.job.Task;

/** A page with a button that adds a job for whoever is logged in. */
@RestController
class GreetingController {

    static final Task<Greeting> HELLO = Task.of("hello", Greeting.class);

    private final JobScheduler jobs;

    GreetingController(JobScheduler jobs) {
        this.jobs = jobs;
    }

    @GetMapping(path = "/", produces = MediaType.TEXT_HTML_VALUE)
    String page(Principal user, CsrfToken csrf) {
        return """
                <!doctype html>
                <form method="post" action="/greetings">
                  <input type="hidden" name="%s" value="%s">
                  <button>Greet %s in an hour</button>
                </form>
                """.formatted(csrf.getParameterName(), csrf.getToken(), HtmlUtils.htmlEscape(user.getName()));
    }

    @PostMapping("/greetings")
    String add(Principal user) {
        JobSpec inAnHour = JobSpec.builder().runIn(Duration.ofHours(1)).build();
        return "Job "
                + jobs.addJob(HELLO, new Greeting(user.getName()), inAnHour).id() + " is added";
    }
}
