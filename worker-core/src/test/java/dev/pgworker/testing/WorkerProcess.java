package dev.pgworker.testing;

import java.io.File;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

import com.zaxxer.hikari.HikariDataSource;
import org.springframework.jdbc.core.simple.JdbcClient;

import dev.pgworker.Worker;
import dev.pgworker.WorkerSettings;
import dev.pgworker.job.Task;
import dev.pgworker.recovery.RecoverySettings;
import dev.pgworker.schema.WorkerSchema;
import dev.pgworker.testsupport.TestPostgres;

/**
 * A worker in a JVM of its own, to be killed or paused. It serves the task {@code sleep}, whose payload is how many
 * milliseconds to sleep, and notes in the table {@code ledger} when it starts, ends or interrupts a job. A negative payload
 * lets it sleep in spite of interrupts, and end without a note.
 */
public final class WorkerProcess implements AutoCloseable {

    public static final Task<Integer> SLEEP = Task.of("sleep", Integer.class);

    /** What takes no time, so that jobs are claimed ahead afterwards. */
    public static final Task<Integer> NOTHING = Task.of("nothing", Integer.class);

    private final Process process;

    private WorkerProcess(Process process) {
        this.process = process;
    }

    /** Starts a worker on the server of the tests; its output goes into a file of the build directory. */
    public static WorkerProcess start(WorkerSchema schema, String name) throws IOException {
        return start(WorkerProcess.class, schema.name() + "-" + name, TestPostgres.jdbcUrl(), schema.name());
    }

    /** Starts the main class in a JVM of its own; its output goes into a file of the build directory. */
    public static WorkerProcess start(Class<?> main, String name, String... arguments) throws IOException {
        return start(main, name, Map.of(), arguments);
    }

    /** As {@link #start(Class, String, String...)}, with these environment variables besides those of this process. */
    public static WorkerProcess start(Class<?> main, String name, Map<String, String> environment, String... arguments)
            throws IOException {
        List<String> command = new ArrayList<>(List.of(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-XX:TieredStopAtLevel=1",
                "-XX:+UseSerialGC",
                "-Xmx192m",
                "-cp",
                System.getProperty("java.class.path"),
                main.getName()));
        command.addAll(List.of(arguments));
        return start(command, name, environment);
    }

    /** Starts a program; its output goes into a file of the build directory. */
    public static WorkerProcess start(List<String> command, String name) throws IOException {
        return start(command, name, Map.of());
    }

    private static WorkerProcess start(List<String> command, String name, Map<String, String> environment)
            throws IOException {
        File output = Path.of("target", "worker-process-" + name + ".log").toFile();
        ProcessBuilder builder =
                new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(output);
        builder.environment().putAll(environment);
        return new WorkerProcess(builder.start());
    }

    /** Creates the table in which workers note what they do. */
    public static void createLedger(TestSchema db) {
        db.sql("create table {schema}.ledger (id int generated always as identity, job bigint, worker text, what text)")
                .update();
    }

    /** The settings of such a worker, and of those that are to recover its jobs: one that stands still for seconds is alive. */
    public static RecoverySettings recovery() {
        return RecoverySettings.builder()
                .enabled(true)
                .heartbeatInterval(Duration.ofMillis(250))
                .sweepInterval(Duration.ofMillis(500))
                .sweepThreshold(Duration.ofSeconds(10))
                .recoveryDelay(Duration.ofMillis(500))
                .build();
    }

    /** Builds a worker that works as those in other JVMs do. */
    public static Worker.Builder worker(HikariDataSource pool, WorkerSchema schema) {
        JdbcClient sql = JdbcClient.create(pool);
        String note = schema.in("insert into {schema}.ledger (job, worker, what) values (?, ?, ?)");
        return Worker.builder(pool)
                .schema(schema)
                .settings(WorkerSettings.builder()
                        .concurrency(1)
                        .localQueueTtl(Duration.ofMinutes(1))
                        .recovery(recovery())
                        .build())
                .task(NOTHING, (any, context) -> {})
                .task(SLEEP, (millis, context) -> {
                    long job = context.job().id();
                    sql.sql(note).params(job, context.workerId(), "start").update();
                    if (millis < 0) {
                        sleepThroughInterrupts(-millis);
                        return;
                    }
                    try {
                        TimeUnit.MILLISECONDS.sleep(millis);
                    } catch (InterruptedException e) {
                        Thread.interrupted();
                        sql.sql(note)
                                .params(job, context.workerId(), "interrupted")
                                .update();
                        throw e;
                    }
                    sql.sql(note).params(job, context.workerId(), "end").update();
                });
    }

    private static void sleepThroughInterrupts(int millis) {
        long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(millis);
        for (long left = end - System.nanoTime(); left > 0; left = end - System.nanoTime()) {
            LockSupport.parkNanos(left);
            Thread.interrupted();
        }
    }

    public static void main(String[] args) {
        HikariDataSource pool = new HikariDataSource(TestSchema.poolConfig(args[0], 6));
        worker(pool, new WorkerSchema(args[1])).build().start();
    }

    /** Kills the process as {@code kill -9} does. */
    public void kill() {
        process.destroyForcibly().onExit().join();
    }

    /** Stops all threads of the process until {@link #resume}. */
    public void pause() throws Exception {
        signal("-STOP");
    }

    /** Lets the threads of the process go on. */
    public void resume() throws Exception {
        signal("-CONT");
    }

    /** Returns true until the process has ended. */
    public boolean isAlive() {
        return process.isAlive();
    }

    /** Writes a line to the standard input of the process. */
    public void tell(String line) throws IOException {
        process.outputWriter().write(line + "\n");
        process.outputWriter().flush();
    }

    /** Ends the standard input of the process and waits until the process has ended, too; false if it has not. */
    public boolean awaitExit(Duration limit) throws IOException, InterruptedException {
        process.outputWriter().close();
        return process.waitFor(limit.toMillis(), TimeUnit.MILLISECONDS);
    }

    private void signal(String signal) throws Exception {
        int exit = new ProcessBuilder("kill", signal, Long.toString(process.pid()))
                .start()
                .waitFor();
        if (exit != 0) {
            throw new IllegalStateException("kill " + signal + " ended with " + exit);
        }
    }

    @Override
    public void close() {
        kill();
    }
}
