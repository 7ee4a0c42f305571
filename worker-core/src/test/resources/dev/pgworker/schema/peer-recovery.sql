-- What a Graphile Worker for Rust has besides, with a ledger up to 22.

insert into ${schema}.migrations (id) select generate_series(19, 22);
create table ${schema}._private_workers (
  id text primary key, last_heartbeat_at timestamptz not null, started_at timestamptz not null default now(), metadata jsonb);
create index _private_workers_last_heartbeat_at_idx on ${schema}._private_workers (last_heartbeat_at);
create table ${schema}._private_job_retirements (
  id bigint primary key references ${schema}._private_jobs (id) on delete cascade);
create function ${schema}.worker_heartbeat(worker_id text, metadata json default null::json) returns void language sql as $$
  insert into ${schema}._private_workers (id, last_heartbeat_at, metadata) values (worker_id, now(), metadata::jsonb)
  on conflict (id) do update set last_heartbeat_at = now()
$$;
create function ${schema}.worker_deregister(worker_id text) returns void language sql as $$
  delete from ${schema}._private_workers where id = worker_id
$$;
create function ${schema}.list_stale_workers(stale_threshold interval) returns table (worker_id text) language sql as $$
  select id from ${schema}._private_workers where last_heartbeat_at < now() - stale_threshold
$$;
create function ${schema}.list_orphan_locked_workers(stale_threshold interval) returns table (worker_id text) language sql as $$
  select distinct locked_by from ${schema}._private_jobs where locked_at < now() - stale_threshold
$$;
create function ${schema}.recover_dead_worker_jobs(worker_ids text[], recovery_delay interval default interval '0 seconds')
returns integer language sql as $$
  select 0
$$;
create function ${schema}.delete_stale_workers(worker_ids text[]) returns void language sql as $$
  delete from ${schema}._private_workers where id = any(worker_ids)
$$;
