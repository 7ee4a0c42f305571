package dev.pgworker;

import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicReference;

import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.Logger;
import ch.qos.logback.classic.spi.ILoggingEvent;
import ch.qos.logback.classic.spi.ThrowableProxyUtil;
import ch.qos.logback.core.read.ListAppender;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.slf4j.LoggerFactory;
import org.slf4j.MDC;
import tools.jackson.databind.JsonNode;

import dev.pgworker.event.WorkerEvent.JobCompleted;
import dev.pgworker.event.WorkerEvent.JobFailed;
import dev.pgworker.job.Job;
import dev.pgworker.job.JobSpec;
import dev.pgworker.job.Task;
import dev.pgworker.testing.RecordingListener;
import dev.pgworker.testing.TestSchema;

import static org.assertj.core.api.Assertions.assertThat;

/** What the logging context says, and what a failure writes. */
@Tag("any-postgres")
class LoggingTest {

    private static final Task<String> WORK = Task.of("work", String.class);

    @RegisterExtension
    final TestSchema db = new TestSchema();

    private final RecordingListener events = new RecordingListener();
    private final ListAppender<ILoggingEvent> lines = new ListAppender<>() {
        @Override
        protected void append(ILoggingEvent event) {
            event.prepareForDeferredProcessing();
            synchronized (this) {
                super.append(event);
            }
        }
    };
    private final Logger logger = (Logger) LoggerFactory.getLogger("dev.pgworker");

    @BeforeEach
    void listen() {
        lines.start();
        logger.addAppender(lines);
    }

    @AfterEach
    void listenNoMore() {
        logger.detachAppender(lines);
    }

    @Test
    void namesTheJobWhileItsHandlerRuns() {
        AtomicReference<Map<String, String>> during = new AtomicReference<>();
        AtomicReference<Map<String, String>> next = new AtomicReference<>();
        Worker worker = db.start(db.worker()
                .settings(WorkerSettings.builder().concurrency(1).build())
                .listener(events)
                .task(WORK, (what, context) -> during.set(MDC.getCopyOfContextMap()))
                .task(Task.of("next", String.class), (what, context) -> next.set(MDC.getCopyOfContextMap())));
        Job job = db.scheduler()
                .addJob(WORK, "x", JobSpec.builder().queueName("q").build());
        events.await(JobCompleted.class);
        db.scheduler().addJob("next", "x");
        events.await(JobCompleted.class, 2);

        assertThat(during.get())
                .isEqualTo(Map.of(
                        "job.id", Long.toString(job.id()),
                        "job.task", "work",
                        "job.attempt", "1",
                        "job.queue", "q",
                        "job.worker", worker.id()));
        assertThat(next.get()).containsEntry("job.task", "next").doesNotContainKey("job.queue");
    }

    /** Names and messages come from whoever may add a job: what they contain begins no line, and has an end. */
    @Test
    void nobodyForgesALine() {
        String forged = "\r\nFORGED INFO root logged in\u001b[2J\u2028FORGED";
        Task<String> task = Task.of("work" + forged, String.class);
        AtomicReference<Map<String, String>> during = new AtomicReference<>();
        db.start(db.worker().listener(events).task(task, (what, context) -> {
            during.set(MDC.getCopyOfContextMap());
            IllegalStateException error = new IllegalStateException("x" + forged, new IllegalArgumentException(forged));
            error.addSuppressed(new IllegalStateException(forged + "y".repeat(100_000)));
            throw error;
        }));
        Job job = db.scheduler()
                .addJob(
                        task,
                        forged,
                        JobSpec.builder()
                                .queueName("q" + forged)
                                .jobKey("k" + forged)
                                .maxAttempts(1)
                                .build());
        events.await(JobFailed.class);

        String failure = linesAbout(job, 1).stream()
                .map(line -> line.getFormattedMessage() + "\n" + ThrowableProxyUtil.asString(line.getThrowableProxy()))
                .findFirst()
                .orElseThrow();
        assertThat(failure).contains("FORGED", "IllegalStateException: x").hasSizeLessThan(50_000);
        assertThat(failure.split("\\R")).noneMatch(line -> line.startsWith("FORGED"));
        assertThat(failure).doesNotContain("\u001b", "\u2028");
        assertThat(during.get().values()).allMatch(value -> value.chars().noneMatch(Character::isISOControl));
        assertThat(allLines()).noneMatch(line -> line.contains("\nFORGED"));
    }

    private List<String> allLines() {
        synchronized (lines) {
            return lines.list.stream().map(ILoggingEvent::getFormattedMessage).toList();
        }
    }

    /** Most messages of several lines are PostgreSQL's and Jackson's: their exceptions are logged as they are. */
    @Test
    void anExceptionWhoseLinesAreIndentedIsLoggedAsItIs() {
        String message = "ERROR: duplicate key\n  Detail: Key (id)=(1) already exists.";
        db.start(db.worker().listener(events).task(WORK, (what, context) -> {
            throw new IllegalStateException(message);
        }));
        Job job = db.scheduler().addJob(WORK, "x");
        events.await(JobFailed.class);

        assertThat(linesAbout(job, 1))
                .singleElement()
                .satisfies(line ->
                        assertThat(line.getThrowableProxy().getMessage()).isEqualTo(message));
    }

    @Test
    void aFailureIsOneLineWithOneStackTrace() {
        db.start(db.worker().listener(events).task(WORK, (what, context) -> {
            throw new IllegalStateException("on purpose");
        }));
        Job retried = db.scheduler().addJob(WORK, "x");
        events.await(JobFailed.class, failed -> !failed.permanently());
        Job last = db.scheduler()
                .addJob(WORK, "x", JobSpec.builder().maxAttempts(1).build());
        events.await(JobFailed.class, JobFailed::permanently);

        assertThat(linesAbout(retried, 1)).singleElement().satisfies(line -> {
            assertThat(line.getLevel()).isEqualTo(Level.WARN);
            assertThat(line.getThrowableProxy().getMessage()).isEqualTo("on purpose");
            assertThat(line.getMDCPropertyMap())
                    .containsEntry("job.task", "work")
                    .containsKey("job.worker");
        });
        assertThat(linesAbout(last, 1))
                .singleElement()
                .satisfies(line -> assertThat(line.getLevel()).isEqualTo(Level.ERROR));
    }

    @Test
    void aFailureCarriesTheTraceOfItsRun() {
        db.start(db.worker()
                .listener(events)
                .jobInterceptor((context, execution) -> {
                    // As Micrometer Tracing does while a span is the current one.
                    MDC.put("traceId", "t" + context.job().id());
                    MDC.put("spanId", "s");
                    try {
                        return execution.proceed();
                    } finally {
                        MDC.remove("traceId");
                        MDC.remove("spanId");
                    }
                })
                .task(WORK, (what, context) -> {
                    throw new IllegalStateException("on purpose");
                }));
        Job job = db.scheduler().addJob(WORK, "x");
        events.await(JobFailed.class);

        assertThat(linesAbout(job, 1))
                .singleElement()
                .satisfies(line -> assertThat(line.getMDCPropertyMap())
                        .containsEntry("traceId", "t" + job.id())
                        .containsEntry("spanId", "s"));
    }

    @Test
    void aFailureCarriesTheTraceOfItsPayloadIfItsRunHadNone() {
        Task<JsonNode> traced = Task.of("traced", JsonNode.class);
        db.start(db.worker().listener(events).task(traced, (what, context) -> {
            if (what.has("fail")) {
                throw new IllegalStateException("on purpose");
            }
        }));
        Job job = db.scheduler()
                .addJob(
                        "traced",
                        Map.of(
                                "fail",
                                true,
                                "_trace",
                                Map.of(
                                        "flags",
                                        1,
                                        "trace_id",
                                        "4bf92f3577b34da6a3ce929d0e0e4736",
                                        "span_id",
                                        "00f067aa0ba902b7")));
        events.await(JobFailed.class);
        Job without = db.scheduler().addJob("traced", Map.of("fail", "_trace"));
        events.await(JobFailed.class, 2);

        assertThat(linesAbout(job, 1))
                .singleElement()
                .satisfies(line -> assertThat(line.getMDCPropertyMap())
                        .containsEntry("traceId", "4bf92f3577b34da6a3ce929d0e0e4736"));
        assertThat(linesAbout(without, 1))
                .singleElement()
                .satisfies(line -> assertThat(line.getMDCPropertyMap()).doesNotContainKey("traceId"));
    }

    @Test
    void aLongMessageIsCutAndItsLengthTold() {
        db.start(db.worker().listener(events).task(WORK, (what, context) -> {
            throw new IllegalStateException("x".repeat(50_000_000), new IllegalStateException("y".repeat(50_000_000)));
        }));
        Job job = db.scheduler().addJob(WORK, "x");
        events.await(JobFailed.class);

        assertThat(linesAbout(job, 1)).singleElement().satisfies(line -> {
            String logged = line.getFormattedMessage() + ThrowableProxyUtil.asString(line.getThrowableProxy());
            assertThat(logged)
                    .hasSizeLessThan(12_000)
                    .contains("(50000033 characters)", "yyy", "at dev.pgworker.LoggingTest");
        });
    }

    private java.util.List<ILoggingEvent> linesAbout(Job job, int attempt) {
        synchronized (lines) {
            return lines.list.stream()
                    .filter(line -> line.getLevel().isGreaterOrEqual(Level.INFO))
                    .filter(line ->
                            line.getMDCPropertyMap().getOrDefault("job.id", "").equals(Long.toString(job.id()))
                                    || line.getFormattedMessage().contains("job " + job.id() + " "))
                    .filter(line -> line.getFormattedMessage().contains("attempt " + attempt + "/"))
                    .toList();
        }
    }
}
