package dev.pgworker.autoconfigure.observation;

import java.math.BigDecimal;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;

import ch.qos.logback.classic.Logger;
import ch.qos.logback.classic.spi.ILoggingEvent;
import ch.qos.logback.core.read.ListAppender;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.observation.Observation;
import io.micrometer.observation.ObservationRegistry;
import io.micrometer.tracing.Tracer;
import io.opentelemetry.api.trace.Span;
import io.opentelemetry.api.trace.SpanKind;
import io.opentelemetry.api.trace.StatusCode;
import io.opentelemetry.sdk.testing.exporter.InMemorySpanExporter;
import io.opentelemetry.sdk.trace.SpanProcessor;
import io.opentelemetry.sdk.trace.data.SpanData;
import io.opentelemetry.sdk.trace.export.SimpleSpanProcessor;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.slf4j.LoggerFactory;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.micrometer.metrics.autoconfigure.CompositeMeterRegistryAutoConfiguration;
import org.springframework.boot.micrometer.metrics.autoconfigure.MetricsAutoConfiguration;
import org.springframework.boot.micrometer.metrics.autoconfigure.export.simple.SimpleMetricsExportAutoConfiguration;
import org.springframework.boot.micrometer.observation.autoconfigure.ObservationAutoConfiguration;
import org.springframework.boot.micrometer.tracing.autoconfigure.MicrometerTracingAutoConfiguration;
import org.springframework.boot.micrometer.tracing.autoconfigure.NoopTracerAutoConfiguration;
import org.springframework.boot.micrometer.tracing.opentelemetry.autoconfigure.OpenTelemetryEventPublisherBeansApplicationListener;
import org.springframework.boot.micrometer.tracing.opentelemetry.autoconfigure.OpenTelemetryTracingAutoConfiguration;
import org.springframework.boot.opentelemetry.autoconfigure.OpenTelemetrySdkAutoConfiguration;
import org.springframework.boot.test.context.FilteredClassLoader;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import tools.jackson.databind.JsonNode;

import dev.pgworker.Worker;
import dev.pgworker.autoconfigure.testing.Greetings;
import dev.pgworker.autoconfigure.testing.RecordedEvents;
import dev.pgworker.autoconfigure.testing.TestDatabase;
import dev.pgworker.event.WorkerEvent.JobCompleted;
import dev.pgworker.event.WorkerEvent.JobFailed;
import dev.pgworker.job.JobScheduler;
import dev.pgworker.job.JobSpec;
import dev.pgworker.job.ScheduleInterceptor;
import dev.pgworker.job.Task;
import dev.pgworker.task.BatchResult;
import dev.pgworker.task.TaskRegistration;

import static org.assertj.core.api.Assertions.assertThat;

/** Traces with the OpenTelemetry bridge, from the caller into the handler. */
class WorkerObservationTest {

    private static final Task<JsonNode> WORK = Task.of("work", JsonNode.class);
    private static final Task<List<JsonNode>> BATCH =
            Task.of("batch", new org.springframework.core.ParameterizedTypeReference<List<JsonNode>>() {});

    @RegisterExtension
    final TestDatabase db = new TestDatabase().installed();

    private final RecordedEvents events = new RecordedEvents();
    private final InMemorySpanExporter spans = InMemorySpanExporter.create();
    private final List<String> seen = new CopyOnWriteArrayList<>();

    private ApplicationContextRunner traced() {
        return observed()
                .withConfiguration(AutoConfigurations.of(
                        OpenTelemetrySdkAutoConfiguration.class, OpenTelemetryTracingAutoConfiguration.class))
                .withPropertyValues("management.tracing.sampling.probability=1.0")
                .withBean(SpanProcessor.class, () -> SimpleSpanProcessor.create(spans));
    }

    private ApplicationContextRunner observed() {
        return db.runner()
                .withConfiguration(AutoConfigurations.of(
                        WorkerObservationAutoConfiguration.class,
                        ObservationAutoConfiguration.class,
                        MicrometerTracingAutoConfiguration.class,
                        NoopTracerAutoConfiguration.class))
                .withBean(RecordedEvents.class, () -> events)
                .withBean(
                        "work",
                        TaskRegistration.class,
                        () -> TaskRegistration.of(WORK, (payload, context) -> {
                            seen.add(payload + " " + context.job().payload() + " "
                                    + Span.current().getSpanContext().getTraceId());
                            if (payload.path("fail").asBoolean(false)) {
                                throw new IllegalStateException("on purpose");
                            }
                        }))
                .withBean(
                        "batch",
                        TaskRegistration.class,
                        () -> TaskRegistration.ofBatch(BATCH, (items, context) -> {
                            seen.add(items.toString());
                            return BatchResult.forEach(items, item -> {
                                if (item.path("fail").asBoolean(false) && context.attempt() == 1) {
                                    throw new IllegalStateException("on purpose");
                                }
                            });
                        }));
    }

    private SpanData span(String name) {
        return spans(name, 1).get(0);
    }

    private List<SpanData> spans(String name, int count) {
        return Awaitility.await()
                .until(
                        () -> spans.getFinishedSpanItems().stream()
                                .filter(span -> span.getName().equals(name))
                                .toList(),
                        found -> found.size() >= count);
    }

    private String payload() {
        return db.sql("select payload::text from {schema}._private_jobs")
                .query(String.class)
                .single();
    }

    @Test
    void theTraceGoesFromTheCallerIntoTheHandler() {
        traced().withPropertyValues("pgworker.observation.propagate=true").run(context -> {
            JobScheduler jobs = context.getBean(JobScheduler.class);
            Observation.createNotStarted("request", context.getBean(ObservationRegistry.class))
                    .observe(() -> jobs.addJob("work", Map.of("price", new BigDecimal("1.10"))));
            events.await(JobCompleted.class);

            SpanData request = span("request");
            SpanData add = span("publish work");
            SpanData run = span("process work");
            assertThat(add.getParentSpanId()).isEqualTo(request.getSpanId());
            assertThat(run.getParentSpanId()).isEqualTo(add.getSpanId());
            assertThat(run.getTraceId()).isEqualTo(request.getTraceId());
            assertThat(add.getKind()).isEqualTo(SpanKind.PRODUCER);
            assertThat(run.getKind()).isEqualTo(SpanKind.CONSUMER);
            assertThat(run.getAttributes().asMap().toString())
                    .contains("messaging.message.id", "job.attempt", "messaging.destination.name");
            assertThat(seen).containsExactly("{\"price\":1.1} {\"price\":1.10} " + request.getTraceId());
        });
    }

    @Test
    void theLineThatTellsOfAFailureCarriesTheTrace() {
        ListAppender<ILoggingEvent> lines = new ListAppender<>() {
            @Override
            protected void append(ILoggingEvent event) {
                event.prepareForDeferredProcessing();
                super.append(event);
            }
        };
        lines.start();
        Logger logger = (Logger) LoggerFactory.getLogger("dev.pgworker.internal.engine.complete");
        logger.addAppender(lines);
        try {
            // As Spring Boot does when it runs an application.
            traced().withInitializer(context ->
                            context.addApplicationListener(new OpenTelemetryEventPublisherBeansApplicationListener()))
                    .run(context -> {
                        context.getBean(JobScheduler.class).addJob("work", Map.of("fail", true));
                        events.await(JobFailed.class);

                        SpanData run = span("process work");
                        assertThat(List.copyOf(lines.list))
                                .filteredOn(line -> line.getFormattedMessage().contains("failed and will be retried"))
                                .singleElement()
                                .satisfies(line -> assertThat(line.getMDCPropertyMap())
                                        .containsEntry("traceId", run.getTraceId())
                                        .containsEntry("spanId", run.getSpanId()));
                    });
        } finally {
            logger.detachAppender(lines);
        }
    }

    @Test
    void thePayloadCarriesWhatTheRustWorkerReads() {
        traced().withPropertyValues("pgworker.observation.propagate=true", "pgworker.enabled=false")
                .run(context -> {
                    context.getBean(JobScheduler.class).addJob("work", Map.of("n", 1));

                    SpanData add = span("publish work");
                    assertThat(payload())
                            .isEqualTo("{\"n\":1,\"_trace\":{\"flags\":1,\"trace_id\":\"" + add.getTraceId()
                                    + "\",\"span_id\":\"" + add.getSpanId() + "\"}}");
                });
    }

    @Test
    void itemsOfABatchCarryTheTraceThroughARetry() {
        traced().withPropertyValues("pgworker.observation.propagate=true").run(context -> {
            db.sql("select 1").query().singleValue();
            context.getBean(JobScheduler.class)
                    .addBatchJob("batch", List.of(Map.of("n", 1), Map.of("n", 2, "fail", true)), JobSpec.DEFAULT);
            events.await(JobFailed.class);
            db.sql("update {schema}._private_jobs set run_at = now()").update();
            events.await(JobCompleted.class);

            SpanData add = span("publish batch");
            List<SpanData> runs = spans("process batch", 2);
            assertThat(runs).extracting(SpanData::getParentSpanId).containsOnly(add.getSpanId());
            assertThat(runs.get(0).getStatus().getStatusCode()).isEqualTo(StatusCode.ERROR);
            assertThat(runs.get(1).getStatus().getStatusCode()).isNotEqualTo(StatusCode.ERROR);
            assertThat(seen).hasSize(2).noneMatch(items -> items.contains("_trace"));
        });
    }

    @Test
    void withoutExportsPayloadsAreLeftAsTheyAre() {
        traced().withPropertyValues("pgworker.observation.propagate=true", "management.tracing.export.enabled=false")
                .run(context -> {
                    JobScheduler jobs = context.getBean(JobScheduler.class);
                    Observation.createNotStarted("request", context.getBean(ObservationRegistry.class))
                            .observe(() -> jobs.addJob("work", Map.of("n", 1)));
                    db.sql("select {schema}.add_job('work', '{\"_trace\":{\"flags\":1,\"trace_id\":"
                                    + "\"4bf92f3577b34da6a3ce929d0e0e4736\",\"span_id\":\"00f067aa0ba902b7\"}}')")
                            .query()
                            .singleRow();
                    Awaitility.await().until(() -> seen.size() == 2);

                    assertThat(seen).anyMatch(run -> run.startsWith("{\"n\":1} {\"n\":1}"));
                    assertThat(seen).anyMatch(run -> run.startsWith("{\"_trace\":{\"flags\":1"));
                });
    }

    @Test
    void otherInterceptorsSeePayloadsWithoutTheTrace() {
        List<Object> payloads = new CopyOnWriteArrayList<>();
        traced().withPropertyValues("pgworker.observation.propagate=true")
                .withBean(ScheduleInterceptor.class, () -> request -> {
                    payloads.add(request.payload());
                    return request;
                })
                .run(context -> {
                    context.getBean(JobScheduler.class).addJob("work", Map.of("n", 1));
                    events.await(JobCompleted.class);
                    assertThat(payloads).containsExactly(Map.of("n", 1));
                    assertThat(seen.get(0)).startsWith("{\"n\":1} {\"n\":1} ");
                });
    }

    @Test
    void withoutPropagationEachRunHasATraceOfItsOwn() {
        traced().run(context -> {
            context.getBean(JobScheduler.class)
                    .addJob(
                            "work",
                            Map.of("fail", true),
                            JobSpec.builder().maxAttempts(1).build());
            events.await(JobFailed.class);

            assertThat(payload()).isEqualTo("{\"fail\":true}");
            assertThat(span("process work").getTraceId())
                    .isNotEqualTo(span("publish work").getTraceId());
            assertThat(span("process work").getStatus().getStatusCode()).isEqualTo(StatusCode.ERROR);
        });
    }

    @Test
    void observationsAreTimedWhereThereIsATracer() {
        traced().withConfiguration(AutoConfigurations.of(
                        MetricsAutoConfiguration.class,
                        CompositeMeterRegistryAutoConfiguration.class,
                        SimpleMetricsExportAutoConfiguration.class))
                .run(context -> {
                    context.getBean(JobScheduler.class).addJob("work", Map.of());
                    events.await(JobCompleted.class);

                    MeterRegistry meters = context.getBean(MeterRegistry.class);
                    assertThat(meters.get("pgworker.job.publish").timer().count())
                            .isEqualTo(1);
                    assertThat(meters.get("pgworker.job.process")
                                    .tag("messaging.destination.name", "work")
                                    .timer()
                                    .count())
                            .isEqualTo(1);
                    assertThat(meters.get("pgworker.job.process.active")
                                    .longTaskTimer()
                                    .activeTasks())
                            .isZero();
                });
    }

    @Test
    void nothingIsObservedUnlessWanted() {
        traced().withPropertyValues("pgworker.observation.enabled=false").run(context -> {
            assertThat(context).doesNotHaveBean("workerRunObservations");
            context.getBean(JobScheduler.class).addJob("work", Map.of());
            events.await(JobCompleted.class);
            assertThat(spans.getFinishedSpanItems()).isEmpty();
        });
        observed().run(context -> {
            assertThat(context).getBean(Tracer.class).isSameAs(Tracer.NOOP);
            context.getBean(JobScheduler.class).addJob("work", Map.of());
            events.await(JobCompleted.class);
        });
        db.runner()
                .withBean(Greetings.class)
                .withConfiguration(AutoConfigurations.of(WorkerObservationAutoConfiguration.class))
                .withClassLoader(new FilteredClassLoader("io.micrometer.tracing"))
                .run(context -> assertThat(context).hasNotFailed().hasSingleBean(Worker.class));
    }
}
