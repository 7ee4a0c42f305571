package dev.pgworker.test;

import java.io.IOException;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalDate;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

import org.junit.jupiter.api.Test;

import dev.pgworker.job.JobProgress;
import dev.pgworker.job.JobSpec;
import dev.pgworker.job.Task;
import dev.pgworker.task.BatchResult;
import dev.pgworker.task.JobContext;
import dev.pgworker.task.JobControlException;
import dev.pgworker.task.JobHandler;
import dev.pgworker.task.PayloadException;
import dev.pgworker.task.ScheduledRun;
import dev.pgworker.task.TaskRegistration;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

class TestJobContextTest {

    private static final Task<Order> SHIP = Task.of("ship", Order.class);

    private final Handlers handlers = new Handlers();

    record Order(int id, LocalDate day) {}

    static class Handlers {

        final List<Object> seen = new ArrayList<>();

        @JobHandler("ship")
        void ship(Order order, JobContext context) throws IOException {
            seen.add(order);
            if (context.isLastAttempt()) {
                throw JobControlException.failPermanently("given up");
            } else if (context.attempt() > 1) {
                throw new IOException("attempt " + context.attempt());
            }
            context.addJob(
                    "mail",
                    Map.of("order", order.id()),
                    JobSpec.builder().runIn(Duration.ofMinutes(5)).build());
        }

        @JobHandler("batch")
        BatchResult batch(List<Integer> items) {
            return BatchResult.forEach(items, item -> seen.add(100 / item));
        }

        @JobHandler("total")
        Map<String, Integer> total(List<Integer> items) {
            return Map.of("total", items.stream().mapToInt(Integer::intValue).sum());
        }

        @JobHandler("fatal")
        void fatal() {
            throw new AssertionError("fatal");
        }
    }

    @Test
    void tellsTheExecutionThatThePayloadIsFor() {
        Map<String, Object> cron = Map.of("ts", "2026-03-01T12:01:00.000Z", "backfilled", true, "schedule", "daily");

        assertThat(TestJobContext.of("report", Map.of("_cron", cron)).scheduledRun())
                .contains(new ScheduledRun("daily", Instant.parse("2026-03-01T12:01:00Z"), true));
        assertThat(TestJobContext.of("report", null).scheduledRun()).isEmpty();
    }

    @Test
    void aHandlerCanBeCalledWithIt() throws Exception {
        TestJobContext context = TestJobContext.of(SHIP, new Order(42, LocalDate.EPOCH));

        handlers.ship(new Order(42, LocalDate.EPOCH), context);

        assertThat(context.attempt()).isEqualTo(1);
        assertThat(context.addedJobs())
                .hasEnqueued("mail")
                .withPayload(Map.of("order", 42))
                .dueIn(Duration.ofMinutes(5));
        assertThat(context.toString()).matches("job \\d+ \\(ship, attempt 1/25\\)");
    }

    @Test
    void keepsWhatTheHandlerReportsAsAWorkerWouldRecordIt() {
        TestJobContext context = TestJobContext.of(SHIP, new Order(42, LocalDate.EPOCH));

        context.progress(1, 3, "packed\0");
        context.progress(3, 3, null);

        assertThat(context.progress()).extracting(JobProgress::done).containsExactly(1L, 3L);
        assertThat(context.progress()).extracting(JobProgress::text).containsExactly("packed\uFFFD", null);
        assertThatThrownBy(() -> context.progress(0, -1, null))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage("total must not be negative, but is -1");
    }

    @Test
    void runsAHandlerWithThePayloadReadFromJson() throws Exception {
        assertThat(TestJobContext.of(SHIP, new Order(42, LocalDate.EPOCH)).run(handlers))
                .isNull();
        assertThat(TestJobContext.of("ship", Map.of("id", 43)).run(handlers)).isNull();

        assertThat(handlers.seen).containsExactly(new Order(42, LocalDate.EPOCH), new Order(43, null));
        assertThatThrownBy(() -> TestJobContext.of("ship", Map.of("id", "x")).run(handlers))
                .isInstanceOf(PayloadException.class);
    }

    @Test
    void tellsWhatTheHandlerReturned() throws Exception {
        TestJobContext context = TestJobContext.of("total", List.of(2, 3));
        assertThat(context.result()).isNull();

        assertThat(context.run(handlers)).isNull();

        assertThat(context.result()).isEqualTo("{\"total\":5}");
        context.result(null);
        assertThat(context.result()).isNull();
        assertThatThrownBy(() -> context.result("\uD800"))
                .isInstanceOf(PayloadException.class)
                .hasMessageContaining("total");
    }

    @Test
    void whatTheHandlerThrowsReachesTheTest() {
        TestJobContext second = TestJobContext.builder(SHIP, new Order(1, null))
                .id(7)
                .attempt(2)
                .spec(JobSpec.builder().queueName("q").maxAttempts(3).build())
                .build();
        TestJobContext last =
                TestJobContext.builder(SHIP, new Order(1, null)).lastAttempt().build();

        assertThatThrownBy(() -> second.run(handlers))
                .isInstanceOf(IOException.class)
                .hasMessage("attempt 2");
        assertThatThrownBy(() -> last.run(handlers)).isInstanceOf(JobControlException.class);
        assertThatThrownBy(() -> TestJobContext.of("fatal", null).run(handlers)).isInstanceOf(AssertionError.class);
        assertThat(second.job().queueName()).isEqualTo("q");
        assertThat(second.fencingToken()).startsWith("7-2-");
        assertThat(last.attempt()).isEqualTo(25);
    }

    @Test
    void tellsHowTheItemsOfABatchWent() throws Exception {
        BatchResult result = TestJobContext.of("batch", List.of(1, 0, 2)).run(handlers);

        assertThat(result.errors()).hasSize(3).element(1).isInstanceOf(ArithmeticException.class);
        assertThatThrownBy(() -> TestJobContext.of("batch", List.of()).run(handlers))
                .isInstanceOf(PayloadException.class);
    }

    @Test
    void runsAHandlerThatIsAFunction() throws Exception {
        TaskRegistration function = TaskRegistration.of(SHIP, (order, context) -> handlers.seen.add(order.id()));

        TestJobContext.of(SHIP, new Order(42, null)).run(function);

        assertThat(handlers.seen).containsExactly(42);
        assertThatThrownBy(() -> TestJobContext.of("other", null).run(function))
                .isInstanceOf(IllegalArgumentException.class);
    }

    @Test
    void whatCannotBeIsRefused() {
        assertThatThrownBy(() -> TestJobContext.of("helo", null).run(handlers))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContainingAll("\"helo\"", "[batch, fatal, ship, total]");
        assertThatThrownBy(
                        () -> TestJobContext.builder("ship", null).attempt(26).build())
                .isInstanceOf(IllegalArgumentException.class);
        assertThatThrownBy(() -> TestJobContext.builder("ship", null).attempt(0).build())
                .isInstanceOf(IllegalArgumentException.class);
        assertThatThrownBy(() -> TestJobContext.builder("ship", null).id(0))
                .isInstanceOf(IllegalArgumentException.class);
        TestJobContext ended = TestJobContext.builder("ship", null)
                .interrupted(true)
                .owned(false)
                .workerId("w")
                .build();
        assertThat(ended.isInterrupted()).isTrue();
        assertThat(ended.isOwned()).isFalse();
        assertThat(ended.workerId()).isEqualTo("w");
    }
}
