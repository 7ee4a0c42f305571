-- An installation as another Graphile Worker leaves it: its tables, indexes, view and signatures, with simple functions.

create schema ${schema};

create table ${schema}.migrations (
  id int constraint migrations_pkey primary key, ts timestamptz not null default now(), breaking boolean not null default false);
insert into ${schema}.migrations (id, breaking) select i, i in (1, 3, 11, 13, 14, 16) from generate_series(1, 18) i;

create type ${schema}.job_spec as (
  identifier text, payload json, queue_name text, run_at timestamptz, max_attempts smallint, job_key text, priority smallint,
  flags text[]);
create table ${schema}._private_tasks (
  id int generated always as identity constraint tasks_pkey primary key,
  identifier text not null constraint tasks_identifier_key unique check (length(identifier) <= 128));
create table ${schema}._private_job_queues (
  id int generated always as identity constraint job_queues_pkey1 primary key,
  queue_name text not null constraint job_queues_queue_name_key unique check (length(queue_name) <= 128),
  locked_at timestamptz, locked_by text,
  is_available boolean generated always as (locked_at is null) stored not null);
create table ${schema}._private_jobs (
  id bigint generated always as identity constraint jobs_pkey1 primary key,
  job_queue_id int, task_id int not null, payload json not null default '{}', priority smallint not null default 0,
  run_at timestamptz not null default now(), attempts smallint not null default 0,
  max_attempts smallint not null default 25 check (max_attempts >= 1), last_error text,
  created_at timestamptz not null default now(), updated_at timestamptz not null default now(),
  key text constraint jobs_key_key1 unique check (length(key) > 0 and length(key) <= 512),
  locked_at timestamptz, locked_by text, revision int not null default 0, flags jsonb,
  is_available boolean generated always as (locked_at is null and attempts < max_attempts) stored not null);
create table ${schema}._private_known_crontabs (
  identifier text constraint known_crontabs_pkey primary key, known_since timestamptz not null, last_execution timestamptz);
alter table ${schema}._private_tasks enable row level security;
alter table ${schema}._private_job_queues enable row level security;
alter table ${schema}._private_jobs enable row level security;
alter table ${schema}._private_known_crontabs enable row level security;
create index jobs_main_index on ${schema}._private_jobs (priority, run_at) include (id, task_id, job_queue_id)
  where is_available = true;
create index jobs_no_queue_index on ${schema}._private_jobs (priority, run_at) include (id, task_id)
  where is_available = true and job_queue_id is null;

create view ${schema}.jobs as
  select j.id, q.queue_name, t.identifier as task_identifier, j.priority, j.run_at, j.attempts, j.max_attempts, j.last_error,
    j.created_at, j.updated_at, j.key, j.locked_at, j.locked_by, j.revision, j.flags
  from ${schema}._private_jobs j
  join ${schema}._private_tasks t on t.id = j.task_id
  left join ${schema}._private_job_queues q on q.id = j.job_queue_id;

create function ${schema}.add_jobs(specs ${schema}.job_spec[], job_key_preserve_run_at boolean default false)
returns setof ${schema}._private_jobs language plpgsql as $$
begin
  insert into ${schema}._private_tasks (identifier) select distinct s.identifier from unnest(specs) s
    where not exists (select from ${schema}._private_tasks t where t.identifier = s.identifier) on conflict do nothing;
  insert into ${schema}._private_job_queues (queue_name) select distinct s.queue_name from unnest(specs) s
    where s.queue_name is not null
      and not exists (select from ${schema}._private_job_queues q where q.queue_name = s.queue_name) on conflict do nothing;
  update ${schema}._private_jobs j set key = null, attempts = j.max_attempts, updated_at = now()
    from unnest(specs) s where j.key = s.job_key and not j.is_available;
  return query
    insert into ${schema}._private_jobs as j (job_queue_id, task_id, payload, run_at, max_attempts, key, priority)
    select q.id, t.id, coalesce(s.payload, '{}'), coalesce(s.run_at, now()), coalesce(s.max_attempts, 25), s.job_key,
      coalesce(s.priority, 0)
    from unnest(specs) s
    join ${schema}._private_tasks t on t.identifier = s.identifier
    left join ${schema}._private_job_queues q on q.queue_name = s.queue_name
    on conflict (key) do update set payload = excluded.payload, revision = j.revision + 1, updated_at = now()
      where j.locked_at is null
    returning *;
end
$$;
create function ${schema}.add_job(
  identifier text, payload json default null, queue_name text default null, run_at timestamptz default null,
  max_attempts int default null, job_key text default null, priority int default null, flags text[] default null,
  job_key_mode text default 'replace') returns ${schema}._private_jobs language sql as $$
  select * from ${schema}.add_jobs(array[
    (identifier, payload, queue_name, run_at, max_attempts, job_key, priority, flags)::${schema}.job_spec]) limit 1
$$;
create function ${schema}.remove_job(job_key text) returns ${schema}._private_jobs language sql strict as $$
  delete from ${schema}._private_jobs where key = job_key returning *
$$;
create function ${schema}.complete_jobs(job_ids bigint[]) returns setof ${schema}._private_jobs language sql as $$
  delete from ${schema}._private_jobs where id = any(job_ids) and locked_at is null returning *
$$;
create function ${schema}.permanently_fail_jobs(job_ids bigint[], error_message text default null)
returns setof ${schema}._private_jobs language sql as $$
  update ${schema}._private_jobs set attempts = max_attempts, last_error = error_message where id = any(job_ids) returning *
$$;
create function ${schema}.reschedule_jobs(
  job_ids bigint[], run_at timestamptz default null, priority int default null, attempts int default null,
  max_attempts int default null) returns setof ${schema}._private_jobs language sql as $$
  update ${schema}._private_jobs j set run_at = coalesce(reschedule_jobs.run_at, j.run_at) where id = any(job_ids) returning *
$$;
create function ${schema}.force_unlock_workers(worker_ids text[]) returns void language sql as $$
  update ${schema}._private_jobs set locked_at = null, locked_by = null where locked_by = any(worker_ids)
$$;
