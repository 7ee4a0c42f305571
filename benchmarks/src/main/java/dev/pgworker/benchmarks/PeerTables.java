package dev.pgworker.benchmarks;

import java.sql.SQLException;
import java.sql.Statement;
import javax.sql.DataSource;

/**
 * The tables of jobs with the columns, constraints and indexes that those of the Node.js and Rust workers have, for loops
 * that need nothing else of theirs.
 */
final class PeerTables {

    private static final String SQL = """
            create schema graphile_worker;
            create table graphile_worker._private_tasks (
              id int generated always as identity primary key,
              identifier text not null unique check (length(identifier) <= 128));
            create table graphile_worker._private_job_queues (
              id int generated always as identity primary key,
              queue_name text not null unique check (length(queue_name) <= 128),
              locked_at timestamptz,
              locked_by text,
              is_available boolean not null generated always as (locked_at is null) stored);
            create table graphile_worker._private_jobs (
              id bigint generated always as identity primary key,
              job_queue_id int,
              task_id int not null,
              payload json not null default '{}',
              priority smallint not null default 0,
              run_at timestamptz not null default now(),
              attempts smallint not null default 0,
              max_attempts smallint not null default 25 check (max_attempts >= 1),
              last_error text,
              created_at timestamptz not null default now(),
              updated_at timestamptz not null default now(),
              key text unique check (length(key) between 1 and 512),
              locked_at timestamptz,
              locked_by text,
              revision int not null default 0,
              flags jsonb,
              is_available boolean not null
                generated always as (locked_at is null and attempts < max_attempts) stored);
            create index jobs_main_index on graphile_worker._private_jobs (priority, run_at)
              include (id, task_id, job_queue_id) where is_available;
            create index jobs_no_queue_index on graphile_worker._private_jobs (priority, run_at)
              include (id, task_id) where is_available and job_queue_id is null;
            alter table graphile_worker._private_tasks enable row level security;
            alter table graphile_worker._private_job_queues enable row level security;
            alter table graphile_worker._private_jobs enable row level security;
            """;

    private PeerTables() {}

    static void create(DataSource dataSource) throws SQLException {
        try (var connection = dataSource.getConnection();
                Statement statement = connection.createStatement()) {
            statement.execute(SQL);
        }
    }
}
