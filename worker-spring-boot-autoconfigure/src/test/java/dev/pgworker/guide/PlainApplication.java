package dev.pgworker.guide;

import java.util.concurrent.CountDownLatch;
import javax.sql.DataSource;

import com.zaxxer.hikari.HikariDataSource;
import tools.jackson.databind.json.JsonMapper;

import dev.pgworker.Worker;
import dev.pgworker.WorkerClient;
import dev.pgworker.WorkerSettings;
import dev.pgworker.job.JobScheduler;
import dev.pgworker.job.Task;
import dev.pgworker.schema.SchemaMigrator;
import dev.pgworker.schema.WorkerSchema;
import dev.pgworker.task.PayloadCodec;

public final class PlainApplication {

    record Greeting(String name) {}

    static final Task<Greeting> HELLO = Task.of("hello", Greeting.class);

    private PlainApplication() {}

    public static void main(String[] args) throws InterruptedException {
        HikariDataSource dataSource = new HikariDataSource();
        dataSource.setJdbcUrl(args[0]);
        new SchemaMigrator(dataSource, WorkerSchema.DEFAULT).migrate();

        Worker worker = worker(dataSource, WorkerSchema.DEFAULT);
        Runtime.getRuntime().addShutdownHook(new Thread(worker::stop));
        worker.start();

        scheduler(dataSource, WorkerSchema.DEFAULT).addJob(HELLO, new Greeting("Ada"));
        new CountDownLatch(1).await();
    }

    static Worker worker(DataSource dataSource, WorkerSchema schema) {
        return Worker.builder(dataSource)
                .schema(schema)
                .settings(WorkerSettings.builder().concurrency(4).build())
                .task(HELLO, (greeting, context) -> System.out.println("Hello, " + greeting.name()))
                .build();
    }

    static JobScheduler scheduler(DataSource dataSource, WorkerSchema schema) {
        return WorkerClient.jobScheduler(dataSource, schema, new PayloadCodec(new JsonMapper()));
    }
}
