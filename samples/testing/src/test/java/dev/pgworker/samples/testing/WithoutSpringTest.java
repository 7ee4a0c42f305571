package dev.pgworker.samples.testing;

import java.util.ArrayList;
import java.util.List;
import javax.sql.DataSource;

import org.junit.jupiter.api.Test;
import org.postgresql.ds.PGSimpleDataSource;

import dev.pgworker.schema.SchemaMigrator;
import dev.pgworker.schema.WorkerSchema;
import dev.pgworker.test.TestWorker;

import static org.assertj.core.api.Assertions.assertThat;

class WithoutSpringTest {

    final List<Order> confirmed = new ArrayList<>();

    @Test
    void confirmsAnOrder() {
        WorkerSchema schema = new WorkerSchema("without_spring");
        new SchemaMigrator(dataSource(), schema).migrate();

        try (TestWorker worker = TestWorker.create(
                dataSource(),
                schema,
                builder -> builder.task(OrderService.CONFIRM, (order, context) -> confirmed.add(order)))) {
            worker.jobScheduler().addJob(OrderService.CONFIRM, new Order(42, "ada@example.org"));

            assertThat(worker.runDue()).allCompleted();
        }
        assertThat(confirmed).hasSize(1);
    }

    private static DataSource dataSource() {
        PGSimpleDataSource dataSource = new PGSimpleDataSource();
        dataSource.setUrl(OnEmbeddedPostgres.Server.URL);
        return dataSource;
    }
}
