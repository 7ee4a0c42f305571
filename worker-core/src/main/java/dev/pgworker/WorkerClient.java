package dev.pgworker;

import java.util.List;
import java.util.function.Supplier;
import javax.sql.DataSource;

import dev.pgworker.job.JobAdmin;
import dev.pgworker.job.JobScheduler;
import dev.pgworker.job.ScheduleInterceptor;
import dev.pgworker.schema.WorkerSchema;
import dev.pgworker.store.JdbcJobAdmin;
import dev.pgworker.store.JdbcJobScheduler;
import dev.pgworker.task.PayloadCodec;

/** What an application needs to add and manage jobs without running any. */
public final class WorkerClient {

    private WorkerClient() {}

    /**
     * Returns a scheduler for the jobs of a schema.
     *
     * @param dataSource the data source whose Spring transactions are joined
     */
    public static JobScheduler jobScheduler(DataSource dataSource, WorkerSchema schema, PayloadCodec codec) {
        return jobScheduler(dataSource, schema, codec, List::of);
    }

    /**
     * Returns a scheduler for the jobs of a schema.
     *
     * @param dataSource the data source whose Spring transactions are joined
     * @param interceptors see every job before it is scheduled, in order; asked for when the first job is added
     */
    public static JobScheduler jobScheduler(
            DataSource dataSource,
            WorkerSchema schema,
            PayloadCodec codec,
            Supplier<List<ScheduleInterceptor>> interceptors) {
        return new JdbcJobScheduler(dataSource, schema, codec, interceptors);
    }

    /**
     * Returns the administration of a schema's jobs.
     *
     * @param dataSource the data source whose Spring transactions are joined
     */
    public static JobAdmin jobAdmin(DataSource dataSource, WorkerSchema schema) {
        return new JdbcJobAdmin(dataSource, schema);
    }
}
