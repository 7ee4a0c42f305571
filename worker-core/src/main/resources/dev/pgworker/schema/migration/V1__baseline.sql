-- PgWorker: tables, types and views of the job queue. Its functions are in the repeatable migrations beside this file, one for each story,
-- which are applied in the order of their names, in the same transaction.
--
-- The interface (names, columns, signatures, behaviour) is the one of the Graphile Worker documentation, shared with the
-- Node.js and Rust workers (docs: "Compatibility", "Job keys", "Worker recovery"). The text is our own.
--
-- The scripts are written to be run in an empty schema as well as in one that Graphile Worker (Node: ledger 18 and later,
-- Rust: ledger 19 and later) has installed, while its workers run. What exists and fits is left as it is, with its oid, grants and
-- dependants; functions get new bodies in place; no row is lost. All of it is one transaction, so no session sees half of it. The schema
-- itself must exist. The placeholder for its name is the only one used here. Needs PostgreSQL 12.
--
-- Tables whose names begin with _private_ have exactly the columns that the other workers know, whose prepared statements return
-- whole rows. PgWorker's own tables have names that begin with pgworker_.
--
-- Rules that keep every function, and the peers' statements, free of deadlocks:
--   * Row locks are taken in the order tasks, queues being created, jobs, queues being released; within a table in the order of
--     name, key or id.
--   * A look for work (claim) never waits for a row lock: SKIP LOCKED.
--   * A write of an outcome (complete, release, recovery) skips locked jobs, and waits for queue rows only;
--     those are held by statements that wait for nothing.
--   * Only calls made for an application (add_job, remove_job, administration) wait for job rows.


set local client_min_messages = warning;


-- 1 Adoption ------------------------------------------------------------------------------------------------------------------

-- All locks on tables that other workers may be using, before anything else is done: in one order, and none is waited for any longer when
-- lock_timeout has passed since the first. So no session waits for this script longer than that and the moment it runs; and as the time is
-- shorter than deadlock_timeout, no other session fails by a deadlock with it. The caller repeats a run that got no lock. The order is the
-- one in which others take theirs, so circles are rare: who adds jobs looks at the tasks first and keeps that lock until the transaction
-- ends; once this script has it, those left have claimed or completed jobs, and continue with the queues. The ledger is locked against
-- migrations of others, tasks and jobs against changes where PgWorker's triggers are missing. Administrators, and the oldest of the peers,
-- make the ledger without the column "breaking".
do $lock$
declare
  deadline constant timestamptz := clock_timestamp() + (
    select least(nullif(max(setting::int) filter (where name = 'lock_timeout'), 0), max(setting::int) filter (where name = 'deadlock_timeout') / 2)
      * interval '1 millisecond'
    from pg_settings where name in ('lock_timeout', 'deadlock_timeout'));
  needed text;
begin
  foreach needed in array array[
    case when to_regclass('"${schema}".migrations') is not null and not exists (
        select from pg_attribute a
        where a.attrelid = to_regclass('"${schema}".migrations') and a.attname = 'breaking' and not a.attisdropped)
      then 'alter table "${schema}".migrations add column breaking boolean not null default false' end,
    case when to_regclass('"${schema}".migrations') is not null then 'lock table "${schema}".migrations in share row exclusive mode' end,
    case when to_regclass('"${schema}"._private_tasks') is not null and not exists (
        select from pg_trigger g where g.tgrelid = to_regclass('"${schema}"._private_tasks') and g.tgname = 'pgworker_keep_task')
      then 'lock table "${schema}"._private_tasks in share row exclusive mode' end,
    case when to_regclass('"${schema}"._private_jobs') is not null and 7 > (
        select count(*) from pg_trigger g
        where g.tgrelid = to_regclass('"${schema}"._private_jobs') and g.tgname in (
          'pgworker_history_deleted', 'pgworker_history_updated', 'pgworker_same_work', 'pgworker_ends_deleted', 'pgworker_ends_updated',
          'zz_pgworker_park_added', 'zz_pgworker_park_changed'))
      then 'lock table "${schema}"._private_jobs in share row exclusive mode' end]
  loop
    continue when needed is null;
    perform set_config('lock_timeout', greatest(1, ceil(extract(epoch from deadline - clock_timestamp()) * 1000))::int || 'ms', true);
    execute needed;
  end loop;
end
$lock$;

-- Functions that are here keep their rights, see R__90_shared_rights.sql.
do $found$
begin
  perform set_config('pgworker.found',
    array(select p.oid from pg_proc p where p.pronamespace = '"${schema}"'::regnamespace)::text, true);
end
$found$;


-- 2 Types and tables ----------------------------------------------------------------------------------------------------------

-- Rows are written by functions, and by programs that may insert jobs themselves. The tables of jobs, queues and tasks are
-- the peers' as they are; a job costs one row of jobs, and one of queues and tasks for each name that is used first.

do $type$
begin
  if to_regtype('"${schema}".job_spec') is null then
    create type "${schema}".job_spec as (
      identifier text,
      payload json,
      queue_name text,
      run_at timestamptz,
      max_attempts smallint,
      job_key text,
      priority smallint,
      flags text[]
    );
    comment on type "${schema}".job_spec is 'One job for add_jobs; an omitted field is null.';
  end if;
end
$type$;

do $types$
begin
  if to_regtype('"${schema}".pgworker_request') is null then
    create type "${schema}".pgworker_request as (
      worker_id text, task_ids int[], unqueued_task_ids int[], runs int[], share int, from_first boolean, forbidden text[], passed bigint[]);
    create type "${schema}".pgworker_floor as (queued boolean, priority int, run_at timestamptz, id bigint);
    create type "${schema}".pgworker_claimed as (
      id bigint, queue_id int, queue_name text, task_id int, payload json, priority smallint, run_at timestamptz, attempts smallint,
      max_attempts smallint, last_error text, created_at timestamptz, updated_at timestamptz, key text, revision int, flags jsonb,
      address tid, locked_at timestamptz);
    create type "${schema}".pgworker_outcome as (
      job_id bigint, claim timestamptz, action text, delay float8, run_at timestamptz, error text, key text, attempts int, payload text,
      micros bigint, result text, trace text);
  end if;
end
$types$;
comment on type "${schema}".pgworker_request is
  'What a worker''s claim asks for: jobs of these tasks, and without a queue of unqueued_task_ids only (null: of all); of a queue as many jobs '
  'together as runs says for the task of its first job, and usually share at most; from_first: of a queue the very first jobs, wherever the '
  'floors are; neither jobs with one of the forbidden flags nor those passed over, with their queues.';
comment on type "${schema}".pgworker_floor is
  'A place in the order of due jobs, of one priority and with or without a queue, before which a worker need not look.';
comment on type "${schema}".pgworker_claimed is
  'A job as its claim returns it. The payload is null if it is large: read it before the job runs. created_at is null if it equals run_at, '
  'updated_at if it equals created_at.';
comment on type "${schema}".pgworker_outcome is
  'What becomes of a job that has not succeeded, as pgworker_release reads it.';

create table if not exists "${schema}".pgworker_turn ();
comment on table "${schema}".pgworker_turn is 'Always empty. A claim of many jobs locks it, so that one such claim is under way at a time.';

create table if not exists "${schema}".migrations (
  id int constraint migrations_pkey primary key,
  ts timestamptz not null default now(),
  breaking boolean not null default false
);

create table if not exists "${schema}"._private_tasks (
  id int generated always as identity constraint tasks_pkey primary key,
  identifier text not null constraint tasks_identifier_key unique
    constraint tasks_identifier_check check (length(identifier) <= 128)
);

create table if not exists "${schema}"._private_job_queues (
  id int generated always as identity constraint job_queues_pkey1 primary key,
  queue_name text not null constraint job_queues_queue_name_key unique
    constraint job_queues_queue_name_check check (length(queue_name) <= 128),
  locked_at timestamptz,
  locked_by text,
  is_available boolean generated always as (locked_at is null) stored not null
);

-- key carries a plain unique constraint, not a partial index: statements of the peers and of migrations they may add have "on conflict
-- (key)", which only the plain one answers.
create table if not exists "${schema}"._private_jobs (
  id bigint generated always as identity constraint jobs_pkey1 primary key,
  job_queue_id int,
  task_id int not null,
  payload json not null default '{}',
  priority smallint not null default 0,
  run_at timestamptz not null default now(),
  attempts smallint not null default 0,
  max_attempts smallint not null default 25 constraint jobs_max_attempts_check check (max_attempts >= 1),
  last_error text,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  key text constraint jobs_key_key1 unique constraint jobs_key_check check (length(key) > 0 and length(key) <= 512),
  locked_at timestamptz,
  locked_by text,
  revision int not null default 0,
  flags jsonb,
  is_available boolean generated always as (locked_at is null and attempts < max_attempts) stored not null
);

create table if not exists "${schema}"._private_known_crontabs (
  identifier text constraint known_crontabs_pkey primary key,
  known_since timestamptz not null,
  last_execution timestamptz
);

create table if not exists "${schema}".pgworker_paused_crontabs (
  identifier text constraint pgworker_paused_crontabs_pkey primary key,
  paused_at timestamptz not null default clock_timestamp()
);
comment on table "${schema}".pgworker_paused_crontabs is
  'Crontab entries that PgWorker does not execute, whether or not they are registered yet; other Graphile Workers ignore this table.';

create table if not exists "${schema}"._private_workers (
  id text constraint _private_workers_pkey primary key,
  last_heartbeat_at timestamptz not null,
  started_at timestamptz not null default now(),
  metadata jsonb
);

-- Written by recovery alone, for the few jobs that lost their workers. A job that is added again under its key gets a higher revision,
-- which ends the count; unsafe_dedupe, which raises the revision too, takes the count along. Rows of jobs that are gone are no
-- completion's business: recovery and clean-up delete them.
create table if not exists "${schema}".pgworker_recoveries (
  job_id bigint constraint pgworker_recoveries_pkey primary key,
  revision int not null,
  recoveries int not null
);
comment on table "${schema}".pgworker_recoveries is
  'Number of times jobs were recovered from dead workers, valid while a job has the given revision; the job may no longer exist.';

-- A running job whose key is taken or removed is *retired*: no key and no attempts left, like a job without a key on its last attempt. This
-- table distinguishes the two, and has no rows of jobs that are gone in the same way.
create table if not exists "${schema}".pgworker_retirements (
  job_id bigint constraint pgworker_retirements_pkey primary key,
  removed boolean not null
);
comment on table "${schema}".pgworker_retirements is
  'Jobs that were superseded by a newer job with their key, or removed by key, while they ran; the job may no longer exist.';

-- A running job that is cancelled is retired as well, and deleted when its run ends otherwise than by success. That outcome is written in
-- the same transaction; so a row without an outcome whose job is gone is that of a job that succeeded, which costs completions nothing.
-- Rows stay for an hour after the end, for those who ask.
create table if not exists "${schema}".pgworker_cancellations (
  job_id bigint constraint pgworker_cancellations_pkey primary key,
  requested_at timestamptz not null,
  requested_by text,
  worker_id text not null,
  outcome text constraint pgworker_cancellations_check check (outcome in ('cancelled', 'completed')),
  ended_at timestamptz
) with (autovacuum_vacuum_threshold = 500, autovacuum_vacuum_scale_factor = 0);
create index if not exists pgworker_cancellations_open on "${schema}".pgworker_cancellations (worker_id) where outcome is null;
comment on table "${schema}".pgworker_cancellations is
  'Jobs that were cancelled while they ran, by whom, the worker that held each, and what has become of it: null while it runs, or has just '
  'ended.';

-- A direct batch runs while its transaction is open, which leaves nothing if its worker dies: this row is committed before it runs and
-- emptied by its transaction. So the ids in the row of a transaction that is over are those of a batch that broke. Another session of the
-- worker has another number, so that they stay. Rows grow in their place.
create table if not exists "${schema}".pgworker_batches (
  worker_id text,
  chain int,
  started_at timestamptz not null,
  backend_pid int not null,
  xid bigint not null,
  job_ids bigint[] not null,
  constraint pgworker_batches_pkey primary key (worker_id, chain)
) with (fillfactor = 20);
-- To compress the ids takes longer than everything else that is done with a row.
alter table "${schema}".pgworker_batches alter column job_ids set storage external;
comment on table "${schema}".pgworker_batches is
  'Jobs that each session of a worker (chain) runs in one transaction, which has the given id and locks them; the jobs may no longer exist.';

-- What worker-record writes, see "internal.record". These tables are written often and read by few, so their rows are changed in place: a page
-- keeps room for the next versions of its rows, and no column of an index changes while a job runs or a minute lasts. Nothing depends on
-- them: a server that breaks down may lose the last second of them.
create table if not exists "${schema}".pgworker_running (
  worker_id text,
  job_id bigint,
  locked_at timestamptz not null,
  started_at timestamptz not null,
  done bigint,
  total bigint,
  text text,
  updated_at timestamptz,
  constraint pgworker_running_pkey primary key (worker_id, job_id)
) with (fillfactor = 40, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_scale_factor = 0, autovacuum_analyze_threshold = 500);
create index if not exists pgworker_running_started_at on "${schema}".pgworker_running (started_at, job_id);
comment on table "${schema}".pgworker_running is
  'Jobs that PgWorker has been running for a second or more, or whose handlers have reported progress: valid while the job is locked by this '
  'worker at this time. A worker has at most 1,000 rows; done is null where no progress has been reported.';

-- The row of all tasks spares the reader of a day two hundred rows for each minute, and the hours spare the reader of tasks sixty for each.
create table if not exists "${schema}".pgworker_task_minutes (
  span smallint,
  begins_at timestamptz,
  task text,
  succeeded bigint not null,
  retried bigint not null,
  failed bigint not null,
  run bigint[] not null,
  waited bigint[] not null,
  last_minute timestamptz,
  constraint pgworker_task_minutes_pkey primary key (span, begins_at, task)
) with (fillfactor = 50, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0.02);
comment on table "${schema}".pgworker_task_minutes is
  'What became of jobs: in a minute of all tasks together (span 0, no task), in a minute of each task (1), in an hour of each task (60). run and '
  'waited hold how long handlers ran and jobs waited: each element is 128 times the number of durations in a bucket, plus the bucket. Bucket 0 is '
  'for less than 8,192 ns; 1 + 2n begins at 8,192 ns times 2^n, and 2 + 2n at half as much again. last_minute is the last in which a run ended.';

create table if not exists "${schema}".pgworker_samples (
  taken_at timestamptz constraint pgworker_samples_pkey primary key,
  ready bigint not null,
  scheduled bigint not null,
  retrying bigint not null,
  failed bigint not null,
  oldest_due timestamptz,
  workers bigint not null
) with (autovacuum_vacuum_threshold = 500, autovacuum_vacuum_scale_factor = 0.02);
comment on table "${schema}".pgworker_samples is
  'The backlog as pgworker_backlog told it at a time, about every ten seconds while a worker records statistics.';

-- Recurring jobs that are created at run time. A worker that executes one locks its row, adds the job and sets the next time in one
-- transaction, so that each time is executed once. next_at is -infinity where a worker has to find out when it is due, as only Java knows
-- all grammars, and null where nothing will be due: it has ended, or waits for the end of its last job (awaits_end), or has a problem.
-- Until retry_at no worker looks at one that has failed, and one with many missed executions has its turn then: others are not to wait
-- behind them. Workers read hundreds at a time, hence the limit of the payload. The names are in the order of their characters, which
-- prefixes and pages need.
create table if not exists "${schema}".pgworker_schedules (
  name text collate "C" constraint pgworker_schedules_pkey primary key
    constraint pgworker_schedules_name_check check (length(name) between 1 and 128),
  kind text not null constraint pgworker_schedules_kind_check check (kind in ('crontab', 'cron', 'rate', 'delay')),
  expression text constraint pgworker_schedules_expression_check check (length(expression) between 1 and 1000),
  zone text constraint pgworker_schedules_zone_check check (length(zone) between 1 and 128),
  every interval constraint pgworker_schedules_every_check check (every between interval '1 second' and interval '3650 days'),
  origin timestamptz constraint pgworker_schedules_origin_check check (isfinite(origin)),
  starts_at timestamptz constraint pgworker_schedules_starts_check check (isfinite(starts_at)),
  ends_at timestamptz constraint pgworker_schedules_ends_check check (isfinite(ends_at) and (starts_at is null or ends_at > starts_at)),
  jitter interval not null default '0'
    constraint pgworker_schedules_jitter_check check (jitter between interval '0' and interval '7 days'),
  task_identifier text not null constraint pgworker_schedules_task_check check (length(task_identifier) between 1 and 128),
  payload json not null default '{}'
    constraint pgworker_schedules_payload_check check (json_typeof(payload) = 'object' and length(payload::text) <= 100000),
  queue_name text constraint pgworker_schedules_queue_check check (length(queue_name) between 1 and 128),
  priority smallint not null default 0,
  max_attempts smallint not null default 25 constraint pgworker_schedules_attempts_check check (max_attempts > 0),
  job_key text constraint pgworker_schedules_job_key_check check (length(job_key) between 1 and 512),
  job_key_mode text not null default 'replace'
    constraint pgworker_schedules_mode_check check (job_key_mode in ('replace', 'preserve_run_at', 'unsafe_dedupe', 'replace_and_cancel')),
  flags text[],
  overlap text not null default 'skip' constraint pgworker_schedules_overlap_check check (overlap in ('allow', 'queue', 'skip')),
  misfire text not null default 'skip' constraint pgworker_schedules_misfire_check check (misfire in ('skip', 'run_once', 'run_all')),
  backfill interval
    constraint pgworker_schedules_backfill_check check (backfill between interval '1 second' and interval '3650 days'),
  declared boolean not null default false,
  paused_at timestamptz,
  paused_by text,
  next_at timestamptz default '-infinity',
  last_at timestamptz,
  last_job_id bigint,
  awaits_end boolean not null default false,
  retry_at timestamptz,
  problem text,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  constraint pgworker_schedules_recurrence_check check (
    case when kind in ('crontab', 'cron')
      then expression is not null and zone is not null and every is null
      else expression is null and zone is null and every is not null
    end
    and (kind = 'rate') = (origin is not null))
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05);
create index if not exists pgworker_schedules_due on "${schema}".pgworker_schedules (next_at)
  where next_at is not null and paused_at is null and retry_at is null and not declared;
create index if not exists pgworker_schedules_later on "${schema}".pgworker_schedules (retry_at)
  where retry_at is not null and paused_at is null and not declared;
create index if not exists pgworker_schedules_awaiting on "${schema}".pgworker_schedules (name) where awaits_end and paused_at is null;
create index if not exists pgworker_schedules_jobs on "${schema}".pgworker_schedules (last_job_id) where awaits_end and paused_at is null;
create index if not exists pgworker_schedules_task on "${schema}".pgworker_schedules (task_identifier, name);
create index if not exists pgworker_schedules_paused on "${schema}".pgworker_schedules (name) where paused_at is not null;
create index if not exists pgworker_schedules_problem on "${schema}".pgworker_schedules (name) where problem is not null;
comment on table "${schema}".pgworker_schedules is
  'Recurring jobs made at run time; those of crontabs are in known_crontabs. Rows that declared marks are executed by applications that declare them.';

-- A paused queue is kept by the lock of its own row, which all workers respect; this table has who paused it, and who held it then.
create table if not exists "${schema}".pgworker_pauses (
  kind text constraint pgworker_pauses_kind_check check (kind in ('task', 'queue', 'all')),
  name text,
  paused_at timestamptz not null default clock_timestamp(),
  paused_by text,
  reason text,
  held_by text,
  held_at timestamptz,
  job_ids bigint[],
  resumed_at timestamptz,
  constraint pgworker_pauses_pkey primary key (kind, name),
  constraint pgworker_pauses_name_check check (case kind when 'all' then name = '' else length(name) between 1 and 128 end)
);
comment on table "${schema}".pgworker_pauses is
  'Tasks of which PgWorker, and queues of which no worker starts jobs; the kind "all" stands for every task of PgWorker. A row with a time '
  'of resumption is over, but another Graphile Worker still runs a job of the queue.';

-- Which of the workers that clean up by themselves does so at a time, and until when the others leave it alone.
create table if not exists "${schema}".pgworker_cleanup (
  one boolean default true constraint pgworker_cleanup_pkey primary key constraint pgworker_cleanup_one_check check (one),
  due_at timestamptz not null,
  busy_until timestamptz not null
);
comment on table "${schema}".pgworker_cleanup is 'When workers have last cleaned up as their settings say, and until when one of them may be at it.';

-- What became of jobs, where a schema keeps that. Nothing is written here until it is switched on, see R__50_history.sql. No key,
-- because nothing that stands here already may keep a job from ending. Autovacuum does not shorten it, because that locks it.
create table if not exists "${schema}".pgworker_history (
  job_id bigint not null,
  ended_at timestamptz not null,
  started_at timestamptz,
  took interval,
  created_at timestamptz not null,
  run_at timestamptz not null,
  attempt smallint not null,
  max_attempts smallint not null,
  priority smallint not null,
  outcome text not null,
  task_identifier text not null,
  queue_name text,
  key text,
  worker_id text,
  trace_id text,
  flags jsonb,
  error text,
  result json,
  payload json
) with (vacuum_truncate = false, toast.vacuum_truncate = false);
comment on table "${schema}".pgworker_history is
  'Runs that have ended and jobs that have ended without running; outcome is succeeded, retried, failed, removed, cancelled or recovered. Empty '
  'unless pgworker.history.enabled is set.';
create index if not exists pgworker_history_job on "${schema}".pgworker_history (job_id);
create index if not exists pgworker_history_ended on "${schema}".pgworker_history (ended_at, job_id);

create table if not exists "${schema}".pgworker_history_settings (
  only_row boolean default true constraint pgworker_history_settings_pkey primary key
    constraint pgworker_history_settings_check check (only_row),
  enabled boolean not null default false,
  keep_for interval not null default '14 days',
  keep_most bigint not null default 1000000,
  payloads boolean not null default true,
  tended_at timestamptz not null default 'epoch'
);
insert into "${schema}".pgworker_history_settings default values on conflict do nothing;
comment on table "${schema}".pgworker_history_settings is
  'Whether the schema keeps a history, for how long and how much of it.';
create table if not exists "${schema}".pgworker_history_losses (
  lost_at timestamptz not null,
  jobs bigint not null,
  reason text not null
);
create index if not exists pgworker_history_lost_at on "${schema}".pgworker_history_losses (lost_at);
comment on table "${schema}".pgworker_history_losses is
  'How many ends of jobs of the last day the history does not show, and why. Rows of one hour and reason are combined when there are many.';

-- Limits of the cluster, see R__60_limits.sql. A limit is one of concurrency, one of rate or a fair share. Adding and ending jobs write
-- nothing of what follows but arrivals, for which no session waits.
create table if not exists "${schema}".pgworker_limits (
  id int generated always as identity constraint pgworker_limits_pkey primary key,
  name text collate "C" not null constraint pgworker_limits_name_key unique
    constraint pgworker_limits_name_check check (length(name) between 1 and 128),
  task_identifiers text[] not null constraint pgworker_limits_tasks_check check (cardinality(task_identifiers) between 1 and 1000),
  field text[] constraint pgworker_limits_field_check check (cardinality(field) between 1 and 20),
  max_running int constraint pgworker_limits_running_check check (max_running between 1 and 1000000),
  max_starts int constraint pgworker_limits_starts_check check (max_starts between 1 and 1000000000),
  period interval constraint pgworker_limits_period_check check (period between interval '1 millisecond' and interval '3650 days'),
  burst int constraint pgworker_limits_burst_check check (burst between 1 and 1000000000),
  weights jsonb,
  declared boolean not null default false,
  state text not null default 'applying' constraint pgworker_limits_state_check check (state in ('applying', 'active', 'removing')),
  settled boolean not null default false,
  made_by bigint not null default txid_current(),
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  constraint pgworker_limits_kind_check check (
    num_nonnulls(max_running, max_starts, weights) = 1 and (max_starts is null) = (period is null) and (max_starts is null) = (burst is null))
);
comment on table "${schema}".pgworker_limits is
  'At most max_running jobs of these tasks at once, or max_starts of them in each period, or fair shares by weights, for each value of a field of the '
  'payload if one is given. In state applying the jobs that are there do not all know of it, in state removing some still wait for it. It is settled '
  'when all transactions are over that may not have seen it.';
create table if not exists "${schema}".pgworker_limited_tasks (
  task_identifier text collate "C" constraint pgworker_limited_tasks_pkey primary key,
  task_id int not null constraint pgworker_limited_tasks_task_key unique,
  limit_ids int[] not null,
  fields text[] not null
);
comment on table "${schema}".pgworker_limited_tasks is
  'What adding and claiming jobs has to know: the limits that jobs of a task are subject to, and the text of the field of each, null if it has none.';
create table if not exists "${schema}".pgworker_limit_arrivals (
  lane text collate "C" not null, task_id int not null, queue_id int, priority smallint not null, flags jsonb, run_at timestamptz not null,
  limit_ids int[] not null, bucket_values text[] not null
) with (autovacuum_vacuum_threshold = 500, autovacuum_vacuum_scale_factor = 0);
comment on table "${schema}".pgworker_limit_arrivals is 'Lanes in which a job has been parked, until the next claim of limited jobs.';
create table if not exists "${schema}".pgworker_limit_lanes (
  id bigint generated always as identity constraint pgworker_limit_lanes_pkey primary key,
  name text collate "C" not null constraint pgworker_limit_lanes_name_key unique,
  task_id int not null,
  queue_id int,
  priority smallint not null,
  flags jsonb,
  limit_ids int[] not null,
  buckets bigint[] not null,
  share bigint,
  due_at timestamptz not null,
  due_id bigint not null default 0,
  retry_at timestamptz not null default '-infinity',
  tries int not null default 0,
  blocked_by bigint,
  pass float8 not null,
  used_at timestamptz not null default now()
) with (fillfactor = 50, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_scale_factor = 0.05);
create index if not exists pgworker_limit_lanes_share on "${schema}".pgworker_limit_lanes (share) where share is not null;
comment on table "${schema}".pgworker_limit_lanes is
  'Jobs that wait for the same: where the first of them is, when to try again if another session holds it, the bucket that had no room for it, the one of its fair '
  'share, and its place in the order of starts.';
create table if not exists "${schema}".pgworker_limit_buckets (
  id bigint generated always as identity constraint pgworker_limit_buckets_pkey primary key,
  limit_id int not null,
  value text collate "C" not null,
  tokens float8,
  filled_at timestamptz,
  holders bigint[] not null default '{}',
  waited boolean not null default false,
  next_at timestamptz,
  constraint pgworker_limit_buckets_value_key unique (limit_id, value)
) with (fillfactor = 50, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_scale_factor = 0.05);
comment on table "${schema}".pgworker_limit_buckets is
  'Values for which limits have been used lately: the jobs that have started, some of which may have ended; the tokens of a rate as of a time; whether a '
  'lane waits for room, and when there is some if time brings it.';
create table if not exists "${schema}".pgworker_limit_passes (
  place bigint, began_at timestamptz, missed bigint[], limits int[], settles int[]
);
insert into "${schema}".pgworker_limit_passes (place)
  select null where not exists (select from "${schema}".pgworker_limit_passes);
comment on table "${schema}".pgworker_limit_passes is
  'One row: how far pgworker_apply_limits has gone through the jobs, for which limits, and which jobs other sessions have held.';
create table if not exists "${schema}".pgworker_limit_turn ();
comment on table "${schema}".pgworker_limit_turn is 'Always empty. Locked by who claims limited jobs.';
create table if not exists "${schema}".pgworker_limit_salt (salt text not null);
insert into "${schema}".pgworker_limit_salt (salt)
  select gen.salt from (select string_agg(md5(random()::text || clock_timestamp()::text), '') as salt from generate_series(1, 4)) gen
  where not exists (select from "${schema}".pgworker_limit_salt);
comment on table "${schema}".pgworker_limit_salt is 'What makes the names of lanes tell nothing of the values they stand for.';

-- Ends that are waited for, see R__70_ends.sql. The row of a job is written by the transaction that asks for its end, which is usually the
-- one that adds it. Other jobs have none. It outlives its job by keep_for, and is kept for as long as jobs wait that are to start after it.
create table if not exists "${schema}".pgworker_ends (
  job_id bigint constraint pgworker_ends_pkey primary key,
  task_identifier text not null,
  keep_for interval not null default '1 hour' constraint pgworker_ends_keep_check check (keep_for between interval '1 second' and interval '3650 days'),
  awaited boolean not null default true,
  flow boolean not null default false,
  news boolean not null default false,
  outcome text constraint pgworker_ends_outcome_check check (outcome in ('succeeded', 'failed', 'removed', 'cancelled', 'unknown')),
  result json,
  error text,
  ended_at timestamptz,
  expires_at timestamptz,
  marked_by bigint,
  constraint pgworker_ends_ended_check check ((outcome is null) = (ended_at is null) and (outcome is null) = (expires_at is null))
) with (fillfactor = 70, vacuum_truncate = false, toast.vacuum_truncate = false, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_scale_factor = 0.05);
create sequence if not exists "${schema}".pgworker_ends_used;
comment on sequence "${schema}".pgworker_ends_used is 'Has a value once the end of a job was asked for.';
create index if not exists pgworker_ends_open on "${schema}".pgworker_ends (job_id) where outcome is null;
create index if not exists pgworker_ends_expires on "${schema}".pgworker_ends (expires_at) where outcome is not null and not flow;
create index if not exists pgworker_ends_news on "${schema}".pgworker_ends (job_id) where news;
comment on table "${schema}".pgworker_ends is
  'Jobs whose end was asked for, and how they have ended: succeeded, failed (for good, and not retried), removed, cancelled, or '
  'unknown (it is gone, and its end could not be written). awaited: a program waits for the result. flow: jobs are to start after it; news: '
  'and have not been told of this end. marked_by: the last transaction that has asked and had not added the job.';

-- Steps of jobs, and the signals that they wait for, see R__71_steps.sql. A row is written when a step has ended, or when a job begins to wait. Rows
-- outlive their jobs for a moment, or as long as the history has an entry of the job. Fresh is what has not been compared with its counterpart.
create table if not exists "${schema}".pgworker_steps (
  job_id bigint not null,
  revision int not null,
  name text collate "C" not null constraint pgworker_steps_name_check check (length(name) between 1 and 140),
  kind text not null constraint pgworker_steps_kind_check check (kind in ('run', 'transaction', 'wait', 'sleep')),
  signal text collate "C",
  claim timestamptz not null,
  attempt smallint not null,
  started_at timestamptz not null,
  ended_at timestamptz,
  due_at timestamptz,
  timed_out boolean not null default false,
  fresh boolean not null default false,
  result_type text,
  result json,
  constraint pgworker_steps_pkey primary key (job_id, revision, name)
) with (autovacuum_vacuum_threshold = 500, autovacuum_vacuum_scale_factor = 0.05);
create index if not exists pgworker_steps_waiting on "${schema}".pgworker_steps (signal, started_at, job_id, name)
  where ended_at is null and signal is not null;
create index if not exists pgworker_steps_fresh on "${schema}".pgworker_steps (started_at) where fresh;
comment on table "${schema}".pgworker_steps is
  'Steps that have ended of jobs that take several, with their results as JSON, and those at which jobs wait for a signal or a time. They belong to '
  'the job as long as it has the given revision.';
create table if not exists "${schema}".pgworker_signals (
  id bigint generated always as identity constraint pgworker_signals_pkey primary key,
  name text collate "C" not null constraint pgworker_signals_name_check check (length(name) between 1 and 128),
  payload json,
  sent_at timestamptz not null default clock_timestamp(),
  expires_at timestamptz not null,
  fresh boolean not null default true
) with (autovacuum_vacuum_threshold = 500, autovacuum_vacuum_scale_factor = 0.05);
create index if not exists pgworker_signals_name on "${schema}".pgworker_signals (name, id);
create index if not exists pgworker_signals_fresh on "${schema}".pgworker_signals (name) where fresh;
create index if not exists pgworker_signals_expires on "${schema}".pgworker_signals (expires_at);
comment on table "${schema}".pgworker_signals is 'Signals that no job has received yet, until they expire.';

-- Jobs that wait for jobs, see R__72_flows.sql. Those who end jobs write nothing here.
create table if not exists "${schema}".pgworker_flow_edges (
  successor bigint,
  predecessor bigint,
  outcome text,
  constraint pgworker_flow_edges_pkey primary key (successor, predecessor)
) with (autovacuum_vacuum_scale_factor = 0.05);
create index if not exists pgworker_flow_edges_predecessor on "${schema}".pgworker_flow_edges (predecessor);
create index if not exists pgworker_flow_edges_open on "${schema}".pgworker_flow_edges (successor, outcome) where outcome is distinct from 'succeeded';
comment on table "${schema}".pgworker_flow_edges is
  'Which job waits, or has waited, for which, and how that one has ended, as far as the waiting one has been told.';
create table if not exists "${schema}".pgworker_flow_waits (
  job_id bigint constraint pgworker_flow_waits_pkey primary key,
  on_failure text not null constraint pgworker_flow_waits_choice_check check (on_failure in ('wait', 'fail', 'run', 'remove', 'instead')),
  run_at timestamptz not null,
  look boolean not null default false,
  tries int not null default 0,
  retry_at timestamptz not null default '-infinity',
  released_at timestamptz
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05);
create index if not exists pgworker_flow_waits_look on "${schema}".pgworker_flow_waits (retry_at, job_id) where look;
comment on table "${schema}".pgworker_flow_waits is
  'Jobs that wait, or have waited, for others: what becomes of each if one of them does not succeed, and when it is to run after '
  'that; whether it has to be looked at, not before when, and how often that was in vain; and since when it waits no more.';
create table if not exists "${schema}".pgworker_flow_turn ();
create index if not exists pgworker_ends_flow on "${schema}".pgworker_ends (expires_at) where flow and outcome is not null;
comment on table "${schema}".pgworker_flow_turn is 'Always empty. Locked by who releases jobs that have waited for others.';

-- The statistics may be lost, and the table not analysed since. This does not wait for its lock.
create or replace view "${schema}".pgworker_history_sizes as
  select case
      when l.locked or n.live > 0 or c.relpages > 0 and c.reltuples > 0 then greatest(n.live, 0, case when n.live = 0 then c.reltuples end)
      else pg_relation_size(c.oid) / 300
    end::bigint as entries,
    case when l.locked then c.relpages::bigint * current_setting('block_size')::int else pg_total_relation_size(c.oid) end as bytes,
    l.locked
  from pg_class c
  cross join lateral (select pg_stat_get_live_tuples(c.oid) as live) n
  cross join lateral (
    select exists (
      select from pg_locks k
      where k.relation = c.oid and k.mode = 'AccessExclusiveLock' and k.pid <> pg_backend_pid()
        and k.database = (select d.oid from pg_database d where d.datname = current_database())) as locked) l
  where c.oid = '"${schema}".pgworker_history'::regclass;
comment on view "${schema}".pgworker_history_sizes is
  'How many entries the history has, estimated, how large it is, and whether another session has locked it against reading.';

-- Roles that could change jobs before an adoption can do so afterwards.
do $grants$
declare
  grantee text;
begin
  for grantee in
    select distinct case a.grantee when 0 then 'public' else quote_ident(pg_get_userbyid(a.grantee)) end
    from pg_class c, aclexplode(c.relacl) a
    where c.oid = '"${schema}"._private_jobs'::regclass and a.privilege_type = 'UPDATE' and a.grantee <> c.relowner
  loop
    execute format('grant select, insert, update, delete on "${schema}".pgworker_recoveries, "${schema}".pgworker_retirements, "${schema}".pgworker_batches, '
      '"${schema}".pgworker_cancellations, "${schema}".pgworker_running, "${schema}".pgworker_task_minutes, "${schema}".pgworker_samples, '
      '"${schema}".pgworker_schedules, "${schema}".pgworker_cleanup, "${schema}".pgworker_pauses, "${schema}".pgworker_turn, '
      '"${schema}".pgworker_limit_turn, "${schema}".pgworker_limit_arrivals, "${schema}".pgworker_limit_lanes, '
      '"${schema}".pgworker_limit_buckets, "${schema}".pgworker_steps, "${schema}".pgworker_signals to %s', grantee);
    execute format('grant select on "${schema}".pgworker_history, "${schema}".pgworker_history_settings, "${schema}".pgworker_history_sizes, '
      '"${schema}".pgworker_history_losses, '
      '"${schema}".pgworker_limits, "${schema}".pgworker_limited_tasks, "${schema}".pgworker_flow_waits to %s', grantee);
  end loop;
end
$grants$;

do $view$
begin
  if to_regclass('"${schema}".jobs') is null then
    create view "${schema}".jobs as
      select j.id, q.queue_name, t.identifier as task_identifier, j.priority, j.run_at, j.attempts, j.max_attempts, j.last_error,
        j.created_at, j.updated_at, j.key, j.locked_at, j.locked_by, j.revision, j.flags
      from "${schema}"._private_jobs j
      join "${schema}"._private_tasks t on t.id = j.task_id
      left join "${schema}"._private_job_queues q on q.id = j.job_queue_id;
  end if;
end
$view$;

-- Only in a new schema: what others have made stays as it is. The ledger gets its rows in the last chapter. The peers enable row level
-- security without a policy: a role that does not own the tables sees no row, even with rights, for example default ones. The guide has the
-- policies that let a role in. A setting shows R__00_indexes.sql that the tables are new.
do $new$
begin
  if not exists (select from "${schema}".migrations) then
    perform set_config('pgworker.installing', 'on', true);
    alter table "${schema}"._private_jobs enable row level security;
    alter table "${schema}"._private_job_queues enable row level security;
    alter table "${schema}"._private_tasks enable row level security;
    alter table "${schema}"._private_known_crontabs enable row level security;
    comment on table "${schema}".migrations is
      'Migration ledger shared with the Node.js and Rust workers, which assign the ids above 20.';
    comment on table "${schema}"._private_tasks is 'Task identifiers that jobs or workers have used.';
    comment on table "${schema}"._private_job_queues is
      'Named queues; a row is locked while a worker runs a job of the queue.';
    comment on table "${schema}"._private_jobs is 'Jobs; a row is deleted when its job succeeds.';
    comment on table "${schema}"._private_known_crontabs is
      'Crontab entries that a worker has registered, with their last execution.';
    comment on table "${schema}"._private_workers is 'Registered workers, which send heartbeats.';
    comment on view "${schema}".jobs is
      'Jobs with the names of their tasks and queues but without payloads, for inspection and monitoring.';
  end if;
end
$new$;


-- 3 Ledger --------------------------------------------------------------------------------------------------------------------

-- Both peers look at the highest id only, so 20 keeps Node.js from migrating over this schema, and Rust as far as it knows no higher one.
-- Node.js calls 19 breaking, Rust does not: it is, because workers that know nothing of it fetch several jobs of one queue at once. Rust
-- workers that support this schema know 19 and continue. Any Node.js worker stops when it is notified of a breaking migration, whatever its
-- number. That is done only where 19 was missing: there, none can be running that knows it.
do $ledger$
declare
  newest int;
begin
  select max(m.id) into newest from "${schema}".migrations m;
  insert into "${schema}".migrations (id)
    select i from generate_series(1, 20) i where not exists (select from "${schema}".migrations m where m.id = i);
  update "${schema}".migrations m set breaking = true where m.id in (1, 3, 11, 13, 14, 16, 19) and not m.breaking;
  if newest < 19 then
    perform pg_notify('worker:migrate', '{"migrationNumber":19,"breaking":true}');
  end if;
end
$ledger$;
