package dev.pgworker.samples.apiandworker;

import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

import org.junit.jupiter.api.Test;
import org.springframework.boot.SpringApplication;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.support.GenericApplicationContext;
import org.springframework.web.context.WebApplicationContext;

import dev.pgworker.Worker;
import dev.pgworker.event.WorkerEvent.JobCompleted;
import dev.pgworker.event.WorkerEventListener;
import dev.pgworker.job.Job;
import dev.pgworker.job.JobQueries;
import dev.pgworker.job.JobQuery;
import dev.pgworker.testsupport.TestPostgres;

import static org.assertj.core.api.Assertions.assertThat;

class ApiAndWorkerTest {

    private static final String DATABASE = TestPostgres.newDatabase("api_and_worker");

    private final BlockingQueue<Job> completed = new LinkedBlockingQueue<>();

    @Test
    void theApiAddsJobsAndOnlyTheWorkerRunsThem() throws Exception {
        try (ConfigurableApplicationContext api = start("api")) {
            assertThat(api.getBeansOfType(Worker.class)).isEmpty();
            assertThat(api.getBeansOfType(ExportHandlers.class)).isEmpty();

            HttpResponse<String> requested = send(api, "POST", "/exports");
            assertThat(requested.statusCode()).isEqualTo(202);
            String export = requested.headers().firstValue("Location").orElseThrow();

            JobQueries queries = api.getBean(JobQueries.class);
            Job waiting = queries.list(JobQuery.ALL).jobs().get(0);
            assertThat(queries.activeWorkers()).isEmpty();
            assertThat(send(api, "GET", export).statusCode()).isEqualTo(404);

            try (ConfigurableApplicationContext worker = start("worker")) {
                assertThat(worker).isNotInstanceOf(WebApplicationContext.class);

                Job done = completed.poll(120, TimeUnit.SECONDS);
                assertThat(done).as("a completed job").isNotNull();
                assertThat(done.id()).isEqualTo(waiting.id());
            }
            assertThat(send(api, "GET", export).body()).startsWith("written by");
        }
    }

    /** Starts the application as its main method does, and records the jobs that it completes. */
    private ConfigurableApplicationContext start(String profile) {
        SpringApplication application = new SpringApplication(ApiAndWorkerApplication.class);
        application.setAdditionalProfiles(profile);
        application.addInitializers(context -> ((GenericApplicationContext) context)
                .registerBean("recorder", WorkerEventListener.class, () -> event -> {
                    if (event instanceof JobCompleted done) {
                        completed.add(done.job());
                    }
                }));
        return application.run("--server.port=0", "--spring.datasource.url=" + DATABASE);
    }

    private static HttpResponse<String> send(ConfigurableApplicationContext api, String method, String path)
            throws IOException, InterruptedException {
        String port = api.getEnvironment().getRequiredProperty("local.server.port");
        HttpRequest request = HttpRequest.newBuilder(URI.create("http://localhost:" + port + path))
                .method(method, BodyPublishers.noBody())
                .build();
        return HttpClient.newHttpClient().send(request, BodyHandlers.ofString());
    }
}
