package dev.pgworker.samples.reports;

import java.time.Duration;
import java.time.Instant;
import java.time.OffsetDateTime;

import org.springframework.beans.factory.annotation.Value;
import org.springframework.boot.sql.init.dependency.DependsOnDatabaseInitialization;
import org.springframework.jdbc.core.simple.JdbcClient;

/**
 * A past without a worker. It leaves the database, before the worker starts, as if the application had run until {@code
 * --pause} ago, such as {@code 6h} or {@code 2d}.
 */
@DependsOnDatabaseInitialization
class Pause {

    private final Instant begin;

    Pause(JdbcClient jdbc, @Value("${pause:6h}") Duration length) {
        begin = jdbc.sql("""
                        insert into graphile_worker._private_known_crontabs (identifier, known_since, last_execution)
                        select item, now() - interval '1 year', date_trunc('minute', now() - :length * interval '1 s')
                        from unnest(array['hourly_report', 'daily_report', 'refresh_dashboard']) item
                        on conflict (identifier) do update set last_execution = excluded.last_execution
                        returning last_execution
                        """)
                .param("length", length.toSeconds())
                .query(OffsetDateTime.class)
                .list()
                .get(0)
                .toInstant();
    }

    /** Returns the last minute in which a worker seems to have run. */
    Instant begin() {
        return begin;
    }
}
