package dev.pgworker.internal.failure;

import java.io.IOException;
import java.util.Arrays;
import java.util.stream.IntStream;

import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

import static org.assertj.core.api.Assertions.assertThat;

@Tag("any-postgres")
class ErrorTextTest {

    private static StackTraceElement frame(String method) {
        int dot = method.lastIndexOf('.');
        return new StackTraceElement(method.substring(0, dot), method.substring(dot + 1), "X.java", 1);
    }

    private static <T extends Throwable> T at(T error, String... methods) {
        error.setStackTrace(Arrays.stream(methods).map(ErrorTextTest::frame).toArray(StackTraceElement[]::new));
        return error;
    }

    @Test
    void theApplicationsFramesOfTheInnermostCauseComeFirst() {
        Throwable cause = at(
                new IOException("Connection refused"),
                "java.net.A.a",
                "java.net.B.b",
                "java.net.C.c",
                "java.net.D.d",
                "java.net.E.e",
                "app.Client.connect",
                "app.Mailer$$SpringCGLIB$$0.open",
                "app.Mailer.send",
                "jdk.internal.reflect.DirectMethodHandleAccessor.invoke",
                "java.lang.reflect.Method.invoke",
                "org.springframework.aop.support.AopUtils.invokeJoinpointUsingReflection",
                "dev.pgworker.task.MethodInvoker.invoke",
                "dev.pgworker.internal.engine.run.JobPipeline.run",
                "java.util.concurrent.ThreadPoolExecutor.runWorker",
                "java.lang.Thread.run");
        Throwable error = at(
                new IllegalStateException("mail 7 not sent", cause),
                "app.Mailer.fail",
                "app.Mailer.send",
                "java.lang.Thread.run");

        assertThat(ErrorText.of(error)).isEqualTo("""
                java.lang.IllegalStateException: mail 7 not sent
                Caused by: java.io.IOException: Connection refused
                \tat java.net.A.a(X.java:1)
                \tat java.net.B.b(X.java:1)
                \tat java.net.C.c(X.java:1)
                \t... 2 more
                \tat app.Client.connect(X.java:1)
                \tat app.Mailer.send(X.java:1)
                Wrapped in java.lang.IllegalStateException
                \tat app.Mailer.fail(X.java:1)
                \tat app.Mailer.send(X.java:1)""");
    }

    @Test
    void whatAWrapperSharesWithItsCauseIsShownOnce() {
        Throwable cause = at(new IOException("a"), "app.Inner.read", "app.Outer.work", "app.Main.run");
        Throwable error = at(new IllegalStateException("b", cause), "app.Outer.work", "app.Main.run");

        assertThat(ErrorText.of(error)).doesNotContain("Wrapped in").containsOnlyOnce("app.Outer.work");
    }

    @Test
    void aMistakeOfTheWorkersOwnIsShown() {
        Throwable error = at(
                new NullPointerException("x"),
                IntStream.range(0, 20)
                        .mapToObj(i -> "dev.pgworker.internal.X.m" + i)
                        .toArray(String[]::new));

        assertThat(ErrorText.of(error)).contains("X.m0", "X.m4").doesNotContain("X.m5");
    }

    @Test
    void longTextsLeaveRoomForTheOthers() {
        Throwable root = at(new IOException("r".repeat(50_000_000)), "app.Root.read");
        Throwable error = at(new IllegalStateException("x".repeat(50_000_000), root), "app.Top.work");
        error.addSuppressed(new IOException("s".repeat(50_000_000)));

        String text = ErrorText.of(error);

        assertThat(text)
                .hasSizeLessThanOrEqualTo(ErrorText.LIMIT)
                .contains(
                        "xxx ... (50000033 characters)",
                        "Caused by: java.io.IOException: rrr",
                        "Suppressed: java.io.IOException: sss",
                        "rrr ... (50000021 characters)",
                        "at app.Root.read",
                        "at app.Top.work");
        assertThat(ErrorText.loggable(error)).isNotSameAs(error).hasMessage(text);
        assertThat(ErrorText.headline(error)).hasSizeLessThan(4_100).endsWith("(50000033 characters)");
    }

    @Test
    void aCircleOfCausesIsShownOnce() {
        Exception a = at(new Exception("a"), "app.A.a");
        Exception b = at(new Exception("b", a), "app.B.b");
        a.initCause(b);

        assertThat(ErrorText.of(a)).isEqualTo("""
                java.lang.Exception: a
                Caused by: java.lang.Exception: b
                \tat app.B.b(X.java:1)
                Wrapped in java.lang.Exception
                \tat app.A.a(X.java:1)""");
        assertThat(ErrorText.loggable(a)).isSameAs(a);
    }

    @Test
    void ofTenThousandCausesTheFirstAndTheInnermostAreShown() {
        Exception current = new Exception("root");
        for (int i = 9_000; i > 0; i--) {
            current = new Exception("level " + i, current);
        }

        assertThat(ErrorText.of(current))
                .contains("level 1\n", "level 5\n", "Caused by: java.lang.Exception: root\n")
                .doesNotContain("level 6\n");
        assertThat(ErrorText.loggable(current)).isNotSameAs(current);
    }

    @Test
    void aRecursionIsCut() {
        Throwable error = at(
                new StackOverflowError(),
                IntStream.range(0, 1024).mapToObj(i -> "app.Deep.down").toArray(String[]::new));

        assertThat(ErrorText.of(error)).endsWith("\n\t... 984 more");
    }

    /** Its methods fail in every way. */
    private static final class Hostile extends RuntimeException {

        private static final long serialVersionUID = 1L;

        @Override
        @SuppressWarnings("InfiniteRecursion") // on purpose
        public @Nullable String getMessage() {
            return getMessage();
        }

        @Override
        @SuppressWarnings({"NullAway", "ReturnsNullArray"}) // on purpose
        public StackTraceElement[] getStackTrace() {
            return null;
        }

        @Override
        public synchronized Throwable getCause() {
            throw new IllegalStateException("on purpose");
        }
    }

    @Test
    void aHostileCauseCostsItsOwnLineOnly() {
        Throwable error = at(new IllegalStateException("top", new Hostile()), "app.Top.work");

        assertThat(ErrorText.of(error))
                .startsWith("java.lang.IllegalStateException: top\nCaused by: " + Hostile.class.getName()
                        + " (whose message cannot be read: java.lang.StackOverflowError)")
                .contains("at app.Top.work");
        assertThat(ErrorText.loggable(error)).isNotSameAs(error);
    }

    @Test
    void whatPostgresCannotHoldIsReplaced() {
        assertThat(ErrorText.of(at(new Exception("a\0b\uD800c"), "app.A.a")))
                .startsWith("java.lang.Exception: a\uFFFDb\uFFFDc\n");
    }
}
