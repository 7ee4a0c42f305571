-- PgWorker: tables, types and views of the job queue. Its functions are in the repeatable migrations beside this file, one for each story,
-- which are applied in the order of their names, in the same transaction.
--
-- The interface (names, columns, signatures, behaviour) is the one of the Graphile Worker documentation, shared with the
-- Node.js and Rust workers (docs: "Compatibility", "Job keys", "Worker recovery"). The text is our own.
--
-- The scripts are written to be run in an empty schema as well as in one that Graphile Worker (Node: ledger 18 and later,
-- Rust: ledger 19 and later) has installed, while its workers run. What exists and fits is left as it is, with its oid, grants and
-- dependants; functions get new bodies in place; no row is lost. All of it is one transaction, so nobody sees half of it. The schema
-- itself must exist. The placeholder for its name is the only one used here. Needs PostgreSQL 12.
--
-- Tables whose names begin with _private_ have exactly the columns that the other workers know, whose prepared statements return
-- whole rows. What is ours stands in tables whose names begin with pgworker_.
--
-- Rules that keep every function, and the peers' statements, free of deadlocks:
--   * Row locks are taken in the order tasks, queues being created, jobs, queues being released; within a table in the order of
--     name, key or id.
--   * Whoever looks for work (claim) never waits for a row lock: SKIP LOCKED.
--   * Whoever writes an outcome (complete, release, recovery) skips jobs that somebody holds, and waits for queue rows only;
--     those are held by statements that wait for nothing.
--   * Only calls made for an application (add_job, remove_job, administration) wait for job rows.


set local client_min_messages = warning;


-- 1 Adoption ------------------------------------------------------------------------------------------------------------------

-- All locks on tables that other workers may be using, before anything else is done: in one order, and none is waited for any longer when
-- lock_timeout has passed since the first. So nobody waits for this script longer than that and the moment it runs; and as the
-- time is shorter than deadlock_timeout, whoever waits in a circle with it never learns of it. The caller repeats a run that got no lock.
-- The order is the one in which others take theirs, so circles are rare: who adds jobs looks at the tasks first and keeps that lock
-- until the transaction ends; once it is ours, those left have claimed or completed jobs, and go on to the queues.
-- The ledger is locked against migrations of others, the jobs against changes where the triggers of the history are missing; the others
-- only where their row level security is to be changed.
do $lock$
declare
  deadline constant timestamptz := clock_timestamp() + (
    select least(nullif(max(setting::int) filter (where name = 'lock_timeout'), 0), max(setting::int) filter (where name = 'deadlock_timeout') / 2)
      * interval '1 millisecond'
    from pg_settings where name in ('lock_timeout', 'deadlock_timeout'));
  needed record;
begin
  for needed in
    select format('lock table "${schema}".%I in %s mode', c.relname,
        case when c.relname = 'migrations' or c.relrowsecurity then 'share row exclusive' else 'access exclusive' end) as lock
    from unnest(array['migrations', '_private_known_crontabs', '_private_tasks', '_private_jobs', '_private_job_queues'])
      with ordinality t(name, place)
    join pg_class c on c.oid = to_regclass('"${schema}".' || t.name)
    where c.relname = 'migrations'
      or not c.relrowsecurity
      or c.relname = '_private_jobs' and 2 > (
        select count(*) from pg_trigger g where g.tgrelid = c.oid and g.tgname in ('pgworker_history_deleted', 'pgworker_history_updated'))
    order by t.place
  loop
    perform set_config('lock_timeout', greatest(1, ceil(extract(epoch from deadline - clock_timestamp()) * 1000))::int || 'ms', true);
    execute needed.lock;
  end loop;
end
$lock$;

-- Refuses schemas that cannot be brought to this state.
do $adopt$
declare
  newest int;
  unknown int;
begin
  if to_regclass('"${schema}".migrations') is null then
    if to_regclass('"${schema}"._private_jobs') is not null or to_regclass('"${schema}".jobs') is not null then
      raise exception 'Schema "${schema}" contains tables of a job queue, but no table "migrations" that says which'
        using hint = 'Let PgWorker use an empty schema, or one that Graphile Worker installed.';
    end if;
    return;
  end if;
  execute 'select max(id), min(id) filter (where breaking and id > 20) from "${schema}".migrations' into newest, unknown;
  if unknown is not null then
    raise exception 'Schema "${schema}" was changed by a later Graphile Worker: migration % is breaking and unknown here', unknown
      using hint = 'Use a version of PgWorker that knows this migration.';
  elsif newest < 18 then
    raise exception 'Schema "${schema}" was installed by an older Graphile Worker (migration %); at least migration 18 is needed', newest
      using hint = 'Run the migrations of Graphile Worker 0.16.6 or later on it first (npx graphile-worker --schema-only).';
  elsif newest is null then
    if to_regclass('"${schema}"._private_jobs') is not null or to_regclass('"${schema}".jobs') is not null then
      raise exception 'Schema "${schema}" contains tables of a job queue, but its table "migrations" is empty'
        using hint = 'Let PgWorker use an empty schema, or one that Graphile Worker installed.';
    end if;
  end if;
end
$adopt$;

-- Functions of the shared interface are replaced in place, further down. PostgreSQL refuses that only where names of parameters or the
-- result differ, which they do in no version that is adopted here: such a function was made by hand, and is dropped. Types are
-- compared by oid, as their names depend on the search_path. Overloads with other parameters are somebody else's, and stay.
do $drop$
declare
  different record;
begin
  if to_regclass('"${schema}"._private_jobs') is null or to_regtype('"${schema}".job_spec') is null then
    return;
  end if;
  for different in
    select p.oid::regprocedure as signature
    from (values
      ('add_job', '{text,json,text,timestamptz,int4,text,int4,text[],text}',
        '{identifier,payload,queue_name,run_at,max_attempts,job_key,priority,flags,job_key_mode}', '"${schema}"._private_jobs', false),
      ('add_jobs', '{"\"${schema}\".job_spec[]",bool}', '{specs,job_key_preserve_run_at}', '"${schema}"._private_jobs', true),
      ('remove_job', '{text}', '{job_key}', '"${schema}"._private_jobs', false),
      ('complete_jobs', '{int8[]}', '{job_ids}', '"${schema}"._private_jobs', true),
      ('permanently_fail_jobs', '{int8[],text}', '{job_ids,error_message}', '"${schema}"._private_jobs', true),
      ('reschedule_jobs', '{int8[],timestamptz,int4,int4,int4}', '{job_ids,run_at,priority,attempts,max_attempts}',
        '"${schema}"._private_jobs', true),
      ('force_unlock_workers', '{text[]}', '{worker_ids}', 'void', false),
      ('worker_heartbeat', '{text,json}', '{worker_id,metadata}', 'void', false),
      ('worker_deregister', '{text}', '{worker_id}', 'void', false),
      ('list_stale_workers', '{interval}', '{stale_threshold,worker_id}', 'text', true),
      ('list_orphan_locked_workers', '{interval}', '{stale_threshold,worker_id}', 'text', true),
      ('recover_dead_worker_jobs', '{text[],interval}', '{worker_ids,recovery_delay}', 'int4', false),
      ('delete_stale_workers', '{text[]}', '{worker_ids}', 'void', false)) fitting (name, parameters, names, result, is_set)
    join pg_proc p on p.pronamespace = '"${schema}"'::regnamespace and p.proname = fitting.name
      and array(select unnest(p.proargtypes::oid[])) = array(select unnest(fitting.parameters::regtype[])::oid)
    where p.proargnames is distinct from fitting.names::text[]
      or p.prorettype <> fitting.result::regtype
      or p.proretset <> fitting.is_set
  loop
    execute 'drop function ' || different.signature;
  end loop;
end
$drop$;

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
  end if;
end
$type$;
comment on type "${schema}".job_spec is 'One job for add_jobs; an omitted field is null.';

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

do $type$
begin
  if to_regtype('"${schema}".pgworker_run') is null then
    create type "${schema}".pgworker_run as (
      job_id bigint, started_at timestamptz, took interval, created_at timestamptz, run_at timestamptz, attempt smallint, priority smallint,
      task_identifier text, queue_name text, key text, worker_id text, trace_id text, flags jsonb, result text, payload json);
    comment on type "${schema}".pgworker_run is 'A run that pgworker_release is about to end, as the history shows it.';
  end if;
end
$type$;

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

-- key carries a plain unique constraint, not a partial index: statements of the peers and of migrations they may add say
-- "on conflict (key)", which only the plain one answers.
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
-- table tells the two apart, and goes without rows of jobs that are gone in the same way.
create table if not exists "${schema}".pgworker_retirements (
  job_id bigint constraint pgworker_retirements_pkey primary key,
  removed boolean not null
);
comment on table "${schema}".pgworker_retirements is
  'Jobs that were superseded by a newer job with their key, or removed by key, while they ran; the job may no longer exist.';

-- A running job that is cancelled is retired as well, and deleted when its run ends otherwise than by success. Whoever ends it so writes the
-- outcome in the same transaction; so a row without an outcome whose job is gone is that of a job that succeeded, which costs completions
-- nothing. Rows stay for an hour after the end, for those who ask.
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

-- Recurring jobs that applications and people make at run time. Whoever executes one locks its row, adds the job and sets the next time in one
-- transaction, so that each time is executed once. next_at is -infinity where a worker has to find out when it is due, as only Java knows
-- all grammars, and null where nothing will be due: it has ended, or waits for the end of its last job (awaits_end), or has a problem.
-- Until retry_at nobody looks at one that has failed, and one that makes up for much has its turn then: others are not to wait behind them.
-- Workers read hundreds at a time, hence the limit of the payload. The names are in the order of their characters, which prefixes and pages need.
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
  overlap text not null default 'allow' constraint pgworker_schedules_overlap_check check (overlap in ('allow', 'queue', 'skip')),
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

-- A paused queue is kept by the lock of its own row, which all workers respect; this table says who has paused it, and who held it then.
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

-- What became of jobs, where a schema keeps that. Nothing is written here until somebody switches it on, see R__50_history.sql. The
-- partitions, made further down, are a ring: each takes what ends in a stretch of time, the one after the last is emptied before it is its
-- turn, and is then the newest. So old entries go at no cost, and none is ever deleted by itself. No key, because nothing that stands here
-- already may keep a job from ending.
create table if not exists "${schema}".pgworker_history (
  job_id bigint not null,
  ended_at timestamptz not null,
  started_at timestamptz,
  took interval,
  created_at timestamptz not null,
  run_at timestamptz not null,
  slot smallint not null,
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
) partition by list (slot);
comment on table "${schema}".pgworker_history is
  'Runs that have ended and jobs that have ended without running; outcome is succeeded, retried, failed, removed, cancelled or recovered. Empty '
  'unless worker.history.enabled is set.';
create table if not exists "${schema}".pgworker_history_default partition of "${schema}".pgworker_history default;
create index if not exists pgworker_history_job on "${schema}".pgworker_history (job_id);
create index if not exists pgworker_history_ended on "${schema}".pgworker_history (ended_at, job_id);

create table if not exists "${schema}".pgworker_history_settings (
  only_row boolean default true constraint pgworker_history_settings_pkey primary key
    constraint pgworker_history_settings_check check (only_row),
  enabled boolean not null default false,
  keep_for interval not null default '14 days',
  keep_most bigint not null default 1000000,
  payloads boolean not null default true,
  slot smallint not null default 0,
  slot_since timestamptz not null default now()
);
insert into "${schema}".pgworker_history_settings default values on conflict do nothing;
comment on table "${schema}".pgworker_history_settings is
  'Whether the schema keeps a history, for how long and how much of it, and where the next entries go.';
create table if not exists "${schema}".pgworker_history_losses (
  lost_at timestamptz not null,
  jobs bigint not null,
  reason text not null
);
comment on table "${schema}".pgworker_history_losses is
  'How many ends of jobs of the last day the history does not show, and why. Rows of one hour and reason are combined when there are many.';

-- Limits of the cluster, see R__60_limits_parking.sql. A limit is either one of concurrency or one of rate. The last six columns say how
-- far the jobs that are there know of it. Adding and ending jobs writes nothing of what follows: only a gate does, and only one at a time,
-- so that nobody who adds or ends jobs waits for another who does.
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
  declared boolean not null default false,
  state text not null default 'applying' constraint pgworker_limits_state_check check (state in ('applying', 'active', 'removing')),
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  unaware text[],
  looked_at timestamptz,
  place bigint,
  passed boolean not null default false,
  sure boolean not null default false,
  settled boolean not null default false,
  constraint pgworker_limits_kind_check check (
    (max_running is null) = (max_starts is not null)
    and (max_starts is null) = (period is null) and (max_starts is null) = (burst is null))
);
comment on table "${schema}".pgworker_limits is
  'At most max_running jobs of these tasks at once, or max_starts of them in each period, for each value of a field of the payload if one is '
  'given. In state applying it is being made known to the jobs that are there, in state removing they are being let go.';
create table if not exists "${schema}".pgworker_limited_tasks (
  task_identifier text collate "C" constraint pgworker_limited_tasks_pkey primary key,
  task_id int not null constraint pgworker_limited_tasks_task_key unique,
  limit_ids int[] not null,
  fields text[] not null
);
comment on table "${schema}".pgworker_limited_tasks is
  'What adding a job has to know: the limits that jobs of a task are subject to, and the text of the field of each, null if it has none.';
create table if not exists "${schema}".pgworker_limit_state (
  name text constraint pgworker_limit_state_pkey primary key constraint pgworker_limit_state_check check (name in ('changes', 'checked')),
  number bigint not null
);
insert into "${schema}".pgworker_limit_state (name, number) values ('changes', 0), ('checked', -1) on conflict do nothing;
comment on table "${schema}".pgworker_limit_state is
  'How often limits were made, changed or deleted, and up to which job permits have been checked.';
create table if not exists "${schema}".pgworker_limit_buckets (
  id bigint generated always as identity constraint pgworker_limit_buckets_pkey primary key,
  limit_id int not null,
  value text collate "C" not null,
  tokens float8,
  filled_at timestamptz,
  unstarted int not null default 0,
  turn text collate "C",
  holders bigint[] not null default '{}',
  since int[] not null default '{}',
  looked_at timestamptz,
  constraint pgworker_limit_buckets_value_key unique (limit_id, value)
) with (fillfactor = 40, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_scale_factor = 0.05);
comment on table "${schema}".pgworker_limit_buckets is
  'Values for which limits have been used lately: the jobs that were admitted, in their order, with the second since 2000 in which each was, and when all of '
  'these were looked at; the tokens of a rate as of a time; how many of the jobs had not started; and the lane that had the last turn.';
create table if not exists "${schema}".pgworker_limit_lanes (
  lane text collate "C" constraint pgworker_limit_lanes_pkey primary key,
  task_id int not null,
  queue_id int,
  buckets bigint[] not null,
  used_at timestamptz not null,
  level int not null,
  floor_priority int,
  floor_run_at timestamptz,
  floor_id bigint,
  floor_until timestamptz
) with (fillfactor = 70, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_scale_factor = 0.05);
create index if not exists pgworker_limit_lanes_used on "${schema}".pgworker_limit_lanes (used_at);
create index if not exists pgworker_limit_lanes_floors on "${schema}".pgworker_limit_lanes (lane) where floor_until is not null;
comment on table "${schema}".pgworker_limit_lanes is
  'Jobs that wait for the same: of one task, in one queue or none, with the same flags and values; the first of them had the priority that is the '
  'level. Where a floor is given, none has been seen before '
  'that priority, time and id, and from when on somebody is to look whether that is still so.';
create table if not exists "${schema}".pgworker_limit_turns (
  bucket_id bigint,
  lane text collate "C",
  constraint pgworker_limit_turns_pkey primary key (bucket_id, lane)
);
comment on table "${schema}".pgworker_limit_turns is 'The lanes that wait for a bucket.';
-- The job is the permit: who has been admitted and has ended since has none, though a gate has not noticed.
create or replace view "${schema}".pgworker_permits as
  select b.id as bucket_id, h.job_id, timestamptz '2000-01-01 00:00:00+00' + h.since * interval '1 second' as admitted_at
  from "${schema}".pgworker_limit_buckets b
  join "${schema}".pgworker_limits l on l.id = b.limit_id
  cross join lateral unnest(b.holders, b.since) h(job_id, since)
  where exists (
    select from "${schema}"._private_jobs j
    where j.id = h.job_id
      and (j.is_available or l.max_running is not null and j.locked_at is not null and j.locked_at <> '9999-01-01 00:00:00+00'));
comment on view "${schema}".pgworker_permits is
  'Jobs of limited tasks that may run: until they have ended, or, where the limit is a rate, until they have started.';

-- Partitions may be new, and nobody have analysed them.
create or replace view "${schema}".pgworker_history_sizes as
  select c.oid as relation, c.relname as name, substring(pg_get_expr(c.relpartbound, c.oid) from '[0-9]+')::smallint as slot,
    case
      when pg_relation_size(c.oid) = 0 then 0
      when pg_stat_get_live_tuples(c.oid) > 0 then pg_stat_get_live_tuples(c.oid)
      when c.relpages > 0 and c.reltuples > 0 then
        (c.reltuples::float8 * pg_relation_size(c.oid) / current_setting('block_size')::int / c.relpages)::bigint
      else pg_relation_size(c.oid) / 300
    end as entries,
    pg_total_relation_size(c.oid) as bytes
  from pg_inherits i
  join pg_class c on c.oid = i.inhrelid
  where i.inhparent = '"${schema}".pgworker_history'::regclass;
comment on view "${schema}".pgworker_history_sizes is 'Partitions of the history with the estimated number of their entries.';

-- A partition that somebody dropped cannot come back while the default partition has its entries.
do $ring$
begin
  for number in 0..15 loop
    if not exists (select from "${schema}".pgworker_history_sizes z where z.slot = number) then
      begin
        execute format(
          'create table "${schema}".pgworker_history_%s partition of "${schema}".pgworker_history for values in (%s)', number, number);
      exception when check_violation then
        null;
      end;
    end if;
  end loop;
end
$ring$;

-- Whoever could change jobs before an adoption can do so afterwards.
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
      '"${schema}".pgworker_schedules, "${schema}".pgworker_cleanup, "${schema}".pgworker_pauses, "${schema}".pgworker_turn to %s', grantee);
    execute format('grant select on "${schema}".pgworker_history, "${schema}".pgworker_history_settings, "${schema}".pgworker_history_sizes, '
      '"${schema}".pgworker_history_losses, '
      '"${schema}".pgworker_limits, "${schema}".pgworker_limited_tasks, "${schema}".pgworker_limit_buckets, "${schema}".pgworker_limit_lanes, '
      '"${schema}".pgworker_limit_turns, "${schema}".pgworker_permits to %s', grantee);
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

-- Only where nobody was here before: a comment takes a lock, too. The ledger gets its rows in the last chapter.
-- R__00_indexes.sql is told that the tables are new.
do $comments$
begin
  if not exists (select from "${schema}".migrations) then
    perform set_config('pgworker.installing', 'on', true);
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
$comments$;


-- 3 Access --------------------------------------------------------------------------------------------------------------------

-- The peers enable row level security without a policy: who does not own the tables sees no row, whatever is granted to him by default
-- for instance. So it stays; the guide has the policies that let a role in.
do $access$
declare
  name text;
begin
  foreach name in array array['_private_jobs', '_private_job_queues', '_private_tasks', '_private_known_crontabs'] loop
    if not (select c.relrowsecurity from pg_class c where c.oid = format('"${schema}".%I', name)::regclass) then
      execute format('alter table "${schema}".%I enable row level security', name);
    end if;
  end loop;
end
$access$;


<<<<<<< HEAD
-- 4 Ledger --------------------------------------------------------------------------------------------------------------------
=======
-- 5 Helpers -------------------------------------------------------------------------------------------------------------------

-- Called by the functions of the chapters below only, with the rights of whoever calls those. Each looks at a bounded number of rows.

create or replace function "${schema}".pgworker_backoff(attempts int) returns interval
language sql immutable as $$
  select pg_catalog.exp(greatest(0, least(attempts, 10))::pg_catalog.float8) operator(pg_catalog.*) '1 second'::pg_catalog.interval
$$;
comment on function "${schema}".pgworker_backoff(int) is
  'Delay after the given number of failed attempts: e to the power of that number, in seconds, at most about six hours.';

create or replace function "${schema}".pgworker_wake(
  job_count bigint, earliest timestamptz default null, priorities text default null, queued boolean default false,
  job_id bigint default null, job_ids text default null
) returns void
language plpgsql volatile as $$
begin
  if job_count operator(pg_catalog.>) 0 then
    perform pg_catalog.pg_notify('jobs:insert', pg_catalog.concat('{"r":', pg_catalog.random(), ',"count":', job_count,
      ',"at":'::pg_catalog.text operator(pg_catalog.||)
        case when pg_catalog.isfinite(earliest) then (pg_catalog.date_part('epoch', earliest) operator(pg_catalog.*) 1000)::bigint end
          ::pg_catalog.text,
      coalesce(',"p":['::pg_catalog.text operator(pg_catalog.||) priorities operator(pg_catalog.||) ']'::pg_catalog.text, ',"p":null'),
      case when queued then ',"q":true' end, case when job_id is not null then pg_catalog.concat(',"id":', job_id) end,
      ',"ids":['::pg_catalog.text operator(pg_catalog.||) job_ids operator(pg_catalog.||) ']'::pg_catalog.text, '}'));
  end if;
end
$$;
comment on function "${schema}".pgworker_wake(bigint, timestamptz, text, boolean, bigint, text) is
  'Tells all workers that so many jobs may have become due; says nothing when there are none. Where the caller knows it, also when the '
  'first of them is due, separated by commas which priorities they have, and whether all are in queues: workers that do not begin to '
  'look at the first job of all look there. An empty text says that none has come to a place where none was before. '
  'The id is that of the only one, if it is due already, has neither queue nor flags, and may be claimed; the ids, separated by commas and '
  'no more than fit into a notification, are those of all of them, which are due: a worker need not look for them where they were added.';

create or replace function "${schema}".pgworker_announce(job_count bigint, queue_names text[], run_ats timestamptz[], priorities int[])
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp as $$
declare
  earliest timestamptz := now();
  levels text := '0';
begin
  if run_ats is not null then
    select min(coalesce(r.run_at, now())) into earliest from unnest(run_ats) r(run_at);
  end if;
  if priorities is not null then
    select case when count(distinct l.level) <= 16 then string_agg(distinct l.level, ',') end into levels
      from (select coalesce(p.priority, 0)::text as level from unnest(priorities) p(priority)) l;
  end if;
  perform "${schema}".pgworker_wake(
    job_count, earliest, levels,
    queue_names is not null and cardinality(queue_names) >= job_count and array_position(queue_names, null) is null);
end
$$;
comment on function "${schema}".pgworker_announce(bigint, text[], timestamptz[], int[]) is
  'Tells all workers of so many jobs that have been added with these queues, times and priorities; an array that is null stands for nulls.';

-- Looks before it inserts: the usual call writes nothing and burns no id.
-- The row of a queue is changed all the time, and while somebody holds a snapshot its former versions stay. The newest one has the last
-- index entry: an equality read forwards would meet all the others first, so single rows of queues are looked up in ranges read backwards.
create or replace function "${schema}".pgworker_task_id(name text) returns int
language plpgsql volatile
set search_path = pg_catalog, pg_temp as $$
declare
  found_id int;
begin
  loop
    select t.id into found_id from "${schema}"._private_tasks t where t.identifier = name;
    if found then return found_id; end if;
    if not "${schema}".pgworker_fits(name, null, null, null, null) then
      perform "${schema}".pgworker_refuse(name, null, null, null, null);
    end if;
    insert into "${schema}"._private_tasks as t (identifier) values (name)
      on conflict (identifier) do nothing
      returning t.id into found_id;
    if found then return found_id; end if;
  end loop;
end
$$;
comment on function "${schema}".pgworker_task_id(text) is 'Returns the id of a task identifier, which is created if it does not exist.';

create or replace function "${schema}".pgworker_queue_id(name text) returns int
language plpgsql volatile
set search_path = pg_catalog, pg_temp as $$
declare
  found_id int;
begin
  loop
    select q.id into found_id from "${schema}"._private_job_queues q
      where q.queue_name >= name and q.queue_name <= name order by q.queue_name desc limit 1;
    if found then return found_id; end if;
    if not "${schema}".pgworker_fits('', name, null, null, null) then
      perform "${schema}".pgworker_refuse('', name, null, null, null);
    end if;
    insert into "${schema}"._private_job_queues as q (queue_name) values (name)
      on conflict (queue_name) do nothing
      returning q.id into found_id;
    if found then return found_id; end if;
  end loop;
end
$$;
comment on function "${schema}".pgworker_queue_id(text) is 'Returns the id of a queue name, which is created if it does not exist.';

-- The clean-up deletes a name only when no transaction is open that may have looked it up, but a snapshot taken before that
-- still shows the deleted row. Locking the row makes such a transaction fail with 40001 instead of adding a job to nowhere.
create or replace function "${schema}".pgworker_hold_names(identifiers text[], queue_names text[]) returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp as $$
begin
  if has_any_column_privilege('"${schema}"._private_tasks', 'UPDATE')
      and has_any_column_privilege('"${schema}"._private_job_queues', 'UPDATE') then
    perform from "${schema}"._private_tasks t where t.identifier = any(identifiers) order by t.id for key share;
    perform from "${schema}"._private_job_queues q where q.queue_name = any(queue_names) order by q.id for key share;
    return;
  end if;
  -- Who may not lock rows may insert them all the same: a name that is there conflicts, and stays because the table is in use.
  insert into "${schema}"._private_tasks (identifier)
    select distinct i.name from unnest(identifiers) i(name) order by 1 on conflict (identifier) do nothing;
  if not found then
    insert into "${schema}"._private_job_queues (queue_name)
      select distinct i.name from unnest(queue_names) i(name) where i.name is not null order by 1
      on conflict (queue_name) do nothing;
  end if;
  if found then
    raise exception 'could not serialize access: a task or queue was cleaned up meanwhile' using errcode = '40001';
  end if;
end
$$;
comment on function "${schema}".pgworker_hold_names(text[], text[]) is
  'Prevents names from being cleaned up until the transaction ends; for transactions whose snapshot is older than their lookup of the names.';

-- Only missing names are written, by everybody in name order (binary collation), so that two batches cannot wait in a circle.
create or replace function "${schema}".pgworker_know_names(identifiers text[], queue_names text[]) returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp as $$
begin
  perform "${schema}".pgworker_task_id(missing.name)
    from (
      select name collate "C" as name from unnest(identifiers) name
      except select t.identifier from "${schema}"._private_tasks t where t.identifier = any(identifiers)
      order by 1) missing;
  perform "${schema}".pgworker_queue_id(missing.name)
    from (
      select name collate "C" as name from unnest(queue_names) name where name is not null
      except select q.queue_name from "${schema}"._private_job_queues q where q.queue_name = any(queue_names)
      order by 1) missing;
  if current_setting('transaction_isolation') <> 'read committed' then
    perform "${schema}".pgworker_hold_names(identifiers, queue_names);
  end if;
end
$$;
comment on function "${schema}".pgworker_know_names(text[], text[]) is
  'Creates the missing tasks and queues of a batch; null queue names are ignored.';

create or replace function "${schema}".pgworker_flags(names text[]) returns jsonb
language plpgsql immutable as $$
declare
  stored pg_catalog.jsonb;
  given boolean;
begin
  select pg_catalog.jsonb_object_agg(coalesce(name, ''), true), pg_catalog.bool_and(name is not null) into stored, given
    from pg_catalog.unnest(names) name;
  if not given then
    raise exception 'flags must not contain null' using errcode = '22004';
  end if;
  return stored;
end
$$;
comment on function "${schema}".pgworker_flags(text[]) is 'Stored form of a list of flags; null when there are none.';

-- The server's own error quotes the text. A worker's error is read by others than whoever knows the payload.
create or replace function "${schema}".pgworker_json(argument text, texts text[]) returns json[]
language plpgsql immutable
set search_path = pg_catalog, pg_temp as $$
begin
  return texts::json[];
exception when others then
  for place in 1..cardinality(texts) loop
    begin
      perform texts[place]::json;
    exception when others then
      raise exception '%[%] is not JSON', argument, place using errcode = '22P02';
    end;
  end loop;
  raise exception '% must be a list of JSON values', argument using errcode = '22P02';
end
$$;
comment on function "${schema}".pgworker_json(text, text[]) is
  'The texts as JSON values; an error names the argument and the place of the first that is none.';

create or replace function "${schema}".pgworker_next_revision(revision int) returns int
language sql immutable as $$ select (revision operator(pg_catalog.%) 2147483647) operator(pg_catalog.+) 1 $$;
comment on function "${schema}".pgworker_next_revision(int) is
  'Revision of a job that is added again: one more, and 1 after the greatest, as 0 is that of a job that was added once.';

-- Joined as texts: jsonb refuses some payloads that json stores, with an error that quotes them.
create or replace function "${schema}".pgworker_merge(old_payload json, new_payload json) returns json
language sql immutable as $$
  select case
    when pg_catalog.json_typeof(old_payload) operator(pg_catalog.<>) 'array'
        or pg_catalog.json_typeof(new_payload) operator(pg_catalog.<>) 'array'
        or pg_catalog.json_array_length(old_payload) operator(pg_catalog.=) 0
      then new_payload
    when pg_catalog.json_array_length(new_payload) operator(pg_catalog.=) 0 then old_payload
    else (pg_catalog.left(pg_catalog.rtrim(old_payload::pg_catalog.text, E' \t\n\r'), -1) operator(pg_catalog.||) ', '
      operator(pg_catalog.||) pg_catalog.substr(pg_catalog.ltrim(new_payload::pg_catalog.text, E' \t\n\r'), 2))::pg_catalog.json
  end
$$;
comment on function "${schema}".pgworker_merge(json, json) is 'Payload of a job that is added again: arrays are concatenated.';

-- Volatile, so that it sees what was committed since the statement that calls it began. The text in last_error is written only by
-- callers without a right to write the table.
create or replace function "${schema}".pgworker_retirement(job_id bigint, last_error text) returns text
language plpgsql volatile
set search_path = pg_catalog, pg_temp as $$
declare
  removed boolean;
begin
  if exists (
    select from "${schema}".pgworker_cancellations c where c.job_id = pgworker_retirement.job_id and c.outcome is null)
  then
    return 'Cancelled while running';
  end if;
  select r.removed into removed from "${schema}".pgworker_retirements r where r.job_id = pgworker_retirement.job_id;
  return case
    when removed or last_error = 'Removed by its key while running' then 'Removed by its key while running'
    when not removed or last_error = 'Superseded by a newer job with the same key while running'
      then 'Superseded by a newer job with the same key while running'
  end;
end
$$;
comment on function "${schema}".pgworker_retirement(bigint, text) is
  'Outcome of a locked job that has no key and no attempts left: the text that says that it was cancelled, superseded or removed '
  'while running, or null if it was not.';

-- Rust workers of ledger 22 keep a table of their own, which they consult before giving an attempt back. It is kept up to date
-- where it exists.
create or replace function "${schema}".pgworker_retire(job_id bigint, removed boolean) returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp as $$
begin
  begin
    insert into "${schema}".pgworker_retirements (job_id, removed) values (pgworker_retire.job_id, pgworker_retire.removed)
      on conflict on constraint pgworker_retirements_pkey do nothing;
  exception when insufficient_privilege then
    update "${schema}"._private_jobs j set last_error = case
        when pgworker_retire.removed then 'Removed by its key while running'
        else 'Superseded by a newer job with the same key while running'
      end
      where j.id = pgworker_retire.job_id;
  end;
  if to_regclass('"${schema}"._private_job_retirements') is not null then
    execute 'insert into "${schema}"._private_job_retirements (id) values ($1) on conflict do nothing' using pgworker_retire.job_id;
  end if;
end
$$;
comment on function "${schema}".pgworker_retire(bigint, boolean) is 'Records that a running job was superseded or removed by its key.';

create or replace function "${schema}".pgworker_revive(job_id bigint) returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp as $$
begin
  delete from "${schema}".pgworker_retirements r where r.job_id = pgworker_revive.job_id;
  delete from "${schema}".pgworker_cancellations c where c.job_id = pgworker_revive.job_id;
  if to_regclass('"${schema}"._private_job_retirements') is not null then
    execute 'delete from "${schema}"._private_job_retirements where id = $1' using pgworker_revive.job_id;
  end if;
end
$$;
comment on function "${schema}".pgworker_revive(bigint) is 'Deletes the record that a job was superseded, removed or cancelled, so that it may run again.';

-- The channel tells one worker; to others the notification means nothing. A name that no PgWorker has may be too long for it.
-- A worker of Node.js that gives a job back which it has fetched and not started takes an attempt off, so it gets one too many.
create or replace function "${schema}".pgworker_cancel_running(job_id bigint, worker_id text, by text) returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp as $$
begin
  if pgworker_cancel_running.worker_id is null or pgworker_cancel_running.worker_id not like 'pgworker-%' then
    update "${schema}"._private_jobs j set
        max_attempts = least(j.max_attempts, 32766),
        attempts = least(j.max_attempts, 32766) + 1
      where j.id = pgworker_cancel_running.job_id and j.attempts <= j.max_attempts;
  end if;
  perform "${schema}".pgworker_retire(pgworker_cancel_running.job_id, true);
  insert into "${schema}".pgworker_cancellations as c (job_id, requested_at, requested_by, worker_id)
    values (pgworker_cancel_running.job_id, clock_timestamp(), by, coalesce(pgworker_cancel_running.worker_id, ''))
    on conflict on constraint pgworker_cancellations_pkey do update set
      requested_at = excluded.requested_at, requested_by = excluded.requested_by, worker_id = excluded.worker_id,
      outcome = null, ended_at = null
    where c.outcome is not null or c.worker_id <> excluded.worker_id;
  if octet_length(pgworker_cancel_running.worker_id) <= 2000 then
    perform pg_notify('pgworker:cancel', pgworker_cancel_running.worker_id);
  end if;
end
$$;
comment on function "${schema}".pgworker_cancel_running(bigint, text, text) is
  'Records that a running job, which has lost its key and its attempts already, is cancelled, and tells the worker that holds it.';

-- A row that a trigger of somebody's keeps stays as that of a failed job; the job has been cancelled all the same.
create or replace function "${schema}".pgworker_end_cancelled(job_ids bigint[]) returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp as $$
declare
  cancelled bigint;
  context text;
begin
  perform set_config('pgworker.ending', '', true), set_config('pgworker.run_ids', '', true);
  for cancelled in
    select c.job_id from "${schema}".pgworker_cancellations c
    join "${schema}"._private_jobs j on j.id = c.job_id and j.locked_at is null and not j.is_available
    where c.job_id = any(job_ids) and c.outcome is null
    order by c.job_id for update of j skip locked
  loop
    update "${schema}".pgworker_cancellations c set outcome = 'cancelled', ended_at = clock_timestamp() where c.job_id = cancelled;
    begin
      delete from "${schema}"._private_jobs j where j.id = cancelled;
      delete from "${schema}".pgworker_retirements r where r.job_id = cancelled;
      if to_regclass('"${schema}"._private_job_retirements') is not null then
        execute 'delete from "${schema}"._private_job_retirements where id = $1' using cancelled;
      end if;
    exception when others or assert_failure or query_canceled then
      get stacked diagnostics context = pg_exception_context;
      if not "${schema}".pgworker_about_row(sqlstate, context) then raise; end if;
      raise warning 'Job % was cancelled but cannot be deleted: %', cancelled, sqlerrm;
    end;
  end loop;
end
$$;
comment on function "${schema}".pgworker_end_cancelled(bigint[]) is
  'Deletes those of the given jobs that were cancelled while they ran, and that nobody runs any more, and records that.';

-- Other workers leave a job that was cancelled as a failed one. Nobody waits here.
create or replace function "${schema}".pgworker_tend_cancellations() returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp as $$
begin
  if not exists (select from "${schema}".pgworker_cancellations) then return; end if;
  perform "${schema}".pgworker_end_cancelled(array(
    select c.job_id from "${schema}".pgworker_cancellations c where c.outcome is null));
  update "${schema}".pgworker_cancellations c set outcome = 'completed', ended_at = clock_timestamp()
    where c.job_id in (
      select o.job_id from "${schema}".pgworker_cancellations o
      where o.outcome is null and not exists (select from "${schema}"._private_jobs j where j.id = o.job_id)
      for update of o skip locked);
  delete from "${schema}".pgworker_cancellations c
    where c.job_id in (
      select o.job_id from "${schema}".pgworker_cancellations o
      where o.ended_at < clock_timestamp() - interval '1 hour'
      for update skip locked);
end
$$;
comment on function "${schema}".pgworker_tend_cancellations() is
  'Ends cancelled jobs whose workers have left them as failed ones, notes which have succeeded, and forgets those that ended an hour ago.';

-- One snapshot: who ends a cancelled job otherwise than by success says so where he deletes it.
create or replace function "${schema}".pgworker_cancel_states(job_ids bigint[])
returns table (id bigint, outcome text, requested_at timestamptz, requested_by text, worker_id text)
language sql stable
set search_path = pg_catalog, pg_temp as $$
  select c.job_id,
    case
      when c.outcome is not null then c.outcome
      when j.id is null then 'completed'
      when j.locked_at is null then 'cancelled'
      when exists (
        select from "${schema}"._private_workers w
        where w.id = c.worker_id and jsonb_typeof(w.metadata) = 'object' and w.metadata ->> 'implementation' = 'pgworker')
        then 'requested'
      else 'marked'
    end,
    c.requested_at, c.requested_by, c.worker_id
  from "${schema}".pgworker_cancellations c
  left join "${schema}"._private_jobs j on j.id = c.job_id
  where c.job_id = any(job_ids)
  order by c.job_id
$$;
comment on function "${schema}".pgworker_cancel_states(bigint[]) is
  'What has become of jobs that were cancelled while they ran: "requested" (its worker has been told, or is dead), "marked" (its worker cannot be '
  'told; it will not run again), "cancelled" or "completed" (it had succeeded before it could be cancelled). Others are left out.';

-- A worker writes only its own rows, and those that are here are no longer those of its claims.
create or replace function "${schema}".pgworker_forget_running() returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp as $$
begin
  delete from "${schema}".pgworker_running r where r.ctid = any(array(
    select o.ctid from "${schema}".pgworker_running o
    where not exists (
      select from "${schema}"._private_jobs j where j.id = o.job_id and j.locked_by = o.worker_id and j.locked_at = o.locked_at)
    for update of o skip locked));
end
$$;
comment on function "${schema}".pgworker_forget_running() is 'Deletes the records about runs that are over, of dead workers for instance.';

-- Nobody adds to the rows of a job that is gone, so one who deletes them waits for nobody. Who may not write what workers record leaves it
-- to them.
create or replace function "${schema}".pgworker_sweep_up() returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp as $$
begin
  delete from "${schema}".pgworker_recoveries r where r.job_id in (
    select o.job_id from "${schema}".pgworker_recoveries o
    where not exists (select from "${schema}"._private_jobs j where j.id = o.job_id)
    for update skip locked);
  delete from "${schema}".pgworker_retirements r where r.job_id in (
    select o.job_id from "${schema}".pgworker_retirements o
    where not exists (select from "${schema}"._private_jobs j where j.id = o.job_id)
    for update skip locked);
  if has_function_privilege('"${schema}".pgworker_forget_running()', 'execute')
    and (
      select bool_and(has_table_privilege('"${schema}".pgworker_running', needed)) from unnest(array['select', 'update', 'delete']) needed)
  then
    perform "${schema}".pgworker_forget_running();
  end if;
end
$$;
comment on function "${schema}".pgworker_sweep_up() is 'Deletes the records about jobs that no longer exist.';

-- An hour is more than any heartbeat interval that PgWorker allows.
create or replace function "${schema}".pgworker_lives(worker_id text) returns boolean
language sql stable as $$
  select exists (
    select from "${schema}"._private_workers w
    where w.id operator(pg_catalog.=) pgworker_lives.worker_id
      and w.last_heartbeat_at operator(pg_catalog.>) (pg_catalog.now() operator(pg_catalog.-) interval '1 hour'))
$$;
comment on function "${schema}".pgworker_lives(text) is 'Whether the worker is registered and has sent a heartbeat within the last hour.';

-- Locks of four hours count as none, except those of a worker that proves its life, and so does the lock of a job that waits for a limit.
create or replace function "${schema}".pgworker_locked(locked_at timestamptz, locked_by text) returns boolean
language sql stable as $$
  select locked_at is not null and locked_at operator(pg_catalog.<>) '9999-01-01 00:00:00+00'::pg_catalog.timestamptz and (
    locked_at operator(pg_catalog.>) (pg_catalog.now() operator(pg_catalog.-) interval '4 hours')
      or "${schema}".pgworker_lives(locked_by))
$$;
comment on function "${schema}".pgworker_locked(timestamptz, text) is 'Whether such a lock still protects its job from administration.';

-- What a trigger of somebody's raises would be raised again for the same row, so that row is passed over. A conflict, a deadlock or a
-- cancellation of the server's own is not about a row, and ends the statement. The context tells the two apart: only what RAISE has
-- raised begins with it.
create or replace function "${schema}".pgworker_about_row(state text, context text) returns boolean
language sql immutable
set search_path = pg_catalog, pg_temp as $$
  select state not in ('40001', '40P01', '57014') or split_part(context, E'\n', 1) like '%RAISE%'
$$;
comment on function "${schema}".pgworker_about_row(text, text) is
  'Whether an error with this SQLSTATE and context is about the row that was to be changed.';

create or replace function "${schema}".pgworker_estimate(condition text) returns bigint
language plpgsql volatile
set search_path = pg_catalog, pg_temp as $$
declare
  plan json;
begin
  if condition is null or condition not in ('is_available', 'not is_available', 'run_at > now()') then
    raise exception 'condition must be is_available, not is_available or run_at > now()' using errcode = '22023';
  end if;
  execute format('explain (format json) select from "${schema}"._private_jobs where %s', condition) into plan;
  return (plan -> 0 -> 'Plan' ->> 'Plan Rows')::numeric;
end
$$;
comment on function "${schema}".pgworker_estimate(text) is
  'Estimated number of jobs that meet the condition, from the planner''s statistics.';


-- Asked for every job that is added, where it is made part of the expression or statement that asks.
create or replace function "${schema}".pgworker_fits(identifier text, queue_name text, max_attempts int, job_key text, priority int)
returns boolean
language sql immutable parallel safe as $$
  select identifier is not null
    and pg_catalog.length(identifier) operator(pg_catalog.<=) 128
    and (queue_name is null or pg_catalog.length(queue_name) operator(pg_catalog.<=) 128)
    and (max_attempts is null
      or max_attempts operator(pg_catalog.>=) 1 and max_attempts operator(pg_catalog.<=) 32767)
    and (job_key is null
      or pg_catalog.length(job_key) operator(pg_catalog.>=) 1 and pg_catalog.length(job_key) operator(pg_catalog.<=) 512)
    and (priority is null
      or priority operator(pg_catalog.>=) (-32768) and priority operator(pg_catalog.<=) 32767)
$$;
comment on function "${schema}".pgworker_fits(text, text, int, text, int) is 'Whether a job may have these properties.';

-- The states and messages are those of the Graphile Worker documentation, where it names some. A constraint would quote the payload.
create or replace function "${schema}".pgworker_refuse(identifier text, queue_name text, max_attempts int, job_key text, priority int)
returns void
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp as $$
begin
  if identifier is null then
    raise exception 'Task identifier must not be null.' using errcode = '23502';
  elsif length(identifier) > 128 then
    raise exception 'Task identifier is too long (max length: 128).' using errcode = 'GWBID';
  elsif length(queue_name) > 128 then
    raise exception 'Job queue name is too long (max length: 128).' using errcode = 'GWBQN';
  elsif job_key = '' then
    raise exception 'Job key must not be empty.' using errcode = 'GWBJK';
  elsif length(job_key) > 512 then
    raise exception 'Job key is too long (max length: 512).' using errcode = 'GWBJK';
  elsif max_attempts < 1 then
    raise exception 'Job maximum attempts must be at least 1.' using errcode = 'GWBMA';
  elsif max_attempts > 32767 then
    raise exception 'Job maximum attempts must be at most 32767.' using errcode = '22003';
  elsif priority not between -32768 and 32767 then
    raise exception 'Job priority must be between -32768 and 32767.' using errcode = '22003';
  end if;
end
$$;
comment on function "${schema}".pgworker_refuse(text, text, int, text, int) is
  'Raises an exception that names the invalid job property.';

create or replace function "${schema}".pgworker_kept_out(added bigint, asked bigint) returns bigint
language plpgsql volatile
set search_path = pg_catalog, pg_temp as $$
begin
  raise exception 'A trigger on the table "${schema}"._private_jobs keeps % of % jobs out; none is added.', asked - added, asked
    using errcode = '27000';
end
$$;
comment on function "${schema}".pgworker_kept_out(bigint, bigint) is
  'Raises an exception that says that fewer jobs could be added, or changed under their keys, than were asked for.';


-- 6 Adding jobs ---------------------------------------------------------------------------------------------------------------

-- Called by every program that adds jobs, as the role "adder" or a greater one, in the program's own transaction. A job costs one row,
-- its entries in the indexes, and a notification for each statement.

-- Rows of jobs are written by two functions only: pgworker_put one, pgworker_put_all many. Arrays for one job, or a call for each of many,
-- would cost twice as much.

-- The loop ends with a row in every interleaving: SELECT FOR UPDATE waits for a transaction that holds the job, an uncommitted
-- claim for instance, and sees its result; an INSERT that meets a key committed meanwhile starts over. Under REPEATABLE READ the
-- same situations raise 40001.
create or replace function "${schema}".pgworker_put(
  new_id bigint, identifier text, payload json, queue_name text, run_at timestamptz, max_attempts int, job_key text, priority int,
  flags text[], mode text, patient boolean
) returns "${schema}"._private_jobs
language plpgsql volatile as $$
declare
  job "${schema}"._private_jobs;
  task int;
  queue int;
  stored_flags pg_catalog.jsonb;
  misses int := 0;
begin
  if not "${schema}".pgworker_fits('', null, pgworker_put.max_attempts, pgworker_put.job_key, pgworker_put.priority) then
    perform "${schema}".pgworker_refuse('', null, pgworker_put.max_attempts, pgworker_put.job_key, pgworker_put.priority);
  end if;
  if pgworker_put.flags is not null then
    stored_flags := "${schema}".pgworker_flags(pgworker_put.flags);
  end if;
  select t.id into task from "${schema}"._private_tasks t where t.identifier operator(pg_catalog.=) pgworker_put.identifier;
  if not found then
    task := "${schema}".pgworker_task_id(pgworker_put.identifier);
  end if;
  if pgworker_put.queue_name is not null then
    select q.id into queue from "${schema}"._private_job_queues q
      where q.queue_name operator(pg_catalog.>=) pgworker_put.queue_name and q.queue_name operator(pg_catalog.<=) pgworker_put.queue_name
      order by q.queue_name desc limit 1;
    if not found then
      queue := "${schema}".pgworker_queue_id(pgworker_put.queue_name);
    end if;
  end if;
  if pg_catalog.current_setting('transaction_isolation') operator(pg_catalog.<>) 'read committed' then
    perform "${schema}".pgworker_hold_names(array[pgworker_put.identifier], array[pgworker_put.queue_name]);
  end if;
  loop
    if pgworker_put.job_key is not null then
      if patient then
        select * into job from "${schema}"._private_jobs j where j.key operator(pg_catalog.=) pgworker_put.job_key for update;
      else
        select * into job from "${schema}"._private_jobs j where j.key operator(pg_catalog.=) pgworker_put.job_key for update nowait;
      end if;
      if found then
        if mode operator(pg_catalog.=) 'unsafe_dedupe' then
          -- A job that was recovered has a last_error. The count is worth no failure for want of a privilege.
          if job.last_error is not null and pg_catalog.has_table_privilege('"${schema}".pgworker_recoveries', 'UPDATE')
              and pg_catalog.has_table_privilege('"${schema}".pgworker_recoveries', 'SELECT') then
            update "${schema}".pgworker_recoveries r set revision = "${schema}".pgworker_next_revision(r.revision)
              where r.job_id operator(pg_catalog.=) job.id and r.revision operator(pg_catalog.=) job.revision;
          end if;
          update "${schema}"._private_jobs j set
              revision = "${schema}".pgworker_next_revision(j.revision),
              updated_at = pg_catalog.now()
            where j.id operator(pg_catalog.=) job.id
            returning * into job;
          return job;
        end if;
        if job.is_available or "${schema}".pgworker_parked(job.locked_at) then
          update "${schema}"._private_jobs j set
              job_queue_id = queue,
              task_id = task,
              payload = "${schema}".pgworker_merge(j.payload, coalesce(pgworker_put.payload, '{}')),
              priority = coalesce(pgworker_put.priority, 0),
              run_at = case
                when mode operator(pg_catalog.=) 'preserve_run_at' and j.attempts operator(pg_catalog.=) 0 then j.run_at
                else coalesce(pgworker_put.run_at, pg_catalog.now())
              end,
              attempts = 0,
              max_attempts = coalesce(pgworker_put.max_attempts, 25),
              last_error = null,
              revision = "${schema}".pgworker_next_revision(j.revision),
              flags = stored_flags,
              updated_at = pg_catalog.now()
            where j.id operator(pg_catalog.=) job.id
            returning * into job;
          return job;
        end if;
        -- running or failed for good: the old job loses the key, which goes to a new one
        update "${schema}"._private_jobs j set
            key = null,
            attempts = j.max_attempts,
            updated_at = pg_catalog.now()
          where j.id operator(pg_catalog.=) job.id;
        if job.locked_at is not null then
          if mode operator(pg_catalog.=) 'replace_and_cancel' then
            perform "${schema}".pgworker_cancel_running(job.id, job.locked_by, null);
          else
            perform "${schema}".pgworker_retire(job.id, false);
          end if;
        end if;
      end if;
    end if;
    if new_id is null then
      insert into "${schema}"._private_jobs as j (job_queue_id, task_id, payload, priority, run_at, max_attempts, key, flags)
        values (queue, task, coalesce(pgworker_put.payload, '{}'), coalesce(pgworker_put.priority, 0),
          coalesce(pgworker_put.run_at, pg_catalog.now()), coalesce(pgworker_put.max_attempts, 25), pgworker_put.job_key, stored_flags)
        on conflict (key) do nothing
        returning * into job;
    else
      select * into job from "${schema}".pgworker_put_all(array[new_id], array[pgworker_put.identifier], array[pgworker_put.payload],
        array[pgworker_put.queue_name], array[pgworker_put.run_at], array[pgworker_put.max_attempts], array[pgworker_put.job_key],
        array[pgworker_put.priority], array[pgworker_put.flags::pg_catalog.text]);
    end if;
    -- without a key nothing but a trigger of somebody's keeps the row out
    if found or pgworker_put.job_key is null then return job; end if;
    -- with one, another transaction that added and removed the same key meanwhile might
    misses := misses operator(pg_catalog.+) 1;
    if misses operator(pg_catalog.>) 1000 then
      raise exception 'The job cannot be added under its key: a trigger keeps the row out.' using errcode = '27000';
    end if;
  end loop;
end
$$;
comment on function "${schema}".pgworker_put(bigint, text, json, text, timestamptz, int, text, int, text[], text, boolean) is
  'Adds a job, or updates or replaces the one that has its key; the id given, if any, is used if a row is inserted. Raises 55P03 when '
  'somebody holds that job, unless it may be patient.';

-- Element i of every array belongs to job i; an array that is null or too short stands for nulls. Each element of flags is the text
-- of an array, because arrays of arrays must be rectangular. Joins are hashed: names repeat, so a lookup for each row costs more.
-- An id that is given needs a right on the sequence behind the column, one that is not does not: hence two statements. And only the
-- second looks for conflicts, which would cost the first a tenth.
create or replace function "${schema}".pgworker_put_all(
  ids bigint[], identifiers text[], payloads json[], queue_names text[], run_ats timestamptz[], max_attempts int[], job_keys text[],
  priorities int[], flags text[]
) returns setof "${schema}"._private_jobs
language plpgsql volatile
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_nestloop = off set enable_mergejoin = off
set jit = off
set search_path = pg_catalog, pg_temp as $$
declare
  tasks constant text[] := array(select distinct name from unnest(identifiers) name);
  queues constant text[] := array(select distinct name from unnest(queue_names) name where name is not null);
begin
  perform "${schema}".pgworker_know_names(tasks, queues);
  if ids is null then
    return query
      insert into "${schema}"._private_jobs (job_queue_id, task_id, payload, priority, run_at, max_attempts, key, flags)
      select q.id, t.id, coalesce(s.payload, '{}'), coalesce(s.priority, 0), coalesce(s.run_at, now()), coalesce(s.attempts, 25),
        s.job_key, case when s.flags is not null then "${schema}".pgworker_flags(s.flags::text[]) end
      from unnest(identifiers, payloads, queue_names, run_ats, pgworker_put_all.max_attempts, job_keys, priorities, pgworker_put_all.flags)
        with ordinality s(identifier, payload, queue_name, run_at, attempts, job_key, priority, flags, place)
      left join (select n.id, n.identifier from "${schema}"._private_tasks n where n.identifier = any(tasks)) t
        on t.identifier = s.identifier
      left join (select n.id, n.queue_name from "${schema}"._private_job_queues n where n.queue_name = any(queues)) q
        on q.queue_name = s.queue_name
      where case
          when "${schema}".pgworker_fits(left(s.identifier, 0), null, s.attempts, s.job_key, s.priority) then true
          else "${schema}".pgworker_refuse(left(s.identifier, 0), null, s.attempts, s.job_key, s.priority) is null
        end
      order by s.place
      returning *;
  else
    return query
      insert into "${schema}"._private_jobs (id, job_queue_id, task_id, payload, priority, run_at, max_attempts, key, flags)
      overriding system value
      select s.id, q.id, t.id, coalesce(s.payload, '{}'), coalesce(s.priority, 0), coalesce(s.run_at, now()), coalesce(s.attempts, 25),
        s.job_key, case when s.flags is not null then "${schema}".pgworker_flags(s.flags::text[]) end
      from unnest(ids, identifiers, payloads, queue_names, run_ats, pgworker_put_all.max_attempts, job_keys, priorities,
          pgworker_put_all.flags)
        s(id, identifier, payload, queue_name, run_at, attempts, job_key, priority, flags)
      left join (select n.id, n.identifier from "${schema}"._private_tasks n where n.identifier = any(tasks)) t
        on t.identifier = s.identifier
      left join (select n.id, n.queue_name from "${schema}"._private_job_queues n where n.queue_name = any(queues)) q
        on q.queue_name = s.queue_name
      where case
          when "${schema}".pgworker_fits(left(s.identifier, 0), null, s.attempts, s.job_key, s.priority) then true
          else "${schema}".pgworker_refuse(left(s.identifier, 0), null, s.attempts, s.job_key, s.priority) is null
        end
      order by s.job_key collate "C", s.id
      on conflict (key) do nothing
      returning *;
  end if;
end
$$;
comment on function "${schema}".pgworker_put_all(bigint[], text[], json[], text[], timestamptz[], int[], text[], int[], text[]) is
  'Adds jobs and returns them; their ids are drawn in the order of the arrays. Where ids are given, jobs whose keys are taken are left out.';

create or replace function "${schema}".add_job(
  identifier text,
  payload json default null,
  queue_name text default null,
  run_at timestamptz default null,
  max_attempts int default null,
  job_key text default null,
  priority int default null,
  flags text[] default null,
  job_key_mode text default 'replace'
) returns "${schema}"._private_jobs
language plpgsql volatile as $$
declare
  job "${schema}"._private_jobs;
begin
  -- Node.js passes null where the caller names no mode
  if add_job.job_key is not null
      and add_job.job_key_mode operator(pg_catalog.<>) all (array['replace', 'preserve_run_at', 'unsafe_dedupe', 'replace_and_cancel']) then
    raise exception 'Invalid job_key_mode value, expected ''replace'', ''preserve_run_at'', ''unsafe_dedupe'' or ''replace_and_cancel''.'
      using errcode = 'GWBKM';
  end if;
  job := "${schema}".pgworker_put(null, add_job.identifier, add_job.payload, add_job.queue_name, add_job.run_at, add_job.max_attempts,
    add_job.job_key, add_job.priority, add_job.flags, coalesce(add_job.job_key_mode, 'replace'), true);
  -- what unsafe_dedupe found has stayed as it was, so that there is nothing to look for
  if add_job.job_key_mode operator(pg_catalog.=) 'unsafe_dedupe' and job.revision operator(pg_catalog.>) 0 then
    return job;
  end if;
  if job.locked_at is null then
    perform "${schema}".pgworker_wake(
      1, job.run_at, job.priority::pg_catalog.text, job.job_queue_id is not null,
      case when job.job_queue_id is null and job.flags is null and job.run_at operator(pg_catalog.<=) pg_catalog.now() then job.id end);
  end if;
  return job;
end
$$;
comment on function "${schema}".add_job(text, json, text, timestamptz, int, text, int, text[], text) is
  'Adds a job, or updates the one that has the given key, according to job_key_mode; returns it.';

create or replace function "${schema}".pgworker_columns(
  specs "${schema}".job_spec[], spec_ids bigint[], taken text[],
  out ids bigint[], out identifiers text[], out payloads json[], out queue_names text[], out run_ats timestamptz[], out max_attempts int[],
  out job_keys text[], out priorities int[], out flags text[]
) language plpgsql stable
set search_path = pg_catalog, pg_temp as $$
begin
  -- an array that holds only nulls is none, which costs less
  select case when spec_ids is not null then array_agg(spec_ids[s.place]) end, array_agg(s.identifier), array_agg(s.payload),
      case when count(s.queue_name) > 0 then array_agg(s.queue_name) end,
      case when count(s.run_at) > 0 then array_agg(s.run_at) end,
      case when count(s.attempts) > 0 then array_agg(s.attempts::int) end,
      case when count(s.key) > 0 then array_agg(s.key) end,
      case when count(s.priority) > 0 then array_agg(s.priority::int) end,
      case when count(s.flag_names) > 0 then array_agg(s.flag_names::text) end
    into ids, identifiers, payloads, queue_names, run_ats, max_attempts, job_keys, priorities, flags
    from unnest(specs) with ordinality s(identifier, payload, queue_name, run_at, attempts, key, priority, flag_names, place)
    where s.key is null or s.key not in (select unnest(taken));
end
$$;
comment on function "${schema}".pgworker_columns("${schema}".job_spec[], bigint[], text[]) is
  'The arguments of pgworker_put_all for those of the jobs that have no key or one that is not taken; spec_ids[i] belongs to specs[i].';

-- New jobs get ids in the order of the input, so jobs of one queue start in that order. Keyed rows are written in key order
-- (binary collation) all the same: two batches with the same keys then wait for each other, but not in a circle.
create or replace function "${schema}".add_jobs(specs "${schema}".job_spec[], job_key_preserve_run_at boolean default false)
returns setof "${schema}"._private_jobs
language plpgsql volatile
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set jit = off
set search_path = pg_catalog, pg_temp as $$
declare
  total constant int := cardinality(specs);
  sequence constant regclass := pg_get_serial_sequence('"${schema}"._private_jobs', 'id');
  numbered boolean;
  patience constant int := 40;
  brief constant text := '20ms';
  lock_timeout constant text := current_setting('lock_timeout');
  mode constant text := case when job_key_preserve_run_at then 'preserve_run_at' else 'replace' end;
  repeated text;
  keys text[];
  ids bigint[];
  taken text[];
  waiting text[];
  jobs "${schema}"._private_jobs[];
  job "${schema}"._private_jobs;
  given record;
  left_over record;
begin
  if coalesce(total, 0) = 0 then return; end if;

  select * into given from "${schema}".pgworker_columns(specs, null, null);
  if given.job_keys is null then
    return query
      select * from "${schema}".pgworker_put_all(given.ids, given.identifiers, given.payloads, given.queue_names, given.run_ats,
        given.max_attempts, given.job_keys, given.priorities, given.flags);
    perform "${schema}".pgworker_announce(total, given.queue_names, given.run_ats, given.priorities);
    return;
  end if;

  keys := array_remove(given.job_keys, null);
  select k.key into repeated from unnest(keys) k(key) group by k.key having count(*) > 1 limit 1;
  if found then
    raise exception 'Job key % is given more than once in one batch', quote_literal(repeated) using errcode = '21000';
  end if;
  perform "${schema}".pgworker_know_names(given.identifiers, given.queue_names);
  perform "${schema}".pgworker_refuse('', null, s.max_attempts, s.job_key, s.priority)
    from unnest(specs) s
    where not "${schema}".pgworker_fits('', null, s.max_attempts, s.job_key, s.priority);

  -- The rows are written in key order but their ids keep the order of the input, so they are drawn beforehand. A caller who may insert
  -- jobs need not hold a right on the sequence behind the column: without it the rows are written one by one, and get ids in key order.
  numbered := has_sequence_privilege(sequence, 'USAGE');
  if numbered then
    ids := array(select nextval(sequence) from generate_series(1, total));
  end if;
  -- Node.js completes batches in any order, holding some rows while it waits for others. Waiting for one of these while holding
  -- another would close a circle, and cost Node.js the completion. So all rows are locked without waiting, or given back by the
  -- subtransaction until the next try; only rows that stay locked for long are waited for, in key order. An insert that meets a key
  -- of another's open insert cannot but wait: briefly, since that may be the circle as well.
  for attempt in 1..patience + 5 loop
    begin
      jobs := null;
      if attempt <= patience and (lock_timeout = '0' or lock_timeout::interval > brief::interval) then
        perform set_config('lock_timeout', brief, true);
      end if;
      if numbered then
        -- Jobs without keys, and those whose keys look free: one statement. Keys that somebody takes meanwhile are left over. A patient
        -- try may wait below while it holds rows, so it must not have taken keys out of order.
        -- Those that exist are locked before anything is written, which a try in vain would leave behind as dead rows.
        if attempt <= patience then
          taken := array(
            select j.key from "${schema}"._private_jobs j where j.key = any(keys) order by j.key collate "C" for update nowait);
        else
          taken := array(select j.key from "${schema}"._private_jobs j where j.key = any(keys));
        end if;
        if attempt > patience and cardinality(taken) > 0 then
          taken := keys;
        end if;
        select * into given from "${schema}".pgworker_columns(specs, ids, taken);
        jobs := array(
          select put from "${schema}".pgworker_put_all(given.ids, given.identifiers, given.payloads, given.queue_names, given.run_ats,
            given.max_attempts, given.job_keys, given.priorities, given.flags) put);
      end if;
      -- The jobs that wait under the other keys: one statement that locks them and one that updates them as pgworker_put does.
      if attempt <= patience and coalesce(cardinality(jobs), 0) < total then
        with held as materialized (
          select j.key, j.is_available or "${schema}".pgworker_parked(j.locked_at) as waits from "${schema}"._private_jobs j
          where j.key = any(array(select unnest(keys) except select n.key from unnest(jobs) n))
          order by j.key collate "C"
          for update nowait)
        select array_agg(held.key) into waiting from held where held.waits;
        with put as (
          update "${schema}"._private_jobs j set
              job_queue_id = q.id,
              task_id = t.id,
              payload = "${schema}".pgworker_merge(j.payload, coalesce(s.payload, '{}')),
              priority = coalesce(s.priority, 0),
              run_at = case
                when mode = 'preserve_run_at' and j.attempts = 0 then j.run_at
                else coalesce(s.run_at, now())
              end,
              attempts = 0,
              max_attempts = coalesce(s.max_attempts, 25),
              last_error = null,
              revision = "${schema}".pgworker_next_revision(j.revision),
              flags = case when s.flags is not null then "${schema}".pgworker_flags(s.flags) end,
              updated_at = now()
            -- "offset 0", "is true" and the ctid leave one plan only, which fits any number of jobs: hash the keys, look up each.
            from unnest(specs) s
            cross join lateral (
              select n.ctid as place from "${schema}"._private_jobs n where n.key = s.job_key offset 0) found
            join "${schema}"._private_tasks t on t.identifier = s.identifier
            left join "${schema}"._private_job_queues q on q.queue_name = s.queue_name
            where j.ctid = found.place and (s.job_key in (select unnest(waiting))) is true
            returning j.*)
        select jobs || array_agg(put::"${schema}"._private_jobs) into jobs from put;
      end if;

      for left_over in
        select s.* from unnest(specs)
          with ordinality s(identifier, payload, queue_name, run_at, max_attempts, job_key, priority, flags, place)
        where case
            when s.job_key is null then not numbered
            else s.job_key not in (select j.key from unnest(jobs) j where j.key is not null)
          end
        order by s.job_key collate "C", s.place
      loop
        job := "${schema}".pgworker_put(case when numbered then ids[left_over.place] end, left_over.identifier, left_over.payload,
          left_over.queue_name, left_over.run_at, left_over.max_attempts, left_over.job_key, left_over.priority, left_over.flags, mode,
          attempt > patience);
        jobs := jobs || job;
        if job.key is null then
          ids[left_over.place] := job.id;
        end if;
      end loop;
      perform set_config('lock_timeout', lock_timeout, true);
      exit;
    exception
      when lock_not_available then
        if attempt > patience then raise; end if;
        perform pg_sleep(random() * least(attempt, 10) * 0.002);
      when deadlock_detected then
        if attempt = patience + 5 then raise; end if;
    end;
  end loop;

  return query
    select j.*
    from unnest(jobs) j
    left join unnest(specs) with ordinality s(identifier, payload, queue_name, run_at, max_attempts, job_key, priority, flags, place)
      on s.job_key = j.key
    left join unnest(ids) with ordinality i(id, place) on i.id = j.id and j.key is null
    order by coalesce(s.place, i.place);
  select array_agg(q.queue_name), array_agg(j.run_at), array_agg(j.priority::int) into given.queue_names, given.run_ats, given.priorities
    from unnest(jobs) j
    left join "${schema}"._private_job_queues q on q.id = j.job_queue_id;
  perform "${schema}".pgworker_announce(total, given.queue_names, given.run_ats, given.priorities);
end
$$;
comment on function "${schema}".add_jobs("${schema}".job_spec[], boolean) is
  'Adds a batch of jobs, or updates those whose keys exist; returns them in the order of the input.';

-- Returns only what the caller cannot know: a Java caller has the rest, and a row of 17 columns costs more than half as much to return as to
-- insert.
create or replace function "${schema}".pgworker_add_jobs(
  identifiers text[], payloads text[], queue_names text[], run_ats timestamptz[], max_attempts int[], priorities int[], flags text[],
  out job_ids bigint[], out added_at timestamptz
) language plpgsql volatile
set search_path = pg_catalog, pg_temp as $$
declare
  available bigint;
begin
  select array_agg(j.id), now(), count(*) filter (where j.locked_at is null) into job_ids, added_at, available
    from "${schema}".pgworker_put_all(null, identifiers, "${schema}".pgworker_json('payloads', payloads), queue_names, run_ats,
      pgworker_add_jobs.max_attempts, null, priorities, pgworker_add_jobs.flags) j;
  if coalesce(cardinality(job_ids), 0) < cardinality(identifiers) then
    perform "${schema}".pgworker_kept_out(coalesce(cardinality(job_ids), 0), cardinality(identifiers));
  end if;
  if available > 0 then
    perform "${schema}".pgworker_announce(cardinality(job_ids), queue_names, run_ats, priorities);
  end if;
end
$$;
comment on function "${schema}".pgworker_add_jobs(text[], text[], text[], timestamptz[], int[], int[], text[]) is
  'Adds jobs without keys as add_jobs does, but all or none; returns their ids in the order of the input, and the time of their creation. '
  'Its arrays are those of pgworker_put_all; a payload is the text of a JSON value.';

-- Looks again when it found nothing after waiting: the key may have moved to another job.
create or replace function "${schema}".remove_job(job_key text) returns "${schema}"._private_jobs
language plpgsql volatile strict
set search_path = pg_catalog, pg_temp as $$
declare
  job "${schema}"._private_jobs;
begin
  loop
    select * into job from "${schema}"._private_jobs j where j.key = remove_job.job_key for update;
    exit when found;
    if not exists (select from "${schema}"._private_jobs j where j.key = remove_job.job_key) then
      return job;
    end if;
  end loop;
  if "${schema}".pgworker_locked(job.locked_at, job.locked_by) then
    update "${schema}"._private_jobs j set
        key = null,
        attempts = j.max_attempts,
        updated_at = now()
      where j.id = job.id
      returning * into job;
    perform "${schema}".pgworker_retire(job.id, true);
    return job;
  end if;
  perform set_config('pgworker.ending', 'removed', true);
  delete from "${schema}"._private_jobs j where j.id = job.id;
  perform set_config('pgworker.ending', '', true);
  if job.locked_at is not null then
    perform "${schema}".pgworker_free_queues(array[job.job_queue_id], array[job.locked_by]);
  end if;
  return job;
end
$$;
comment on function "${schema}".remove_job(text) is
  'Deletes the job that has the given key; a running job only loses the key and is not run again. Returns the job, or null.';


-- 7 Administration ------------------------------------------------------------------------------------------------------------

-- Called by people and their tools, as the role "operator". Each job that is named costs what a change of its row costs; nothing reads
-- other jobs.

-- These skip running jobs and return only what they changed. A lock of four hours or more does not protect a job whose worker gives
-- no sign of life; it is cleared together with the lock of its queue. Jobs are locked in id order first, then changed, then queues are
-- freed.

create or replace function "${schema}".complete_jobs(job_ids bigint[]) returns setof "${schema}"._private_jobs
language plpgsql volatile
set search_path = pg_catalog, pg_temp as $$
declare
  job "${schema}"._private_jobs;
  queues int[];
  owners text[];
begin
  perform set_config('pgworker.ending', 'succeeded', true);
  for job in
    select * from "${schema}"._private_jobs j
    where j.id = any(job_ids) and not "${schema}".pgworker_locked(j.locked_at, j.locked_by)
    order by j.id for update
  loop
    delete from "${schema}"._private_jobs j where j.id = job.id;
    if job.locked_at is null and job.key is null and job.attempts >= job.max_attempts then
      update "${schema}".pgworker_cancellations c set outcome = 'cancelled', ended_at = clock_timestamp()
        where c.job_id = job.id and c.outcome is null;
    end if;
    if job.locked_by is not null then
      queues := queues || job.job_queue_id;
      owners := owners || job.locked_by;
    end if;
    return next job;
  end loop;
  perform set_config('pgworker.ending', '', true);
  perform "${schema}".pgworker_free_queues(queues, owners);
end
$$;
comment on function "${schema}".complete_jobs(bigint[]) is 'Deletes the given jobs as if they had succeeded, except running ones.';

create or replace function "${schema}".pgworker_remove_jobs(job_ids bigint[]) returns setof "${schema}"._private_jobs
language plpgsql volatile
set search_path = pg_catalog, pg_temp as $$
declare
  job "${schema}"._private_jobs;
  queues int[];
  owners text[];
begin
  perform set_config('pgworker.ending', 'removed', true);
  for job in
    select * from "${schema}"._private_jobs j
    where j.id = any(job_ids) and not "${schema}".pgworker_locked(j.locked_at, j.locked_by)
    order by j.id for update
  loop
    delete from "${schema}"._private_jobs j where j.id = job.id;
    if job.key is null and job.attempts >= job.max_attempts then
      update "${schema}".pgworker_cancellations c set outcome = 'cancelled', ended_at = clock_timestamp()
        where c.job_id = job.id and c.outcome is null;
    end if;
    if job.locked_by is not null then
      queues := queues || job.job_queue_id;
      owners := owners || job.locked_by;
    end if;
    return next job;
  end loop;
  perform set_config('pgworker.ending', '', true);
  perform "${schema}".pgworker_free_queues(queues, owners);
end
$$;
comment on function "${schema}".pgworker_remove_jobs(bigint[]) is 'Deletes the given jobs as if nobody needed them any more, except running ones.';

-- Whoever has locked a row is waited for, so what is told of a job is so when the row is locked. A job that is not there has ended.
create or replace function "${schema}".pgworker_cancel_jobs(job_ids bigint[], by text default null)
returns table (id bigint, outcome text, requested_at timestamptz, requested_by text, worker_id text)
language plpgsql volatile
set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
  job record;
  seen bigint[] := '{}';
  waiting bigint[] := '{}';
  running bigint[] := '{}';
begin
  perform "${schema}".pgworker_check_length('by', by, 255);
  for job in
    select j.id, j.key, j.attempts, j.max_attempts, j.locked_by, "${schema}".pgworker_locked(j.locked_at, j.locked_by) as runs
    from "${schema}"._private_jobs j
    where j.id = any(job_ids)
    order by j.id for update
  loop
    seen := seen || job.id;
    if job.runs then
      running := running || job.id;
      if job.key is not null or job.attempts < job.max_attempts then
        update "${schema}"._private_jobs j set key = null, attempts = j.max_attempts, updated_at = now() where j.id = job.id;
        if not found then
          raise exception 'A trigger keeps job % from being cancelled', job.id using errcode = '27000';
        end if;
      end if;
      perform "${schema}".pgworker_cancel_running(job.id, job.locked_by, by);
    else
      waiting := waiting || job.id;
    end if;
  end loop;
  if waiting <> '{}' then
    perform from "${schema}".pgworker_remove_jobs(waiting);
    if exists (select from "${schema}"._private_jobs j where j.id = any(waiting)) then
      raise exception 'A trigger keeps jobs from being deleted' using errcode = '27000';
    end if;
  end if;
  return query
    select w.id, 'removed', null::timestamptz, null::text, null::text from unnest(waiting) w(id)
    union all
    select s.id, s.outcome, s.requested_at, s.requested_by, s.worker_id from "${schema}".pgworker_cancel_states(running) s
    union all
    select g.id, 'gone', null::timestamptz, null::text, null::text
      from (select unnest(job_ids) except select unnest(seen)) g(id)
      where g.id is not null;
end
$$;
comment on function "${schema}".pgworker_cancel_jobs(bigint[], text) is
  'Cancels jobs: deletes those that wait or have failed ("removed"), and has those that run end and never run again: "requested" and "marked" are '
  'those of pgworker_cancel_states. "gone" is a job that does not exist any more. Each distinct id is answered once.';

-- Looks again when it found nothing after waiting: the key may have moved to another job.
create or replace function "${schema}".pgworker_cancel_key(job_key text, by text default null)
returns table (id bigint, outcome text, requested_at timestamptz, requested_by text, worker_id text)
language plpgsql volatile
set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
  holder bigint;
begin
  loop
    select j.id into holder from "${schema}"._private_jobs j where j.key = pgworker_cancel_key.job_key for update;
    exit when found;
    if not exists (select from "${schema}"._private_jobs j where j.key = pgworker_cancel_key.job_key) then
      return;
    end if;
  end loop;
  return query select * from "${schema}".pgworker_cancel_jobs(array[holder], by);
end
$$;
comment on function "${schema}".pgworker_cancel_key(text, text) is
  'As pgworker_cancel_jobs, the job that has the key; no row if there is none.';

create or replace function "${schema}".permanently_fail_jobs(job_ids bigint[], error_message text default null)
returns setof "${schema}"._private_jobs
language plpgsql volatile
set search_path = pg_catalog, pg_temp as $$
declare
  job "${schema}"._private_jobs;
  queues int[];
  owners text[];
begin
  for job in
    select * from "${schema}"._private_jobs j
    where j.id = any(job_ids) and not "${schema}".pgworker_locked(j.locked_at, j.locked_by)
    order by j.id for update
  loop
    if job.locked_by is not null then
      queues := queues || job.job_queue_id;
      owners := owners || job.locked_by;
    end if;
    update "${schema}"._private_jobs j set
        attempts = j.max_attempts,
        last_error = coalesce(error_message, 'Manually marked as failed'),
        locked_at = null,
        locked_by = null,
        updated_at = now()
      where j.id = job.id
      returning * into job;
    return next job;
  end loop;
  perform "${schema}".pgworker_free_queues(queues, owners);
end
$$;
comment on function "${schema}".permanently_fail_jobs(bigint[], text) is
  'Marks the given jobs as permanently failed by using up their attempts, and records the message, except for running ones.';

-- Notifies even for a time in the future: workers sleep until the earliest run_at they know of.
create or replace function "${schema}".reschedule_jobs(
  job_ids bigint[], run_at timestamptz default null, priority int default null, attempts int default null, max_attempts int default null
) returns setof "${schema}"._private_jobs
language plpgsql volatile
set search_path = pg_catalog, pg_temp as $$
declare
  job "${schema}"._private_jobs;
  queues int[];
  owners text[];
  ready int := 0;
  earliest timestamptz;
  levels smallint[];
begin
  if reschedule_jobs.attempts not between 0 and 32767 then
    raise exception 'Job attempts must be between 0 and 32767.' using errcode = '22003';
  elsif not "${schema}".pgworker_fits('', null, reschedule_jobs.max_attempts, null, reschedule_jobs.priority) then
    perform "${schema}".pgworker_refuse('', null, reschedule_jobs.max_attempts, null, reschedule_jobs.priority);
  end if;
  if exists (select from "${schema}".pgworker_cancellations c where c.job_id = any(job_ids) and c.outcome is null) then
    -- One that another worker has left as a failed job, and of which it has been told that it was cancelled, ends here.
    perform "${schema}".pgworker_end_cancelled(job_ids);
  end if;
  perform set_config('pgworker.ending', 'recovered', true);
  for job in
    select * from "${schema}"._private_jobs j
    where j.id = any(job_ids) and not "${schema}".pgworker_locked(j.locked_at, j.locked_by)
    order by j.id for update
  loop
    if job.locked_by is not null then
      queues := queues || job.job_queue_id;
      owners := owners || job.locked_by;
    end if;
    update "${schema}"._private_jobs j set
        run_at = coalesce(reschedule_jobs.run_at, j.run_at),
        priority = coalesce(reschedule_jobs.priority, j.priority),
        attempts = coalesce(reschedule_jobs.attempts, j.attempts),
        max_attempts = coalesce(reschedule_jobs.max_attempts, j.max_attempts),
        locked_at = null,
        locked_by = null,
        updated_at = now()
      where j.id = job.id
      returning * into job;
    if reschedule_jobs.attempts is not null then
      delete from "${schema}".pgworker_recoveries r where r.job_id = job.id;
    end if;
    if job.is_available then
      ready := ready + 1;
      earliest := least(earliest, job.run_at);
      levels := levels || job.priority;
    end if;
    if job.attempts < job.max_attempts then
      perform "${schema}".pgworker_revive(job.id);
    end if;
    return next job;
  end loop;
  perform set_config('pgworker.ending', '', true);
  perform "${schema}".pgworker_free_queues(queues, owners);
  perform "${schema}".pgworker_wake(
    ready, earliest, (
      select case when count(distinct l.level) <= 16 then coalesce(string_agg(distinct l.level::text, ','), '') end
      from unnest(levels) l(level)));
end
$$;
comment on function "${schema}".reschedule_jobs(bigint[], timestamptz, int, int, int) is
  'Changes the run time, priority and attempts of the given jobs, except for running ones; a null argument leaves the value unchanged.';

-- The one pass over the tables that a recovery makes, whatever it frees: no index knows who holds what, as one would cost every claim a
-- fifth. The callers go on by ids. One snapshot shows a claim as a whole, so a queue whose job has just been claimed is not mistaken for
-- an idle one. The settings of the callers, which keep them from reading whole tables, do not hold here.
-- The first condition, which almost no row meets, halves the time.
create or replace function "${schema}".pgworker_locks(worker_ids text[])
returns table (job_id bigint, queue_id int, worker_id text, locked_at timestamptz, flags jsonb)
language sql stable rows 1000
set enable_seqscan = on set jit = off
set search_path = pg_catalog, pg_temp as $$
  select j.id, j.job_queue_id, j.locked_by, j.locked_at, j.flags from "${schema}"._private_jobs j
  where (j.locked_by is not null or j.locked_at is not null) and j.locked_at is distinct from '9999-01-01 00:00:00+00'
    and case when worker_ids is null then j.locked_at is not null else j.locked_by = any(worker_ids) end
  union all
  select null, q.id, q.locked_by, q.locked_at, null from "${schema}"._private_job_queues q
  where (q.locked_by is not null or q.locked_at is not null)
    and case when worker_ids is null then q.locked_at is not null else q.locked_by = any(worker_ids) end
    and q.locked_by is distinct from 'pgworker-paused'
$$;
comment on function "${schema}".pgworker_locks(text[]) is
  'The jobs and queues (job_id is null) that the given workers hold, or anybody: one snapshot, one pass over each table. Jobs that wait for '
  'a limit and paused queues are held by nobody.';

create or replace function "${schema}".pgworker_held_by(worker_ids text[], out job_ids bigint[], out idle_queues int[])
language sql stable
set search_path = pg_catalog, pg_temp as $$
  with held as materialized (select l.job_id, l.queue_id, l.worker_id from "${schema}".pgworker_locks(pgworker_held_by.worker_ids) l)
  select
    (select array_agg(h.job_id order by h.job_id) from held h where h.job_id is not null),
    (select array_agg(i.queue_id) from (
      select h.queue_id from held h where h.queue_id is not null group by h.queue_id, h.worker_id having bool_and(h.job_id is null)) i)
$$;
comment on function "${schema}".pgworker_held_by(text[]) is
  'The jobs that the given workers hold, and the queues that they hold without a job of them.';

-- Rows known by id are looked up, and changed, one by one here and below: a join over many ids becomes one over the whole table where
-- the statistics mislead. So do the settings of these functions keep each look-up at an index.
--
-- A queue is freed with the last job of it that its worker held. The jobs are changed already, so those that the workers hold still are
-- the ones that were passed over.
create or replace function "${schema}".pgworker_free_queues_of(
  queue_ids int[], idle_queues int[], job_ids bigint[], worker_ids text[]
) returns void
language plpgsql volatile
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off
set search_path = pg_catalog, pg_temp as $$
begin
  perform "${schema}".pgworker_free_queues(
    array(
      select unnest(queue_ids)
      union
      select unnest(idle_queues)
      except
      select j.job_queue_id
      from unnest(job_ids) g(id)
      cross join lateral (
        select h.job_queue_id from "${schema}"._private_jobs h where h.id = g.id and h.locked_by = any(worker_ids) offset 0) j
      where j.job_queue_id is not null),
    worker_ids);
end
$$;
comment on function "${schema}".pgworker_free_queues_of(int[], int[], bigint[], text[]) is
  'Frees the queues of jobs that were taken from the given workers, and idle ones, except those of the given jobs that these workers '
  'hold still, and wakes workers.';

-- All together in one subtransaction; where that is refused, because of a trigger of somebody's for instance, each half by itself, so that
-- a row that cannot be changed costs little and hurts nobody else. A job that has no attempts left would stay behind without a word, so
-- it gets one.
create or replace function "${schema}".pgworker_unlock(job_ids bigint[], out queue_ids int[], out released bigint, out ready bigint)
language plpgsql volatile
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off
set search_path = pg_catalog, pg_temp as $$
declare
  total constant int := cardinality(job_ids);
  half record;
  context text;
begin
  released := 0;
  ready := 0;
  if coalesce(total, 0) = 0 then return; end if;
  begin
    perform set_config('pgworker.ending', 'recovered', true);
    with unlocked as (
      update "${schema}"._private_jobs j set
          locked_at = null,
          locked_by = null,
          last_error = case
            when j.attempts >= j.max_attempts then coalesce(
              case when j.key is null then "${schema}".pgworker_retirement(j.id, j.last_error) || '; its worker died' end,
              j.last_error,
              'Job unlocked during its last attempt')
            else j.last_error
          end,
          updated_at = now()
        from unnest(job_ids) g(id)
        cross join lateral (select h.ctid as tid from "${schema}"._private_jobs h where h.id = g.id offset 0) p
        where j.ctid = p.tid
        returning j.job_queue_id, j.is_available)
    select array_agg(distinct u.job_queue_id), count(*), count(*) filter (where u.is_available)
      into queue_ids, released, ready
      from unlocked u;
    perform set_config('pgworker.ending', '', true);
    if released < total then
      raise exception 'a trigger keeps the row' using errcode = '27000';
    end if;
    set constraints all immediate;
    if exists (select from "${schema}".pgworker_cancellations c where c.job_id = any(job_ids)) then
      perform "${schema}".pgworker_end_cancelled(job_ids);
    end if;
    return;
  exception when others or assert_failure or query_canceled then
    get stacked diagnostics context = pg_exception_context;
    if not "${schema}".pgworker_about_row(sqlstate, context) then raise; end if;
    queue_ids := null;
    released := 0;
    ready := 0;
    if total = 1 then
      raise warning 'Job % stays locked: %', job_ids[1], sqlerrm;
      return;
    end if;
  end;
  for at in 1..total by (total + 1) / 2 loop
    select * into half from "${schema}".pgworker_unlock(job_ids[at:at + (total + 1) / 2 - 1]);
    queue_ids := queue_ids || half.queue_ids;
    released := released + half.released;
    ready := ready + half.ready;
  end loop;
end
$$;
comment on function "${schema}".pgworker_unlock(bigint[]) is
  'Unlocks the given jobs, whose rows the caller has locked, as far as they let themselves be changed, their attempts counted; returns '
  'their queues, how many jobs it has unlocked and how many of these have attempts left.';

create or replace function "${schema}".force_unlock_workers(worker_ids text[]) returns void
language plpgsql volatile
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off
set search_path = pg_catalog, pg_temp as $$
declare
  held record;
  unlocked record;
begin
  select * into held from "${schema}".pgworker_held_by(force_unlock_workers.worker_ids);
  select * into unlocked from "${schema}".pgworker_unlock(array(
    select g.id from (select given.id from unnest(held.job_ids) given(id) order by given.id) g
    cross join lateral (
      select from "${schema}"._private_jobs h where h.id = g.id and h.locked_by = any(worker_ids) for update) j));
  perform "${schema}".pgworker_free_queues_of(unlocked.queue_ids, held.idle_queues, held.job_ids, worker_ids);
  perform "${schema}".pgworker_wake(unlocked.ready);
end
$$;
comment on function "${schema}".force_unlock_workers(text[]) is
  'Releases all jobs and queues of the given workers; only for workers that are known to be dead.';

-- Schedules. Applications call these as well, so whatever is refused is refused to all in the same words. Only Java knows the grammars of the
-- expressions in full: what is wrong with one given here a worker says in the column problem, within a second. Each call locks one row, so
-- what it has changed holds from its return on, and an edit that may change when something is due wakes the workers, once a transaction.

create or replace function "${schema}".pgworker_wrong(argument text, allowed text, given text) returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp as $$
begin
  raise exception '%', concat(argument, ' ', allowed, ', but is ', coalesce(quote_literal(left(given, 200)), 'null')) using errcode = '22023';
end
$$;
comment on function "${schema}".pgworker_wrong(text, text, text) is
  'Raises an exception that names an argument, what it must be and what it is.';

create or replace function "${schema}".pgworker_check_length(argument text, given text, most int) returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp as $$
begin
  if length(given) not between 1 and most then
    raise exception '%', format('%s must have 1 to %s characters, but has %s', argument, most, length(given)) using errcode = '22023';
  end if;
end
$$;
comment on function "${schema}".pgworker_check_length(text, text, int) is
  'Raises an exception that names the argument unless the text is null or has 1 to so many characters.';

create or replace function "${schema}".pgworker_span(argument text, given interval, lowest interval) returns interval
language plpgsql stable
set search_path = pg_catalog, pg_temp as $$
begin
  if given < lowest or given > interval '3650 days' then
    perform "${schema}".pgworker_wrong(argument, format('must be between %s and 3650 days', lowest), given::text);
  elsif date_part('month', given) <> 0 or date_part('year', given) <> 0 then
    perform "${schema}".pgworker_wrong(argument, 'must be given in days, hours, minutes and seconds, as months differ in length', given::text);
  end if;
  return make_interval(secs => date_part('epoch', given));
end
$$;
comment on function "${schema}".pgworker_span(text, interval, interval) is
  'Returns the interval in hours, a day of 24, or raises an exception that names the argument, unless it is at least as given and at most ten years.';

create or replace function "${schema}".pgworker_check_schedule(given "${schema}".pgworker_schedules) returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp as $$
begin
  if given.kind = 'crontab' and given.expression !~ '^[-0-9*/,]+( [-0-9*/,]+){4}$' then
    perform "${schema}".pgworker_wrong('crontab',
      'must be minute, hour, day of month, month and day of week, each a number, a range a-b, * or */n, or several joined by commas', given.expression);
  elsif given.kind = 'cron' and given.expression !~ '^(@[A-Za-z]+|[-A-Za-z0-9*/,?#]+( [-A-Za-z0-9*/,?#]+){5})$' then
    perform "${schema}".pgworker_wrong('cron',
      'must be second, minute, hour, day of month, month and day of week, or a macro such as @daily', given.expression);
  elsif given.zone !~ '^([A-Za-z][A-Za-z0-9~/._+:-]+|Z|[+-][0-9:]+)$' then
    perform "${schema}".pgworker_wrong('zone', 'must be the name of a time zone, such as Europe/Berlin', given.zone);
  elsif not isfinite(given.origin) then
    perform "${schema}".pgworker_wrong('origin', 'must be finite', given.origin::text);
  elsif not isfinite(given.starts_at) then
    perform "${schema}".pgworker_wrong('starts_at', 'must be finite, or null for no limit', given.starts_at::text);
  elsif not isfinite(given.ends_at) then
    perform "${schema}".pgworker_wrong('ends_at', 'must be finite, or null for no limit', given.ends_at::text);
  elsif given.ends_at <= given.starts_at then
    perform "${schema}".pgworker_wrong('ends_at', format('must be after starts_at, %s', given.starts_at), given.ends_at::text);
  elsif given.kind = 'rate' and given.jitter >= given.every then
    perform "${schema}".pgworker_wrong('jitter', format('must be less than fixed_rate, %s', given.every), given.jitter::text);
  elsif json_typeof(given.payload) <> 'object' then
    perform "${schema}".pgworker_wrong('payload', 'must be a JSON object, to which _cron is added', json_typeof(given.payload));
  elsif length(given.payload::text) > 100000 then
    raise exception 'payload must have at most 100000 characters, but has %', length(given.payload::text) using errcode = '22023';
  elsif given.job_key_mode not in ('replace', 'preserve_run_at', 'unsafe_dedupe', 'replace_and_cancel') then
    perform "${schema}".pgworker_wrong('job_key_mode', 'must be replace, preserve_run_at, unsafe_dedupe or replace_and_cancel', given.job_key_mode);
  elsif given.overlap not in ('allow', 'queue', 'skip') then
    perform "${schema}".pgworker_wrong('overlap', 'must be allow, queue or skip', given.overlap);
  elsif given.misfire not in ('skip', 'run_once', 'run_all') then
    perform "${schema}".pgworker_wrong('misfire', 'must be skip, run_once or run_all', given.misfire);
  elsif array_position(given.flags, null) is not null or array_position(given.flags, '') is not null
      or cardinality(given.flags) > (select count(distinct f.name) from unnest(given.flags) f(name)) then
    perform "${schema}".pgworker_wrong('flags', 'must be different texts, none null and none empty', given.flags::text);
  end if;
end
$$;
comment on function "${schema}".pgworker_check_schedule("${schema}".pgworker_schedules) is
  'Raises an exception that names an argument of pgworker_put_schedule and what is allowed, if there is something wrong with it.';

-- Made of the arguments, most of which have the names that they have in add_job.
create or replace function "${schema}".pgworker_schedule_row(
  name text, identifier text, payload json, crontab text, cron text, fixed_rate interval, fixed_delay interval, zone text, origin timestamptz,
  starts_at timestamptz, ends_at timestamptz, jitter interval, queue_name text, max_attempts int, job_key text, priority int, flags text[],
  job_key_mode text, overlap text, misfire text, backfill interval
) returns "${schema}".pgworker_schedules
language plpgsql stable
set search_path = pg_catalog, pg_temp as $$
declare
  given "${schema}".pgworker_schedules;
begin
  if name is null then
    perform "${schema}".pgworker_wrong('name', 'must have 1 to 128 characters', null);
  elsif identifier is null then
    perform "${schema}".pgworker_wrong('identifier', 'must have 1 to 128 characters', null);
  elsif num_nonnulls(crontab, cron, fixed_rate, fixed_delay) <> 1 then
    raise exception 'exactly one of crontab, cron, fixed_rate and fixed_delay must be given, but % are',
      num_nonnulls(crontab, cron, fixed_rate, fixed_delay) using errcode = '22023';
  elsif zone is not null and coalesce(crontab, cron) is null then
    perform "${schema}".pgworker_wrong('zone', 'must be null without crontab or cron', zone);
  elsif (origin is null) = (fixed_rate is not null) then
    perform "${schema}".pgworker_wrong('origin', 'must be given with fixed_rate, a time at which it is due, and else be null', origin::text);
  elsif max_attempts not between 1 and 32767 then
    perform "${schema}".pgworker_wrong('max_attempts', 'must be between 1 and 32767', max_attempts::text);
  elsif priority not between -32768 and 32767 then
    perform "${schema}".pgworker_wrong('priority', 'must be between -32768 and 32767', priority::text);
  elsif jitter < interval '0' or jitter > interval '7 days' then
    perform "${schema}".pgworker_wrong('jitter', 'must be between 0 and 7 days', jitter::text);
  end if;
  perform "${schema}".pgworker_check_length('name', name, 128), "${schema}".pgworker_check_length('identifier', identifier, 128),
    "${schema}".pgworker_check_length('crontab', crontab, 1000), "${schema}".pgworker_check_length('cron', cron, 1000),
    "${schema}".pgworker_check_length('zone', zone, 128), "${schema}".pgworker_check_length('queue_name', queue_name, 128),
    "${schema}".pgworker_check_length('job_key', job_key, 512);
  given.name := name;
  given.kind := case
    when crontab is not null then 'crontab' when cron is not null then 'cron' when fixed_rate is not null then 'rate' else 'delay' end;
  given.expression := regexp_replace(btrim(coalesce(crontab, cron), E' \t'), E'[ \t]+', ' ', 'g');
  given.zone := case when given.expression is not null then coalesce(zone, 'UTC') end;
  given.every := coalesce("${schema}".pgworker_span('fixed_rate', fixed_rate, interval '1 second'),
    "${schema}".pgworker_span('fixed_delay', fixed_delay, interval '1 second'));
  given.origin := origin;
  given.starts_at := starts_at;
  given.ends_at := ends_at;
  given.jitter := coalesce("${schema}".pgworker_span('jitter', jitter, interval '0'), interval '0');
  given.task_identifier := identifier;
  given.payload := coalesce(payload, '{}');
  given.queue_name := queue_name;
  given.priority := coalesce(priority, 0);
  given.max_attempts := coalesce(max_attempts, 25);
  given.job_key := job_key;
  given.job_key_mode := coalesce(job_key_mode, 'replace');
  given.flags := case when cardinality(flags) > 0 then array(select unnest(flags)) end;
  given.overlap := coalesce(overlap, 'allow');
  given.misfire := coalesce(misfire, 'skip');
  given.backfill := "${schema}".pgworker_span('backfill', backfill, interval '1 second');
  perform "${schema}".pgworker_check_schedule(given);
  return given;
end
$$;
comment on function "${schema}".pgworker_schedule_row(text, text, json, text, text, interval, interval, text, timestamptz, timestamptz, timestamptz,
  interval, text, int, text, int, text[], text, text, text, interval) is
  'The row of a schedule that is described by the arguments of pgworker_put_schedule; raises an exception that names one that is invalid.';

-- What executions have written stays. A delay whose job runs still waits for its end; one whose job has ended counts from then.
create or replace function "${schema}".pgworker_changed_schedule(
  old "${schema}".pgworker_schedules, given "${schema}".pgworker_schedules, declared boolean
) returns "${schema}".pgworker_schedules
language plpgsql stable
set search_path = pg_catalog, pg_temp as $$
declare
  both_delays constant boolean := old.kind = 'delay' and given.kind = 'delay';
begin
  given.declared := coalesce(declared, old.declared);
  given.paused_at := old.paused_at;
  given.paused_by := old.paused_by;
  given.last_at := old.last_at;
  given.last_job_id := old.last_job_id;
  given.created_at := old.created_at;
  given.updated_at := old.updated_at;
  given.retry_at := null;
  given.awaits_end := both_delays and old.awaits_end;
  given.next_at := case
    when given.awaits_end then null
    when old.next_at is null and old.problem is not null then '-infinity'
    when row(old.starts_at, old.ends_at) is distinct from row(given.starts_at, given.ends_at) then '-infinity'
    when row(old.kind, old.expression, old.zone, old.every, old.origin)
      is not distinct from row(given.kind, given.expression, given.zone, given.every, given.origin) then old.next_at
    when both_delays and old.last_at is not null and isfinite(old.next_at)
      then greatest(old.next_at - old.every + given.every, given.starts_at)
    else '-infinity'
  end;
  if given.kind = 'delay' and given.next_at >= given.ends_at then
    given.next_at := null;
  end if;
  return given;
end
$$;
comment on function "${schema}".pgworker_changed_schedule("${schema}".pgworker_schedules, "${schema}".pgworker_schedules, boolean) is
  'The row of a schedule that has been given other values: when it is due stays if the recurrence does, and a problem counts as mended.';

create or replace function "${schema}".pgworker_put_schedule(
  name text,
  identifier text,
  payload json default null,
  crontab text default null,
  cron text default null,
  fixed_rate interval default null,
  fixed_delay interval default null,
  zone text default null,
  origin timestamptz default null,
  starts_at timestamptz default null,
  ends_at timestamptz default null,
  jitter interval default null,
  queue_name text default null,
  max_attempts int default null,
  job_key text default null,
  priority int default null,
  flags text[] default null,
  job_key_mode text default null,
  overlap text default null,
  misfire text default null,
  backfill interval default null,
  only_new boolean default false,
  declared boolean default null
) returns "${schema}".pgworker_schedules
language plpgsql volatile
set search_path = pg_catalog, pg_temp as $$
declare
  given "${schema}".pgworker_schedules := "${schema}".pgworker_schedule_row(name, identifier, payload, crontab, cron, fixed_rate, fixed_delay,
    zone, origin, starts_at, ends_at, jitter, queue_name, max_attempts, job_key, priority, flags, job_key_mode, overlap, misfire, backfill);
  old "${schema}".pgworker_schedules;
  put "${schema}".pgworker_schedules;
begin
  -- Between the look and the insert others may create one, and delete it again before the next look.
  for attempt in 1..1000 loop
    select * into old from "${schema}".pgworker_schedules s where s.name = given.name for update;
    if not found then
      insert into "${schema}".pgworker_schedules as s (name, kind, expression, zone, every, origin, starts_at, ends_at, jitter, task_identifier,
          payload, queue_name, priority, max_attempts, job_key, job_key_mode, flags, overlap, misfire, backfill, declared)
        values (given.name, given.kind, given.expression, given.zone, given.every, given.origin, given.starts_at, given.ends_at, given.jitter,
          given.task_identifier, given.payload, given.queue_name, given.priority, given.max_attempts, given.job_key, given.job_key_mode,
          given.flags, given.overlap, given.misfire, given.backfill, coalesce(pgworker_put_schedule.declared, false))
        on conflict on constraint pgworker_schedules_pkey do nothing
        returning * into put;
      continue when not found;
    elsif only_new then
      raise exception 'There is a schedule % already.', quote_literal(given.name) using errcode = '23505';
    else
      given := "${schema}".pgworker_changed_schedule(old, given, pgworker_put_schedule.declared);
      if given::text = old::text then
        return old;
      end if;
      update "${schema}".pgworker_schedules s set
          kind = given.kind, expression = given.expression, zone = given.zone, every = given.every, origin = given.origin,
          starts_at = given.starts_at, ends_at = given.ends_at, jitter = given.jitter, task_identifier = given.task_identifier,
          payload = given.payload, queue_name = given.queue_name, priority = given.priority, max_attempts = given.max_attempts,
          job_key = given.job_key, job_key_mode = given.job_key_mode, flags = given.flags, overlap = given.overlap, misfire = given.misfire,
          backfill = given.backfill, declared = given.declared, next_at = given.next_at, awaits_end = given.awaits_end,
          retry_at = null, problem = null, updated_at = clock_timestamp()
        where s.name = given.name
        returning * into put;
      exit when not found;
    end if;
    perform pg_notify('pgworker:schedules', '');
    return put;
  end loop;
  raise exception 'A trigger on the table "${schema}".pgworker_schedules keeps the schedule % out.', quote_literal(given.name)
    using errcode = '27000';
end
$$;
comment on function "${schema}".pgworker_put_schedule(text, text, json, text, text, interval, interval, text, timestamptz, timestamptz, timestamptz,
  interval, text, int, text, int, text[], text, text, text, interval, boolean, boolean) is
  'Creates a recurring job or changes the one of that name, which stays paused if it is, and due when it is if the recurrence is the same. Exactly one '
  'of crontab (five fields), cron (six, as Spring reads them), fixed_rate and fixed_delay says when. only_new refuses to change one with SQLSTATE 23505.';

create or replace function "${schema}".pgworker_delete_schedule(name text) returns boolean
language plpgsql volatile
set search_path = pg_catalog, pg_temp as $$
begin
  delete from "${schema}".pgworker_schedules s where s.name = pgworker_delete_schedule.name;
  return found;
end
$$;
comment on function "${schema}".pgworker_delete_schedule(text) is
  'Deletes a recurring job; the jobs that it has added remain. Returns whether there was one.';

create or replace function "${schema}".pgworker_pause_schedule(name text, by text default null) returns boolean
language plpgsql volatile
set search_path = pg_catalog, pg_temp as $$
begin
  perform "${schema}".pgworker_check_length('by', by, 255);
  update "${schema}".pgworker_schedules s set paused_at = clock_timestamp(), paused_by = by, updated_at = clock_timestamp()
    where s.name = pgworker_pause_schedule.name and s.paused_at is null;
  return found;
end
$$;
comment on function "${schema}".pgworker_pause_schedule(text, text) is
  'Keeps a recurring job from being executed until it is resumed, and records who paused it. Returns whether it was not paused before.';

-- Only a time that has passed is passed over, a delay counts from now.
create or replace function "${schema}".pgworker_resume_schedule(name text) returns boolean
language plpgsql volatile
set search_path = pg_catalog, pg_temp as $$
begin
  update "${schema}".pgworker_schedules s set
      paused_at = null, paused_by = null, retry_at = null, updated_at = clock_timestamp(),
      next_at = case
        when s.next_at is null or s.next_at = '-infinity' or s.next_at > clock_timestamp() then s.next_at
        when s.kind = 'delay' then case when clock_timestamp() + s.every >= s.ends_at then null else clock_timestamp() + s.every end
        else '-infinity'
      end
    where s.name = pgworker_resume_schedule.name and s.paused_at is not null;
  if found then
    perform pg_notify('pgworker:schedules', '');
    return true;
  end if;
  return false;
end
$$;
comment on function "${schema}".pgworker_resume_schedule(text) is
  'Has a paused recurring job executed again; what was due meanwhile is not made up for. Returns whether it was paused.';

create or replace function "${schema}".pgworker_trigger_schedule(name text, payload json default null)
returns "${schema}"._private_jobs
language plpgsql volatile
set search_path = pg_catalog, pg_temp as $$
declare
  given "${schema}".pgworker_schedules;
  cron text;
begin
  select * into given from "${schema}".pgworker_schedules s where s.name = pgworker_trigger_schedule.name;
  if not found then
    raise exception 'There is no schedule %.', coalesce(quote_literal(left(name, 200)), 'null') using errcode = '22023';
  elsif json_typeof(payload) <> 'object' then
    perform "${schema}".pgworker_wrong('payload', 'must be a JSON object, to which _cron is added', json_typeof(payload));
  end if;
  given.payload := coalesce(payload, given.payload);
  cron := format('"_cron":{"ts":"%s","backfilled":false,"schedule":%s}}',
    to_char(clock_timestamp() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), to_json(given.name));
  return "${schema}".add_job(given.task_identifier,
    (case when exists (select from json_object_keys(given.payload))
      then left(rtrim(given.payload::text, E' \t\n\r'), -1) || ',' || cron else '{' || cron end)::json,
    coalesce(given.queue_name, case given.overlap when 'queue' then given.name end), null, given.max_attempts, given.job_key, given.priority,
    given.flags, given.job_key_mode);
end
$$;
comment on function "${schema}".pgworker_trigger_schedule(text, json) is
  'Adds a job of a recurring job that runs at once, with its payload or another one, even if it is paused; when it is due does not change.';


-- Pauses. What pauses a queue is a lock of its row that is never old and belongs to nobody, so that nobody releases it: neither the sweeps
-- of any worker nor the job that runs meanwhile, whose worker no longer holds the queue. Applications call these, too.
create or replace function "${schema}".pgworker_check_pause(kind text, name text) returns void
language plpgsql immutable
set search_path = pg_catalog, pg_temp as $$
begin
  if kind is null or kind not in ('task', 'queue', 'all') then
    perform "${schema}".pgworker_wrong('kind', 'must be task, queue or all', kind);
  elsif kind = 'all' and name <> '' then
    perform "${schema}".pgworker_wrong('name', 'must be empty where the kind is all', name);
  elsif kind <> 'all' and coalesce(name, '') = '' then
    perform "${schema}".pgworker_wrong('name', 'must name a ' || kind, name);
  end if;
  perform "${schema}".pgworker_check_length('name', nullif(name, ''), 128);
end
$$;
comment on function "${schema}".pgworker_check_pause(text, text) is
  'Raises an error unless this says what to pause: the kind "task" or "queue" with a name, or "all" without one.';

create or replace function "${schema}".pgworker_hold_queue(queue_name text) returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp as $$
declare
  queue int;
  holder text;
begin
  loop
    queue := "${schema}".pgworker_queue_id(pgworker_hold_queue.queue_name);
    select q.locked_by into holder from "${schema}"._private_job_queues q where q.id = queue for update;
    exit when found;
  end loop;
  if holder is distinct from 'pgworker-paused' then
    update "${schema}".pgworker_pauses p set held_by = holder
      where p.kind = 'queue' and p.name = pgworker_hold_queue.queue_name;
    update "${schema}"._private_job_queues q set locked_at = '9999-01-01 00:00:00+00', locked_by = 'pgworker-paused' where q.id = queue;
  end if;
end
$$;
comment on function "${schema}".pgworker_hold_queue(text) is
  'Locks a queue, which is created if it does not exist, for a pause that is recorded already. A job of it that runs goes on.';

create or replace function "${schema}".pgworker_pause(kind text, name text default '', by text default null, reason text default null)
returns boolean
language plpgsql volatile
set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
declare
  changed boolean;
begin
  perform "${schema}".pgworker_check_pause(kind, name);
  perform "${schema}".pgworker_check_length('by', by, 255);
  perform "${schema}".pgworker_check_length('reason', reason, 1000);
  insert into "${schema}".pgworker_pauses as p (kind, name, paused_by, reason) values (kind, coalesce(name, ''), by, reason)
    on conflict on constraint pgworker_pauses_pkey do update set
        paused_at = excluded.paused_at, paused_by = excluded.paused_by, reason = excluded.reason,
        held_by = null, held_at = null, job_ids = null, resumed_at = null
      where p.resumed_at is not null;
  changed := found;
  if kind = 'queue' then
    perform "${schema}".pgworker_hold_queue(name);
  end if;
  if changed then
    perform pg_notify('pgworker:pauses', '');
  end if;
  return changed;
end
$$;
comment on function "${schema}".pgworker_pause(text, text, text, text) is
  'Has workers start no more jobs of a task (kind "task", PgWorker only), of a queue ("queue", all workers) or at all ("all", PgWorker '
  'only) until that is resumed, and records who wants it and why. What runs goes on. Returns whether it was not paused before.';

-- The jobs that ran when the queue was paused may run still, and it is theirs again then. Their workers find out when they end; one whose
-- statement began before sees a queue that is not its own, and does not free it. PgWorker notices that by itself, for others the row stays.
create or replace function "${schema}".pgworker_resume_queue(paused "${schema}".pgworker_pauses) returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp as $$
declare
  queue int;
  running bigint[];
  since timestamptz;
begin
  select q.id into queue from "${schema}"._private_job_queues q
    where q.queue_name = paused.name and q.locked_by = 'pgworker-paused' for update;
  if queue is not null and paused.held_by is not null then
    select array_agg(j.id), max(j.locked_at) into running, since
      from "${schema}"._private_jobs j where j.job_queue_id = queue and j.locked_by = paused.held_by;
  end if;
  update "${schema}"._private_job_queues q set locked_at = since, locked_by = case when running is not null then paused.held_by end
    where q.id = queue;
  if running is null or paused.held_by like 'pgworker-%' then
    delete from "${schema}".pgworker_pauses p where p.kind = 'queue' and p.name = paused.name;
  else
    update "${schema}".pgworker_pauses p set held_at = since, job_ids = running, resumed_at = clock_timestamp()
      where p.kind = 'queue' and p.name = paused.name;
  end if;
  if queue is not null and running is null then
    perform "${schema}".pgworker_wake(1, null, '');
  end if;
end
$$;
comment on function "${schema}".pgworker_resume_queue("${schema}".pgworker_pauses) is
  'Gives a paused queue back to whoever has run a job of it all the time, or else frees it and wakes workers.';

create or replace function "${schema}".pgworker_resume(kind text, name text default '') returns boolean
language plpgsql volatile
set search_path = pg_catalog, pg_temp as $$
declare
  paused "${schema}".pgworker_pauses;
begin
  perform "${schema}".pgworker_check_pause(kind, name);
  select * into paused from "${schema}".pgworker_pauses p
    where p.kind = pgworker_resume.kind and p.name = coalesce(pgworker_resume.name, '') and p.resumed_at is null for update;
  if not found then
    return false;
  elsif kind = 'queue' then
    perform "${schema}".pgworker_resume_queue(paused);
  else
    delete from "${schema}".pgworker_pauses p where p.kind = paused.kind and p.name = paused.name;
  end if;
  perform pg_notify('pgworker:pauses', '');
  return true;
end
$$;
comment on function "${schema}".pgworker_resume(text, text) is
  'Ends what pgworker_pause has begun; returns whether it was paused.';

create or replace function "${schema}".pgworker_keep_pauses() returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp as $$
declare
  kept "${schema}".pgworker_pauses;
  queue int;
begin
  for kept in
    select * from "${schema}".pgworker_pauses p where p.kind = 'queue' order by p.name for update skip locked
  loop
    if kept.resumed_at is null then
      perform "${schema}".pgworker_hold_queue(kept.name);
    elsif not exists (
        select from unnest(kept.job_ids) g(id)
        cross join lateral (
          select from "${schema}"._private_jobs h where h.id = g.id and h.locked_by = kept.held_by offset 0) j) then
      update "${schema}"._private_job_queues q set locked_at = null, locked_by = null
        where q.queue_name = kept.name and q.locked_by = kept.held_by and q.locked_at = kept.held_at
        returning q.id into queue;
      if queue is not null then
        perform "${schema}".pgworker_wake(1, null, '');
      end if;
      delete from "${schema}".pgworker_pauses p where p.kind = kept.kind and p.name = kept.name;
    end if;
  end loop;
end
$$;
comment on function "${schema}".pgworker_keep_pauses() is
  'Locks paused queues that somebody has freed, and frees queues whose last job ended while they were resumed.';

-- Workers ask every few seconds on the connection on which they listen, and hear nothing until the answer: a locked table is not waited for.
create or replace function "${schema}".pgworker_look_out(
  out pauses boolean, out limits boolean, out schedules boolean, out cancellations boolean)
language plpgsql stable
set lock_timeout = '500ms' set jit = off
set search_path = pg_catalog, pg_temp as $$
begin
  pauses := exists (select from "${schema}".pgworker_pauses);
  limits := exists (select from "${schema}".pgworker_limits);
  schedules := exists (select from "${schema}".pgworker_schedules);
  cancellations := exists (select from "${schema}".pgworker_cancellations);
end
$$;
comment on function "${schema}".pgworker_look_out() is
  'Whether anything is paused, limited, scheduled or cancelled, or was and is not settled. Raises 55P03 if one of the tables is locked.';


-- 8 Recovery ------------------------------------------------------------------------------------------------------------------

-- Called by workers about themselves (heartbeat, deregistration) and, once a minute or by hand, about dead ones, as the roles "worker" and
-- "operator". A heartbeat costs one row; looking for dead workers costs their registrations, and one pass over the jobs if there are any.

-- An index holds 2704 bytes at most.
create or replace function "${schema}".worker_heartbeat(worker_id text, metadata json default null) returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp as $$
begin
  if worker_heartbeat.worker_id is null then
    raise exception 'worker_id must not be null' using errcode = '22004';
  elsif octet_length(worker_heartbeat.worker_id) > 2000 then
    raise exception 'worker_id must have at most 2000 bytes, but has %', octet_length(worker_heartbeat.worker_id) using errcode = '22001';
  end if;
  insert into "${schema}"._private_workers as w (id, last_heartbeat_at, metadata)
    values (worker_heartbeat.worker_id, now(), worker_heartbeat.metadata::jsonb)
    on conflict (id) do update set
      last_heartbeat_at = excluded.last_heartbeat_at,
      metadata = coalesce(excluded.metadata, w.metadata);
end
$$;
comment on function "${schema}".worker_heartbeat(text, json) is
  'Registers a worker, or records its heartbeat; null keeps the metadata. An id has at most 2000 bytes.';

-- Its row may be locked by a sweep that is about to delete it. The statement ends before its client gives up, after 10 s.
create or replace function "${schema}".pgworker_heartbeat(worker_id text, metadata json, register boolean) returns boolean
language plpgsql volatile
set lock_timeout = '8s'
set search_path = pg_catalog, pg_temp as $$
begin
  if register then
    perform "${schema}".worker_heartbeat(pgworker_heartbeat.worker_id, pgworker_heartbeat.metadata);
    return true;
  end if;
  update "${schema}"._private_workers w set last_heartbeat_at = now()
    where w.id = pgworker_heartbeat.worker_id and not coalesce(w.metadata ? 'foundDeadAt', false);
  return found;
end
$$;
comment on function "${schema}".pgworker_heartbeat(text, json, boolean) is
  'Registers a worker, or records the heartbeat of a registered one; returns false if it is no longer registered, because it was found dead.';

create or replace function "${schema}".worker_deregister(worker_id text) returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp as $$
begin
  if worker_deregister.worker_id is null then
    raise exception 'worker_id must not be null' using errcode = '22004';
  end if;
  delete from "${schema}"._private_workers w where w.id = worker_deregister.worker_id;
  if exists (select from "${schema}".pgworker_batches b where b.worker_id = worker_deregister.worker_id) then
    perform "${schema}".pgworker_bury_batches(array[worker_deregister.worker_id]);
  end if;
end
$$;
comment on function "${schema}".worker_deregister(text) is
  'Deletes the registration of a worker that has stopped cleanly, and a direct batch that has not ended by then.';

create or replace function "${schema}".list_stale_workers(stale_threshold interval) returns table (worker_id text)
language sql volatile
set search_path = pg_catalog, pg_temp as $$
  select w.id from "${schema}"._private_workers w where w.last_heartbeat_at < now() - stale_threshold order by w.id
$$;
comment on function "${schema}".list_stale_workers(interval) is 'Registered workers without a heartbeat for longer than the threshold.';

-- Workers of Node.js (pool-, otpool-) never register, so their absence proves nothing; their locks end after four hours.
create or replace function "${schema}".list_orphan_locked_workers(stale_threshold interval) returns table (worker_id text)
language sql volatile
set search_path = pg_catalog, pg_temp as $$
  select held.locked_by
  from (
    select j.locked_by from "${schema}"._private_jobs j where j.locked_at < now() - stale_threshold
    union
    select q.locked_by from "${schema}"._private_job_queues q where q.locked_at < now() - stale_threshold) held
  where held.locked_by is not null
    and held.locked_by not like 'pool-%'
    and held.locked_by not like 'otpool-%'
    and not exists (select from "${schema}"._private_workers w where w.id = held.locked_by)
  order by held.locked_by
$$;
comment on function "${schema}".list_orphan_locked_workers(interval) is
  'Workers that are not registered but have held a lock for longer than the threshold; excludes Node.js workers.';

-- All together or, where that is refused, each half by itself, as in pgworker_unlock. Of a retired job the attempts are kept: giving one
-- back would run it again. A job that has lost its worker too often pays with an attempt and waits the usual back-off. Jobs that are
-- delayed alike keep their order by microseconds.
create or replace function "${schema}".pgworker_take_back(
  job_ids bigint[], actions text[], run_ats timestamptz[], attempts int[], marked boolean[], before int, recovery_delay interval,
  max_recoveries int
) returns table (id bigint, outcome text, queue_id int, available boolean)
language plpgsql volatile
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off
set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
  total constant int := cardinality(job_ids);
  half constant int := (total + 1) / 2;
  done record;
  context text;
begin
  if coalesce(total, 0) = 0 then return; end if;
  begin
    perform set_config('pgworker.ending', 'recovered', true);
    with held as materialized (
      select j.tid, j.id, j.attempts, j.max_attempts, j.revision, g.action, g.at, g.new_attempts, before + g.place as place,
        least(coalesce((
          select r.recoveries from "${schema}".pgworker_recoveries r where r.job_id = j.id and r.revision = j.revision), 0), 1000000) + 1
          as times,
        case when j.key is null and j.attempts >= j.max_attempts then coalesce(
          "${schema}".pgworker_retirement(j.id, j.last_error),
          case when g.marked then 'Superseded or removed by its key while running' end) end as retired
      from unnest(job_ids, actions, run_ats, attempts, marked) with ordinality g(id, action, at, new_attempts, marked, place)
      cross join lateral (select h.ctid as tid, h.* from "${schema}"._private_jobs h where h.id = g.id offset 0) j),
    decided as materialized (
      select h.*,
        case
          when h.retired = 'Cancelled while running' then 'cancelled'
          when h.retired is not null then 'superseded'
          when h.action = 'reschedule' then 'rescheduled'
          when h.action = 'fail' or h.times > max_recoveries then
            case when h.attempts >= h.max_attempts then 'exhausted' else 'failed' end
          else 'returned'
        end as outcome
      from held h),
    changed as (
      update "${schema}"._private_jobs j set
          attempts = case d.outcome
            when 'returned' then greatest(0, j.attempts - 1)
            when 'rescheduled' then coalesce(d.new_attempts, greatest(0, j.attempts - 1))
            else j.attempts
          end,
          run_at = case d.outcome
            when 'returned' then greatest(now(), j.run_at) + recovery_delay + d.place * interval '1 microsecond'
            when 'rescheduled' then d.at
            when 'failed' then greatest(now(), j.run_at) + "${schema}".pgworker_backoff(j.attempts)
            else j.run_at
          end,
          last_error = case
            when d.retired is not null then d.retired || '; its worker died'
            when d.outcome in ('failed', 'exhausted') then format(
              'WorkerCrashed: worker %s died during attempt %s of %s; the job has lost its worker %s times',
              j.locked_by, j.attempts, j.max_attempts, d.times)
            else 'Job recovered after worker interruption'
          end,
          locked_at = null,
          locked_by = null,
          updated_at = now()
        from decided d
        where j.ctid = d.tid
        returning j.id, d.outcome, j.job_queue_id, j.is_available, d.retired, d.revision, d.times),
    noted as (
      insert into "${schema}".pgworker_recoveries as r (job_id, revision, recoveries)
        select c.id, c.revision, c.times from changed c where c.retired is null
        on conflict (job_id) do update set revision = excluded.revision, recoveries = excluded.recoveries)
    select array_agg(c.id) as ids, array_agg(c.outcome) as outcomes, array_agg(c.job_queue_id) as queues,
        array_agg(c.is_available) as available
      into done
      from changed c;
    perform set_config('pgworker.ending', '', true);
    if coalesce(cardinality(done.ids), 0) < total then
      raise exception 'a trigger keeps the row' using errcode = '27000';
    end if;
    set constraints all immediate;
    return query select * from unnest(done.ids, done.outcomes, done.queues, done.available);
    return;
  exception when others or assert_failure or query_canceled then
    get stacked diagnostics context = pg_exception_context;
    if not "${schema}".pgworker_about_row(sqlstate, context) then raise; end if;
    if total = 1 then
      id := job_ids[1];
      outcome := 'refused: ' || sqlerrm;
      return next;
      return;
    end if;
  end;
  for at in 1..total by half loop
    return query
      select *
      from "${schema}".pgworker_take_back(
        job_ids[at:at + half - 1], actions[at:at + half - 1], run_ats[at:at + half - 1],
        attempts[at:at + half - 1], marked[at:at + half - 1], before + at - 1, recovery_delay, max_recoveries);
  end loop;
end
$$;
comment on function "${schema}".pgworker_take_back(bigint[], text[], timestamptz[], int[], boolean[], int, interval, int) is
  'Does what pgworker_recover says with jobs, whose rows it has locked, in the order in which they are to start again, after so many '
  'before them. Tells of each whether it has attempts left, and its queue, unless it was refused.';

-- A row that somebody holds is left for the next sweep. What a Rust worker has retired is read when the rows are locked, so that it cannot
-- retire another one meanwhile.
create or replace function "${schema}".pgworker_recover(
  worker_ids text[], job_ids bigint[], idle_queues int[], recovery_delay interval, max_recoveries int, actions text[] default null,
  run_ats timestamptz[] default null, attempts int[] default null
) returns table (id bigint, outcome text)
language plpgsql volatile
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off
set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
  given record;
  marked boolean[];
  taken record;
begin
  if exists (select from unnest(actions) a where a not in ('default', 'reschedule', 'fail', 'skip')) then
    raise exception 'Unknown action in %: expected default, reschedule, fail or skip', actions using errcode = '22023';
  end if;
  select array_agg(l.id) as ids, array_agg(l.action) as actions, array_agg(l.at) as ats, array_agg(l.new_attempts) as new_attempts
    into given
    from (
      select g.id, g.action, g.at, g.new_attempts
      from (
        select distinct on (u.id) u.* from unnest(job_ids, actions, run_ats, attempts) u(id, action, at, new_attempts)
        order by u.id) g
      cross join lateral (
        select h.priority, h.run_at from "${schema}"._private_jobs h
        where h.id = g.id and h.locked_by = any(worker_ids) for update skip locked) j
      where g.action is distinct from 'skip'
      order by j.priority, j.run_at, g.id) l;
  if to_regclass('"${schema}"._private_job_retirements') is not null then
    execute 'select array_agg(exists (select from "${schema}"._private_job_retirements r where r.id = g.id) order by g.place) '
      'from unnest($1) with ordinality g(id, place)' into marked using given.ids;
  end if;
  select array_agg(t.id) as ids, array_agg(t.outcome) as outcomes, array_agg(t.queue_id) as queues,
      count(*) filter (where t.available) as ready
    into taken
    from "${schema}".pgworker_take_back(
      given.ids, given.actions, given.ats, given.new_attempts, marked, 0, recovery_delay, max_recoveries) t;
  return query select * from unnest(taken.ids, taken.outcomes);
  if 'cancelled' = any(taken.outcomes) then
    perform "${schema}".pgworker_end_cancelled(taken.ids);
  end if;
  if given.ids is not null then
    perform "${schema}".pgworker_sweep_up();
  end if;
  perform "${schema}".pgworker_free_queues_of(taken.queues, idle_queues, job_ids, worker_ids);
  perform "${schema}".pgworker_wake(taken.ready);
end
$$;
comment on function "${schema}".pgworker_recover(text[], bigint[], int[], interval, int, text[], timestamptz[], int[]) is
  'Takes jobs from dead workers and frees their queues. Give all the jobs, and idle queues, that these workers hold, as '
  'pgworker_held_by tells them. Action "default", or null: up to max_recoveries times a job '
  'runs again after the delay, its attempt not counted (outcome "returned"); later, and with action "fail", the attempt counts '
  '("failed", or "exhausted" if it was the last). "reschedule": it runs at the given time; null attempts leave the attempt uncounted '
  '("rescheduled"). "skip": it stays locked. A job that lost its key while running is never run again ("superseded"), and one that was cancelled is deleted ("cancelled"). One that cannot be '
  'changed, because of a trigger of somebody''s for instance, stays locked as well ("refused: " and the reason).';

create or replace function "${schema}".recover_dead_worker_jobs(worker_ids text[], recovery_delay interval default '0') returns int
language plpgsql volatile
set search_path = pg_catalog, pg_temp as $$
declare
  held record;
  decided record;
  unlocked int := 0;
begin
  if recovery_delay is null or recovery_delay not between interval '0' and interval '36500 days' then
    raise exception 'recovery_delay must be between 0 and 36500 days, but is %', recovery_delay using errcode = '22023';
  end if;
  select * into held from "${schema}".pgworker_held_by(recover_dead_worker_jobs.worker_ids);
  for decided in
    select * from "${schema}".pgworker_recover(worker_ids, held.job_ids, held.idle_queues, recovery_delay, 3)
  loop
    if decided.outcome like 'refused: %' then
      raise warning 'Job % stays locked: %', decided.id, substr(decided.outcome, length('refused: ') + 1);
    else
      unlocked := unlocked + 1;
    end if;
  end loop;
  return unlocked;
end
$$;
comment on function "${schema}".recover_dead_worker_jobs(text[], interval) is
  'Releases the jobs of dead workers, up to three times without counting an attempt, and their queues, and returns how many jobs it '
  'unlocked. Raises a warning for each job that could not be unlocked.';

-- Rows that are gone, or another worker's, are left out.
create or replace function "${schema}".pgworker_held_jobs(worker_ids text[], job_ids bigint[])
returns table (job "${schema}"._private_jobs, task text, queue text, recoveries int, retired boolean)
language sql volatile
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off
set search_path = pg_catalog, pg_temp as $$
  select j.whole, coalesce(t.identifier, 'task ' || j.task_id), q.queue_name,
    coalesce((select r.recoveries from "${schema}".pgworker_recoveries r where r.job_id = j.id and r.revision = j.revision), 0),
    j.key is null and j.attempts >= j.max_attempts and "${schema}".pgworker_retirement(j.id, j.last_error) is not null
  from unnest(job_ids) g(id)
  cross join lateral (
    select h as whole, h.* from "${schema}"._private_jobs h where h.id = g.id and h.locked_by = any(worker_ids) offset 0) j
  left join lateral (select n.identifier from "${schema}"._private_tasks n where n.id = j.task_id offset 0) t on true
  left join lateral (select n.queue_name from "${schema}"._private_job_queues n where n.id = j.job_queue_id offset 0) q on true
  order by j.id
$$;
comment on function "${schema}".pgworker_held_jobs(text[], bigint[]) is
  'The given jobs that are held by the given workers, with the names of their tasks and queues.';

create or replace function "${schema}".pgworker_flagged(flags jsonb, names text[]) returns boolean
language sql immutable parallel safe as $$
  select exists (
    select from pg_catalog.unnest(names) name
    where (flags operator(pg_catalog.->) name) operator(pg_catalog.<>) all (array['false', 'null', '0', '""']::pg_catalog.jsonb[]))
$$;
comment on function "${schema}".pgworker_flagged(jsonb, text[]) is 'Whether one of the named flags is present and true.';

-- Anybody may have written the metadata.
create or replace function "${schema}".pgworker_published(metadata jsonb, name text, most numeric) returns interval
language sql immutable parallel safe as $$
  select case
    when coalesce(pg_catalog.jsonb_typeof(metadata operator(pg_catalog.->) name) operator(pg_catalog.<>) 'number', true) then null
    when (metadata operator(pg_catalog.->>) name)::numeric operator(pg_catalog.>=) 1
        and (metadata operator(pg_catalog.->>) name)::numeric operator(pg_catalog.<=) most
      then (metadata operator(pg_catalog.->>) name)::float operator(pg_catalog.*) interval '1 millisecond'
  end
$$;
comment on function "${schema}".pgworker_published(jsonb, text, numeric) is
  'The milliseconds that a worker has published under the name, as an interval; null if they are none, or not from 1 to most.';

-- The limits are those of worker.recovery.sweep-threshold and its multiplier.
create or replace function "${schema}".pgworker_thresholds(
  metadata jsonb, threshold interval, peer_threshold interval, multiplier int, out usual interval, out resilient interval
)
language plpgsql immutable
set search_path = pg_catalog, pg_temp as $$
declare
  beat constant interval := "${schema}".pgworker_published(metadata, 'heartbeatIntervalMillis', 1.8e6);
begin
  if peer_threshold is null then
    usual := threshold;
    resilient := least(threshold * multiplier, interval '36500 days');
    return;
  end if;
  usual := "${schema}".pgworker_published(metadata, 'sweepThresholdMillis', 2.592e9);
  resilient := "${schema}".pgworker_published(metadata, 'resilientSweepThresholdMillis', 2.592e12);
  if usual is null or resilient is null or beat is null or usual < 2 * beat or resilient < usual then
    usual := greatest(threshold, peer_threshold);
    resilient := least(usual * multiplier, interval '36500 days');
  end if;
end
$$;
comment on function "${schema}".pgworker_thresholds(jsonb, interval, interval, int) is
  'How old the last heartbeat of a dead worker with such metadata is, and the same where it holds a resilient job: what it has published '
  'if that makes sense, or else the greater of the two thresholds, times the multiplier. Without a peer threshold the other counts for '
  'everybody.';

-- Reads the jobs once, and only if a worker is stale, or for orphans. Registrations stay locked until the transaction ends, so that a
-- worker that comes back meanwhile learns in its heartbeat what became of it. The text of list_orphan_locked_workers may be that of
-- a Rust worker, which takes Node.js workers for orphans.
create or replace function "${schema}".pgworker_dead_workers(
  threshold interval, peer_threshold interval, multiplier int, resilient_flags text[], with_orphans boolean, again boolean
) returns table (worker_id text, registered boolean, known boolean, job_ids bigint[], idle_queues int[])
language plpgsql volatile
set enable_nestloop = off set jit = off
set search_path = pg_catalog, pg_temp as $$
declare
  orphan_threshold constant interval := greatest(threshold, peer_threshold);
  resilient_orphan_threshold constant interval := least(orphan_threshold * multiplier, interval '36500 days');
  stale text[];
  spared text[];
  found_before text[];
begin
  with old as materialized (
    select w.id, w.last_heartbeat_at, w.metadata from "${schema}"._private_workers w
    where w.last_heartbeat_at < now() - (
        select t.usual from "${schema}".pgworker_thresholds(w.metadata, threshold, peer_threshold, multiplier) t)
      and (again or not coalesce(w.metadata ? 'foundDeadAt', false))
    order by w.id for update skip locked)
  select array_agg(o.id),
      array_agg(o.id) filter (where o.last_heartbeat_at >= now() - (
        select t.resilient from "${schema}".pgworker_thresholds(o.metadata, threshold, peer_threshold, multiplier) t)),
      array_agg(o.id) filter (where o.metadata ? 'foundDeadAt')
    into stale, spared, found_before
    from old o;
  if stale is null and not with_orphans then
    return;
  end if;
  return query
    with held as materialized (
      select l.job_id, l.queue_id, l.worker_id, l.locked_at,
        l.job_id is not null and "${schema}".pgworker_flagged(l.flags, resilient_flags) as resilient
      from "${schema}".pgworker_locks(case when not with_orphans then stale end) l),
    idle as (
      select h.worker_id, h.queue_id from held h where h.queue_id is not null
      group by h.worker_id, h.queue_id having bool_and(h.job_id is null)),
    holders as materialized (
      select h.worker_id, array_agg(h.job_id order by h.job_id) filter (where h.job_id is not null) as job_ids,
        bool_or(h.resilient) as resilient,
        bool_or(h.locked_at < now() - orphan_threshold) as old,
        bool_or(h.resilient and h.locked_at < now() - orphan_threshold and h.locked_at >= now() - resilient_orphan_threshold) as young
      from held h group by h.worker_id),
    idlers as materialized (
      select i.worker_id, array_agg(i.queue_id order by i.queue_id) as idle_queues from idle i group by i.worker_id),
    dead as (
      select s.id, true as registered, coalesce(s.id = any(found_before), false) as known
      from unnest(stale) s(id) left join holders h on h.worker_id = s.id
      where not (coalesce(h.resilient, false) and coalesce(s.id = any(spared), false))
      union all
      select h.worker_id, false, false from holders h
      where with_orphans and h.old and not coalesce(h.young, false)
        and h.worker_id not like 'pool-%'
        and h.worker_id not like 'otpool-%'
        and not exists (select from "${schema}"._private_workers w where w.id = h.worker_id))
    select d.id, d.registered, d.known, h.job_ids, i.idle_queues
    from dead d left join holders h on h.worker_id = d.id left join idlers i on i.worker_id = d.id
    order by d.registered desc, d.id;
end
$$;
comment on function "${schema}".pgworker_dead_workers(interval, interval, int, text[], boolean, boolean) is
  'Registered workers without a heartbeat for longer than their threshold (see pgworker_thresholds), and, if asked for, unregistered '
  'ones that have held a lock for longer; never those of Node.js. Workers that hold a job with one of the flags are waited for longer. '
  'With the jobs that each holds, and the queues that it holds without a job of them. Workers that were found dead before but kept '
  'jobs (known) are looked for only if asked for again.';

-- Jobs that are gone, and those that somebody has locked since, were not lost. Another role's session cannot be ended: it goes on until
-- its connection breaks.
create or replace function "${schema}".pgworker_bury_batches(worker_ids text[]) returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
  lost bigint[];
begin
  begin
    perform pg_terminate_backend(a.pid)
      from "${schema}".pgworker_batches b
      join pg_stat_activity a on a.pid = b.backend_pid and a.backend_xid::text::bigint = b.xid % 4294967296
      where b.worker_id = any(worker_ids);
  exception when insufficient_privilege then
    null;
  end;
  with gone as (
    delete from "${schema}".pgworker_batches b
    where (b.worker_id, b.chain) in (
      select o.worker_id, o.chain from "${schema}".pgworker_batches o where o.worker_id = any(worker_ids) for update skip locked)
    returning b.job_ids)
  select array_agg(distinct i.id) into lost from gone g cross join lateral unnest(g.job_ids) i(id);
  insert into "${schema}".pgworker_recoveries as r (job_id, revision, recoveries)
    select j.id, j.revision, 1
    from unnest(lost) l(id)
    cross join lateral (
      select h.id, h.revision from "${schema}"._private_jobs h where h.id = l.id and h.locked_at is null offset 0) j
    order by j.id
    on conflict on constraint pgworker_recoveries_pkey do update set
      recoveries = case when r.revision = excluded.revision then least(r.recoveries, 1000000) + 1 else 1 end,
      revision = excluded.revision;
end
$$;
comment on function "${schema}".pgworker_bury_batches(text[]) is
  'Forgets the direct batches of dead workers, counts a recovery for each of their jobs that is still there, and ends the sessions that '
  'still run them.';

-- A worker of which a job was passed over stays registered, so that the next sweep finds the job, but is told that it is dead.
create or replace function "${schema}".pgworker_bury(worker_ids text[], job_ids bigint[]) returns void
language plpgsql volatile
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off
set search_path = pg_catalog, pg_temp as $$
declare
  keeping text[];
begin
  keeping := array(
    select distinct j.locked_by
    from unnest(job_ids) g(id)
    cross join lateral (
      select h.locked_by from "${schema}"._private_jobs h where h.id = g.id and h.locked_by = any(worker_ids) offset 0) j);
  if exists (select from "${schema}".pgworker_batches b where b.worker_id = any(worker_ids)) then
    perform "${schema}".pgworker_bury_batches(worker_ids);
  end if;
  delete from "${schema}"._private_workers w where w.id = any(worker_ids) and w.id <> all(keeping);
  update "${schema}"._private_workers w set
      metadata = case when jsonb_typeof(w.metadata) = 'object' then w.metadata else '{}' end || jsonb_build_object('foundDeadAt', now())
    where w.id = any(keeping) and not coalesce(w.metadata ? 'foundDeadAt', false);
end
$$;
comment on function "${schema}".pgworker_bury(text[], bigint[]) is
  'Forgets workers that a sweep has found dead, but for those that hold one of the given jobs still, which it marks as dead, and the '
  'direct batches of all of them.';

-- A lock without a holder, which somebody wrote by hand, is nobody's.
create or replace function "${schema}".pgworker_old_locks(
  out worker_ids text[], out job_ids bigint[], out old_job_ids bigint[], out idle_queues int[], out peer text
)
language sql stable
set enable_nestloop = off set jit = off
set search_path = pg_catalog, pg_temp as $$
  with held as materialized (
    select l.job_id, l.queue_id, coalesce(l.worker_id, '') as worker_id, l.locked_at < now() - interval '4 hours' as old
    from "${schema}".pgworker_locks(null) l),
  silent as materialized (
    select h.worker_id from held h group by h.worker_id
    having bool_or(h.old) and not "${schema}".pgworker_lives(h.worker_id)),
  theirs as materialized (
    select h.* from held h where h.worker_id in (select s.worker_id from silent s))
  select
    (select array_agg(s.worker_id) from silent s),
    (select array_agg(t.job_id order by t.job_id) from theirs t where t.job_id is not null),
    (select array_agg(t.job_id order by t.job_id) from theirs t where t.job_id is not null and t.old),
    (select array_agg(i.queue_id) from (
      select t.queue_id from theirs t where t.queue_id is not null
      group by t.queue_id, t.worker_id having bool_and(t.job_id is null and t.old)) i),
    (select min(h.worker_id) from held h
      where h.worker_id like 'pool-%' or h.worker_id like 'otpool-%'
        or h.worker_id in (
          select w.id from "${schema}"._private_workers w where not coalesce(w.metadata ? 'heartbeatIntervalMillis', false)))
$$;
comment on function "${schema}".pgworker_old_locks() is
  'Workers that hold a lock of four hours or more and give no sign of life, all their jobs, those locked so long ago, and the queues '
  'that they have held for so long without a job of them. Besides that, one worker of Node.js or Rust that holds a lock, however old.';

-- Attempts stay counted, as Node.js does it.
create or replace function "${schema}".pgworker_release_old_locks(out released bigint, out unindexed_peer text)
language plpgsql volatile
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off
set search_path = pg_catalog, pg_temp as $$
declare
  gone record;
  unlocked record;
  silent text[];
begin
  select * into gone from "${schema}".pgworker_old_locks();
  if to_regclass('"${schema}".jobs_main_index') is null then
    unindexed_peer := gone.peer;
  end if;
  select * into unlocked from "${schema}".pgworker_unlock(array(
    select g.id from (select given.id from unnest(gone.old_job_ids) given(id) order by given.id) g
    cross join lateral (
      select from "${schema}"._private_jobs h
      where h.id = g.id and h.locked_at < now() - interval '4 hours' and coalesce(h.locked_by, '') = any(gone.worker_ids)
      for update skip locked) j));
  released := unlocked.released;
  silent := array(
    select distinct b.worker_id from "${schema}".pgworker_batches b
    where b.started_at < now() - interval '4 hours' and not "${schema}".pgworker_lives(b.worker_id));
  if silent <> '{}' then
    perform "${schema}".pgworker_bury_batches(silent);
  end if;
  perform "${schema}".pgworker_free_queues_of(unlocked.queue_ids, gone.idle_queues, gone.job_ids, gone.worker_ids);
  perform "${schema}".pgworker_wake(unlocked.ready);
end
$$;
comment on function "${schema}".pgworker_release_old_locks() is
  'Releases locks of four hours or more, except those of workers that prove their life; returns how many jobs it unlocked. Where the '
  'index that Node.js and Rust workers fetch with is missing, it names one of these that it has met, or null.';

create or replace function "${schema}".delete_stale_workers(worker_ids text[]) returns void
language sql volatile
set search_path = pg_catalog, pg_temp as $$
  delete from "${schema}"._private_workers w where w.id = any(worker_ids)
$$;
comment on function "${schema}".delete_stale_workers(text[]) is 'Deletes the registrations of workers that a sweep has found dead.';


-- 9 The engine ----------------------------------------------------------------------------------------------------------------

-- Called by PgWorker's workers all the time, as the role "worker". A claim costs what it takes, whatever else is in the table, but for one
-- step in an index for each priority that has waiting jobs.

-- Only PgWorker calls these. Their settings pin the plans to index scans: a plan made while the tables were empty, or from stale
-- statistics, would otherwise read whole tables. Rows are changed by ctid, which no plan can turn into a join over the table; the
-- snapshot of the calling statement keeps a ctid from being reused meanwhile. Functions without these settings are called by those
-- that have them, and plan under them.

create or replace function "${schema}".pgworker_task_ids(identifiers text[]) returns table (identifier text, id int)
language plpgsql volatile
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off
set enable_hashjoin = off set enable_mergejoin = off set jit = off set lock_timeout = '100ms'
set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
  missing text;
begin
  for missing in
    select distinct n.name collate "C" as name from unnest(identifiers) n(name)
    where not exists (select from "${schema}"._private_tasks t where t.identifier = n.name)
    order by 1
  loop
    begin
      perform "${schema}".pgworker_task_id(missing);
    exception when lock_not_available then
      null; -- somebody creates it in an open transaction, with the first job
    end;
  end loop;
  return query
    select t.identifier, t.id from "${schema}"._private_tasks t where t.identifier = any(identifiers);
end
$$;
comment on function "${schema}".pgworker_task_ids(text[]) is
  'Ids of the given task identifiers; missing ones are created, in name order, and nothing is written when all exist. One that an open '
  'transaction is creating is left out: no other transaction can have a job of it.';

-- The claim: which due jobs a worker locks next.
--
-- Queues are locked before jobs, and nobody here waits for a row: what somebody else holds is passed over. Of the claims of many jobs one is
-- under way at a time in a schema, so that each sees what the one before it has taken, and workers do not meet at the same rows.

create or replace function "${schema}".pgworker_allowed(flags jsonb, forbidden text[]) returns boolean
language sql immutable parallel safe as $$
  select forbidden is null or flags is null or not flags operator(pg_catalog.?|) forbidden
$$;
comment on function "${schema}".pgworker_allowed(jsonb, text[]) is 'Whether none of the flags of a job is forbidden.';

create or replace function "${schema}".pgworker_short(payload json) returns json
language sql immutable parallel safe as $$
  select case when pg_catalog.pg_column_size(payload) operator(pg_catalog.<=) 2000
    and pg_catalog.octet_length(payload::pg_catalog.text) operator(pg_catalog.<=) 8000 then payload end
$$;
comment on function "${schema}".pgworker_short(json) is
  'The payload if it is small; others are read just before their jobs run, so that a claim takes little memory.';

-- The row of a queue is changed all the time, and while somebody holds a snapshot its former versions stay. The newest one has the last
-- index entry: an equality read forwards would meet all the others first.
create or replace function "${schema}".pgworker_queue_row(queue_id int)
returns table (tid tid, locked_at timestamptz, locked_by text, queue_name text)
language sql stable rows 1 as $$
  select q.ctid, q.locked_at, q.locked_by, q.queue_name from "${schema}"._private_job_queues q
  where q.id operator(pg_catalog.>=) $1 and q.id operator(pg_catalog.<=) $1 order by q.id desc limit 1
$$;
comment on function "${schema}".pgworker_queue_row(int) is 'The address of a queue''s row, whose lock it has, and its name.';

-- The queues of due jobs in order, from the place "after" or the floors on, their rows locked, and the first jobs of each.
-- A queue's row that was changed since it was found is no longer at the address that was found, so what is locked is free.
create or replace function "${schema}".pgworker_take_queues(
  request "${schema}".pgworker_request, floors "${schema}".pgworker_floor[], after "${schema}".pgworker_floor, most_rows int,
  most_queues int, tried int[], anywhere boolean,
  out walked int, out free int, out queues int[], out queue_tids tid[], out names text[],
  out job_queues int[], out tids tid[], out priorities int[], out run_ats timestamptz[], out ids bigint[],
  out last_priority int, out last_run_at timestamptz, out last_id bigint
) language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
declare
  task_ids constant int[] := request.task_ids;
  runs constant int[] := request.runs;
  forbidden constant text[] := request.forbidden;
  passed constant int[] := array(
    select p.job_queue_id from "${schema}"._private_jobs p where p.id = any(request.passed) and p.job_queue_id is not null);
  starts int[];
  start_priorities int[];
  start_run_ats timestamptz[];
  start_ids bigint[];
  amounts int[];
begin
  with recursive walk as materialized (
    select w.*, row_number() over () as place
    from unnest(floors) l
    cross join lateral (
      select j.job_queue_id as queue, j.priority, j.run_at, j.id, j.task_id from "${schema}"._private_jobs j
      where j.is_available and j.job_queue_id is not null and j.priority >= -32768 and j.priority = l.priority and j.run_at <= now()
        and (j.run_at, j.id) >= (
          case when l.priority = after.priority then after.run_at else l.run_at end,
          case when l.priority = after.priority then after.id else l.id end)
        and j.task_id = any(task_ids) and j.job_queue_id <> all(passed) and "${schema}".pgworker_allowed(j.flags, forbidden)
      order by j.run_at, j.id limit most_rows) w
    where l.queued and not anywhere and (after.priority is null or l.priority >= after.priority)
    limit most_rows),
  -- Downwards: what finished jobs have left lies at the other end of a queue.
  step(queue, start, wrapped, n) as (
    select s.start, s.start, false, 0
    from (select (random() * (
      select j.job_queue_id from "${schema}"._private_jobs j where j.is_available and j.job_queue_id is not null
      order by j.job_queue_id desc, j.priority desc, j.run_at desc, j.id desc limit 1))::int + 1 as start) s
    where anywhere
    union all
    select coalesce(n.queue, 2147483647), s.start, s.wrapped or n.queue is null, s.n + 1
    from step s
    left join lateral (
      select j.job_queue_id as queue from "${schema}"._private_jobs j
      where j.is_available and j.job_queue_id is not null and j.job_queue_id < s.queue
      order by j.job_queue_id desc, j.priority desc, j.run_at desc, j.id desc limit 1) n on true
    where s.n < 300 and not (s.wrapped and (n.queue is null or n.queue < s.start))),
  first_job as (
    select * from (
      select distinct on (w.queue) w.*, count(*) over (partition by w.queue) as seen from walk w where w.queue <> all(tried)
      order by w.queue, w.place) w
    union all
    select s.queue, f.*, row_number() over (order by f.priority, f.run_at, f.id), 1
    from step s
    cross join lateral (
      select f.* from unnest(floors) l
      cross join lateral (
        select j.priority, j.run_at, j.id, j.task_id from "${schema}"._private_jobs j
        where l.queued and j.is_available and j.job_queue_id is not null and j.job_queue_id = s.queue and j.priority = l.priority
          and j.run_at <= now() and (j.run_at, j.id) >= (l.run_at, l.id)
          and j.task_id = any(task_ids) and "${schema}".pgworker_allowed(j.flags, forbidden)
        order by j.run_at, j.id limit 1) f limit 1) f
    where s.n > 0 and s.queue <> all(tried) and s.queue <> all(passed)),
  free_queue as materialized (
    select f.*, q.tid from first_job f cross join lateral "${schema}".pgworker_queue_row(f.queue) q
    where q.locked_at is null order by f.place limit most_queues),
  held as (
    select f.*, q.ctid as row_tid, q.queue_name from free_queue f
    join "${schema}"._private_job_queues q on q.ctid = f.tid and q.locked_at is null
    order by f.place for no key update of q skip locked),
  last_one as (
    select w.* from walk w
    where w.place = (select case when (select count(*) from free_queue) < most_queues then max(w.place) else (select max(f.place) from free_queue f) end from walk w))
  select (select count(*) from walk), (select count(*) from free_queue), array_agg(h.queue), array_agg(h.row_tid), array_agg(h.queue_name),
      array_agg(h.priority), array_agg(h.run_at), array_agg(h.id),
      array_agg(least(greatest(1, runs[array_position(task_ids, h.task_id)]), greatest(request.share, h.seen))),
      (select l.priority from last_one l), (select l.run_at from last_one l), (select l.id + 1 from last_one l)
    into walked, free, queues, queue_tids, names, start_priorities, start_run_ats, start_ids, amounts, last_priority, last_run_at, last_id
    from held h;
  if queues is not null then
    select array_agg(l.queue), array_agg(r.tid), array_agg(r.priority), array_agg(r.run_at), array_agg(r.id)
      into job_queues, tids, priorities, run_ats, ids
      from unnest(queues, start_priorities, start_run_ats, start_ids, amounts) l(queue, priority, run_at, id, amount)
      cross join lateral (
        -- What somebody has just given back may be of a better priority than what the floors let see.
        select k.* from unnest(floors) f
        cross join lateral (
          select j.ctid as tid, j.priority, j.run_at, j.id from "${schema}"._private_jobs j
          where j.is_available and j.job_queue_id is not null and j.job_queue_id = l.queue and j.priority = f.priority and j.run_at <= now()
            and (j.run_at, j.id) >= (
              case when request.from_first then '-infinity' else l.run_at end, case when request.from_first then 0 else l.id end)
            and j.task_id = any(task_ids) and "${schema}".pgworker_allowed(j.flags, forbidden)
          order by j.run_at, j.id limit l.amount) k
        where f.queued and (f.priority = l.priority or f.priority < l.priority and request.from_first)
        limit l.amount) r;
  end if;
end
$$;
comment on function "${schema}".pgworker_take_queues(
    "${schema}".pgworker_request, "${schema}".pgworker_floor[], "${schema}".pgworker_floor, int, int, int[], boolean) is
  'Locks the rows of free queues that have due jobs, most_queues at most, found among the first most_rows due jobs, without those tried '
  'before, or among 300 queues from one anywhere on; and finds the first jobs of each, in order. Tells how many jobs it has walked, how many queues '
  'it has found free, and the place after the last.';

-- Walk the due jobs of queues in order; of each free queue met, lock its row, then find its first jobs, as many as its run; go on until
-- there are enough. If the walk has met nothing but held queues, look at some from anywhere on. What is locked must be what was found, or the
-- queue's run ends before it.
create or replace function "${schema}".pgworker_claim_queued(
  request "${schema}".pgworker_request, wanted int, floors "${schema}".pgworker_floor[], any_unqueued boolean,
  out taken tid[], out queues int[], out queue_tids tid[], out names text[], out again boolean
) language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
declare
  unqueued constant int[] := coalesce(request.unqueued_task_ids, request.task_ids);
  passed constant bigint[] := coalesce(request.passed, '{}');
  run constant int := greatest(1, least(request.share, coalesce((select max(r) from unnest(request.runs) r), 1)));
  depth int := 500 + 4 * wanted;
  most_rows int;
  most_queues int := 1 + wanted * 17 / 16 / run;
  anywhere boolean := false;
  found record;
  after "${schema}".pgworker_floor;
  walked int := 0;
  run_queues int[] := '{}';
  run_tids tid[] := '{}';
  run_priorities int[] := '{}';
  run_times timestamptz[] := '{}';
  run_ids bigint[] := '{}';
  tids tid[];
  taken_queues int[];
begin
  again := false;
  queues := '{}';
  queue_tids := '{}';
  names := '{}';
  taken := '{}';
  while cardinality(run_tids) < wanted and most_queues > 0 loop
    most_rows := greatest(0, least(depth, 16 + case when walked = 0 then most_queues
      else (wanted - cardinality(run_tids))::bigint * walked * 5 / (4 * (1 + cardinality(run_tids))) end));
    found := "${schema}".pgworker_take_queues(request, floors, after, most_rows, most_queues, queues, anywhere);
    again := again or anywhere or found.free > coalesce(cardinality(found.queues), 0);
    queues := queues || found.queues;
    queue_tids := queue_tids || found.queue_tids;
    names := names || found.names;
    run_queues := run_queues || found.job_queues;
    run_tids := run_tids || found.tids;
    if any_unqueued then
      run_priorities := run_priorities || found.priorities;
      run_times := run_times || found.run_ats;
      run_ids := run_ids || found.ids;
    end if;
    after := row(true, found.last_priority, found.last_run_at, found.last_id);
    exit when anywhere or found.walked < most_rows and found.free < most_queues or found.free = 0 and run_tids <> '{}';
    depth := depth - found.walked;
    walked := walked + found.walked;
    anywhere := depth <= 0 and run_tids = '{}';
    exit when depth <= 0 and not anywhere;
    most_queues := least(wanted, 2 + (wanted - cardinality(run_tids)) * (1 + cardinality(queues)) / (1 + cardinality(run_tids)));
  end loop;
  if run_tids = '{}' then
    return;
  end if;
  if any_unqueued then -- their places among those without a queue
    select array_agg(m.tid), array_agg(m.queue) into run_tids, run_queues
      from (
        select * from unnest(run_queues, run_tids, run_priorities, run_times, run_ids) r(queue, tid, priority, run_at, id)
        union all
        select null, null, f.* from unnest(floors) l
        cross join lateral (
          select j.priority, j.run_at, j.id from "${schema}"._private_jobs j
          where j.is_available and j.job_queue_id is null and j.priority = l.priority and j.run_at <= now()
            and (j.run_at, j.id) >= (l.run_at, l.id) and j.task_id = any(unqueued) and j.id <> all(passed)
            and "${schema}".pgworker_allowed(j.flags, request.forbidden)
          order by j.run_at, j.id limit wanted) f
        where not l.queued
        order by priority, run_at, id limit wanted) m
      where m.tid is not null;
  end if;
  select coalesce(array_agg(r.tid order by r.tid), '{}'), array_agg(r.queue order by r.tid) into tids, taken_queues
    from (select r.tid, r.queue from unnest(run_tids, run_queues) r(tid, queue) limit wanted) r;
  select coalesce(array_agg(j.tid), '{}') into taken from (
    select j.ctid as tid from "${schema}"._private_jobs j where j.ctid = any(tids) and j.is_available for update skip locked) j;
  if taken <> tids then
    select coalesce(array_agg(r.tid), '{}'), array_agg(r.queue) into taken, taken_queues
      from (
        select r.queue, r.tid, bool_and(r.tid = any(taken)) over (partition by r.queue order by r.n) as whole
        from unnest(run_tids, run_queues) with ordinality r(tid, queue, n) where r.tid = any(tids)) r
      where r.whole;
    again := true;
  end if;
  -- The queues of which jobs are taken; the others' rows were locked for nothing.
  select array_agg(q.queue), array_agg(q.tid), array_agg(q.name) into queues, queue_tids, names
    from unnest(queues, queue_tids, names) q(queue, tid, name) where q.queue = any(taken_queues);
end
$$;
comment on function "${schema}".pgworker_claim_queued("${schema}".pgworker_request, int, "${schema}".pgworker_floor[], boolean) is
  'Locks the rows of jobs of queues that a claim takes, and those of their queues, whose ids, addresses and names it returns; and whether '
  'to look again soon, since somebody held a row for the moment or there may be more. If there are jobs without a queue, it leaves them their places.';

create or replace function "${schema}".pgworker_claim(
  request "${schema}".pgworker_request, wanted int, floors "${schema}".pgworker_floor[], dry boolean default false
) returns setof "${schema}".pgworker_claimed
language plpgsql volatile rows 100
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off
set enable_hashjoin = off set enable_mergejoin = off set jit = off set lock_timeout = '500ms'
set search_path = pg_catalog, pg_temp as $$
declare
  many constant int := 50;
  unqueued constant int[] := coalesce(request.unqueued_task_ids, request.task_ids);
  passed constant bigint[] := coalesce(request.passed, '{}');
  any_queued boolean;
  any_unqueued boolean;
  queued record;
  taken tid[] := '{}';
  queues int[];
  names text[];
  again boolean := false;
  claimed_at timestamptz;
  claimed int;
begin
  if wanted is null or wanted not between 1 and 100000 then
    perform "${schema}".pgworker_wrong('wanted', 'must be between 1 and 100000', wanted::text);
  end if;
  if wanted >= many then
    lock table "${schema}".pgworker_turn in exclusive mode;
  end if;
  any_queued := exists (
    select from unnest(floors) l
    cross join lateral (
      select from "${schema}"._private_jobs j
      where j.is_available and j.job_queue_id is not null and j.priority >= -32768 and j.priority = l.priority and j.run_at <= now()
        and (j.run_at, j.id) >= (l.run_at, l.id) limit 1) f
    where l.queued);
  any_unqueued := not any_queued or exists (
    select from unnest(floors) l
    cross join lateral (
      select from "${schema}"._private_jobs j
      where j.is_available and j.job_queue_id is null and j.priority = l.priority and j.run_at <= now()
        and (j.run_at, j.id) >= (l.run_at, l.id) and j.task_id = any(unqueued) limit 1) f
    where not l.queued);
  if any_queued then
    queued := "${schema}".pgworker_claim_queued(request, wanted, floors, any_unqueued);
    taken := queued.taken;
    queues := queued.queues;
    names := queued.names;
    again := queued.again;
  end if;
  if any_unqueued and cardinality(taken) < wanted then
    select taken || coalesce(array_agg(f.tid), '{}') into taken from (
      select f.tid from unnest(floors) l
      cross join lateral (
        select j.ctid as tid from "${schema}"._private_jobs j
        where j.is_available and j.job_queue_id is null and j.priority = l.priority and j.run_at <= now()
          and (j.run_at, j.id) >= (l.run_at, l.id) and j.task_id = any(unqueued) and j.id <> all(passed)
          and "${schema}".pgworker_allowed(j.flags, request.forbidden)
        order by j.run_at, j.id limit wanted for update skip locked) f
      where not l.queued
      limit wanted - cardinality(taken)) f;
  end if;

  if dry then
    return query select j.id, j.job_queue_id, null::text, j.task_id, null::json, j.priority, j.run_at, j.attempts, j.max_attempts, null::text,
        null::timestamptz, null::timestamptz, null::text, null::int, null::jsonb, j.ctid, null::timestamptz
      from "${schema}"._private_jobs j where j.ctid = any(taken);
    return;
  end if;
  -- Later than any claim before, of whose write nothing is to be mistaken for this one's.
  claimed_at := clock_timestamp();
  if queues is not null then
    update "${schema}"._private_job_queues q set locked_at = claimed_at, locked_by = request.worker_id
      where q.ctid = any(queued.queue_tids) and q.locked_at is null;
    get diagnostics claimed = row_count;
    if claimed < cardinality(queues) then
      raise exception 'a trigger keeps a queue from being locked' using errcode = '27000';
    end if;
  end if;
  return query
    update "${schema}"._private_jobs j set attempts = j.attempts + 1, locked_at = claimed_at, locked_by = request.worker_id
      where j.ctid = any(taken)
      returning j.id, j.job_queue_id, names[array_position(queues, j.job_queue_id)], j.task_id,
        "${schema}".pgworker_short(j.payload), j.priority, j.run_at, j.attempts, j.max_attempts, j.last_error,
        case when j.created_at <> j.run_at then j.created_at end, case when j.updated_at <> j.created_at then j.updated_at end,
        j.key, j.revision, j.flags, j.ctid, j.locked_at;
  get diagnostics claimed = row_count;
  if claimed < cardinality(taken) then
    raise exception 'a trigger keeps a job from being claimed' using errcode = '27000';
  end if;
  if claimed < wanted then
    return next row(null, null, null, null, null, again::int, null, null, null, null, null, null, null, null, null, null, now())
      ::"${schema}".pgworker_claimed;
  end if;
end
$$;
comment on function "${schema}".pgworker_claim("${schema}".pgworker_request, int, "${schema}".pgworker_floor[], boolean) is
  'Locks due jobs for a worker, as many as wanted, from the floors on, counts the attempt and returns them. Of a queue it takes the '
  'first jobs, while nobody has it locked. The claim is known by its jobs'' ids and locked_at, which is the same for all. If fewer are returned than '
  'wanted, there is a last row without id, with the time as of which it has looked as locked_at, and 1 as priority if it is worth looking again soon. A '
  'claim of 50 jobs or more waits for its turn, for half a second, and fails with 55P03 then: ask for less. If it fails, ask for half as '
  'many; of one job "dry" tells which it would be, to be passed over.';

-- For jobs known by their ids: a single one that has just been announced, or those that a limit has let through. What comes before them
-- in the order is not looked at.
create or replace function "${schema}".pgworker_claim_ids(request "${schema}".pgworker_request, job_ids bigint[])
returns setof "${schema}".pgworker_claimed
language plpgsql volatile rows 10
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off
set enable_hashjoin = off set enable_mergejoin = off set jit = off set lock_timeout = '20ms'
set search_path = pg_catalog, pg_temp as $$
declare
  claimed_at constant timestamptz := clock_timestamp();
  taken constant tid[] := array(
    select j.ctid from "${schema}"._private_jobs j
    where j.id = any(job_ids) and j.is_available and j.job_queue_id is null and j.run_at <= now() and j.task_id = any(request.task_ids)
      and "${schema}".pgworker_allowed(j.flags, request.forbidden)
    for update skip locked);
  claimed int;
begin
  return query
    update "${schema}"._private_jobs j set attempts = j.attempts + 1, locked_at = claimed_at, locked_by = request.worker_id
      where j.ctid = any(taken)
      returning j.id, null::int, null::text, j.task_id, "${schema}".pgworker_short(j.payload),
        j.priority, j.run_at, j.attempts, j.max_attempts, j.last_error, j.created_at, j.updated_at, j.key, j.revision, j.flags, j.ctid, j.locked_at;
  get diagnostics claimed = row_count;
  if claimed < cardinality(taken) then
    raise exception 'a trigger keeps a job from being claimed' using errcode = '27000';
  end if;
end
$$;
comment on function "${schema}".pgworker_claim_ids("${schema}".pgworker_request, bigint[]) is
  'As pgworker_claim, of those of these jobs that are due, have no queue and are held by nobody.';

-- How claimed jobs end: deleted because they have succeeded, or given up. Each write names its claims, and changes nothing that they no
-- longer hold. Nobody here waits for a row for longer than 20 ms; what somebody holds for longer is reported as busy.

create or replace function "${schema}".pgworker_missed(worker_id text, job_ids bigint[], claims timestamptz[])
returns table (id bigint, outcome text)
language sql stable as $$
  select g.id,
    case
      when h.id is null then 'gone'
      when h.locked_by operator(pg_catalog.=) $1 and h.locked_at operator(pg_catalog.=) g.claim then 'busy'
      else 'lost'
    end
  from rows from (pg_catalog.unnest(job_ids), pg_catalog.unnest(claims)) g(id, claim)
  left join lateral (select j.* from "${schema}"._private_jobs j where j.id operator(pg_catalog.=) g.id offset 0) h on true
$$;
comment on function "${schema}".pgworker_missed(text, bigint[], timestamptz[]) is
  'Why nothing was written of these jobs: "busy" (somebody holds the row for a moment: call again), "lost" (no longer this claim''s) or '
  '"gone" (there is no such job).';

create or replace function "${schema}".pgworker_complete(
  worker_id text, job_ids bigint[], claims timestamptz[], claim_numbers int[], addresses tid[] default null,
  free_queues int[] default null, free_numbers int[] default null, wake boolean default false
) returns table (id bigint, outcome text)
language plpgsql volatile rows 1
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off
set enable_hashjoin = off set enable_mergejoin = off set jit = off set lock_timeout = '20ms'
set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
  gone bigint[];
  gone_claims timestamptz[];
  held bigint[];
  freed bigint;
begin
  if addresses is not null then
    with done as (
      delete from "${schema}"._private_jobs j
      where j.ctid = any(addresses) and j.locked_by = worker_id and j.locked_at = any(claims) returning j.id, j.locked_at)
    select array_agg(d.id), array_agg(d.locked_at) into gone, gone_claims from (select * from done d order by d.id) d;
    if gone is distinct from job_ids
        or cardinality(claims) > 1 and gone_claims is distinct from array(select claims[n.number] from unnest(claim_numbers) n(number)) then
      raise exception 'not all jobs are where their claims left them' using errcode = 'lock_not_available';
    end if;
  else
    with held as materialized (
      select h.ctid as tid, h.id from unnest(job_ids, claim_numbers) g(id, number)
      join "${schema}"._private_jobs h on h.id = g.id and h.locked_by = worker_id and h.locked_at = claims[g.number]
      for update of h skip locked),
    done as (delete from "${schema}"._private_jobs j where j.ctid = any(array(select h.tid from held h)) returning j.id)
    select array(select d.id from done d), array(select h.id from held h) into gone, held;
    -- A row that was changed between the statement's snapshot and its lock, by a cancellation for instance, only the next one sees.
    if cardinality(gone) < cardinality(held) then
      with done as (delete from "${schema}"._private_jobs j where j.id = any(held) and j.id <> all(gone) returning j.id)
      select gone || array_agg(d.id) into gone from done d;
      if cardinality(gone) < cardinality(held) then
        raise exception 'A trigger keeps jobs from being deleted' using errcode = '27000';
      end if;
    end if;
  end if;
  if free_queues <> '{}' then
    update "${schema}"._private_job_queues q set locked_at = null, locked_by = null
      from (
        select claims[f.number] as claim, r.tid from unnest(free_queues, free_numbers) f(id, number)
        cross join lateral "${schema}".pgworker_queue_row(f.id) r offset 0) f
      where q.ctid = f.tid and q.locked_by = worker_id and q.locked_at = f.claim;
    get diagnostics freed = row_count;
    if freed < cardinality(free_queues) then
      raise exception 'not all queues could be freed' using errcode = 'lock_not_available';
    end if;
    if wake then
      perform "${schema}".pgworker_wake(1, null, '');
    end if;
  end if;
  if coalesce(cardinality(gone), 0) < cardinality(job_ids) then
    return query
      select m.id, m.outcome from "${schema}".pgworker_missed(
        worker_id, job_ids, array(select claims[n.number] from unnest(claim_numbers) n(number))) m
      where gone is null or m.id <> all(gone);
  end if;
end
$$;
comment on function "${schema}".pgworker_complete(text, bigint[], timestamptz[], int[], tid[], int[], int[], boolean) is
  'Deletes jobs as far as the worker holds them by their claims, and frees queues of which it has no more; returns those that it has not deleted, as '
  'pgworker_missed tells them. Claims are the times of locked_at, each once, and the numbers say which of them is whose. With '
  'the addresses of the claims, and ids in ascending order, it is faster, and all or nothing. It fails with 55P03 if not all queues could be freed, '
  'or not all jobs were at their addresses: call without both, and pgworker_free_queues.';

create or replace function "${schema}".pgworker_free_queues(queue_ids int[], worker_ids text[], claims timestamptz[] default null)
returns int[]
language plpgsql volatile
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off
set enable_hashjoin = off set enable_mergejoin = off set jit = off set lock_timeout = '100ms'
set search_path = pg_catalog, pg_temp as $$
declare
  total constant int := cardinality(queue_ids);
  freed int[];
  kept int[] := '{}';
  context text;
begin
  if coalesce(total, 0) = 0 then return kept; end if;
  begin
    with free as (
      update "${schema}"._private_job_queues q set locked_at = null, locked_by = null
      where q.ctid = any(array(
        select h.ctid from unnest(queue_ids, claims) g(id, claim)
        cross join lateral "${schema}".pgworker_queue_row(g.id) r
        join "${schema}"._private_job_queues h on h.ctid = r.tid
        where h.locked_by = any(worker_ids) and (g.claim is null or h.locked_at = g.claim)
        for no key update of h skip locked))
      returning q.id)
    select array_agg(f.id) into freed from free f;
    set constraints all immediate;
  exception when others or assert_failure or query_canceled then
    get stacked diagnostics context = pg_exception_context;
    if not "${schema}".pgworker_about_row(sqlstate, context) then raise; end if;
    if total = 1 then
      raise warning 'Queue % stays locked: %', queue_ids[1], sqlerrm;
      return queue_ids;
    end if;
    for at in 1..total by (total + 1) / 2 loop
      kept := kept || "${schema}".pgworker_free_queues(
        queue_ids[at:at + (total + 1) / 2 - 1], worker_ids, claims[at:at + (total + 1) / 2 - 1]);
    end loop;
    return kept;
  end;
  if freed <> '{}' then
    perform "${schema}".pgworker_wake(1, null, '');
  end if;
  return array(
    select distinct g.id from unnest(queue_ids, claims) g(id, claim)
    cross join lateral "${schema}".pgworker_queue_row(g.id) r
    where r.locked_by = any(worker_ids) and (g.claim is null or r.locked_at = g.claim));
end
$$;
comment on function "${schema}".pgworker_free_queues(int[], text[], timestamptz[]) is
  'Unlocks those of the queues that the workers hold, by these claims if any are given, and wakes workers; returns those that they hold still, because '
  'somebody holds the row or a trigger of somebody''s refuses it.';

-- A job whose key is gone was superseded, removed or cancelled while it ran: whatever the action says, it must not run again. The exception
-- is a superseded batch of which some items failed: they are in no other job, so it goes on without its key.
create or replace function "${schema}".pgworker_release(worker_id text, outcomes "${schema}".pgworker_outcome[])
returns table (id bigint, outcome text)
language plpgsql volatile rows 10
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off
set enable_hashjoin = off set enable_mergejoin = off set jit = off set lock_timeout = '2s'
set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
  runs constant "${schema}".pgworker_run[] := "${schema}".pgworker_runs_of(worker_id, outcomes);
  contents constant json[] := "${schema}".pgworker_json('payloads', array(select o.payload from unnest(outcomes) o));
  total constant int := cardinality(outcomes);
  put record;
  held bigint;
  written bigint[] := '{}';
  results text[] := '{}';
  revived bigint[];
  ready bigint := 0;
  earliest timestamptz;
  levels text[] := '{}';
begin
  if exists (select from unnest(outcomes) o where o.action is null or o.action not in ('retry', 'fail', 'back')) then
    raise exception 'Unknown action: expected retry, fail or back' using errcode = '22023';
  end if;
  -- A row that was changed between the statement's snapshot and its lock, by a cancellation for instance, only the next one sees.
  for attempt in 1..2 loop
    with mine as materialized (
      select h.ctid as tid, g.action, g.delay, g.run_at as at, g.error, coalesce(g.attempts, h.attempts) as attempts, contents[g.n] as payload,
        case when h.key is null and h.attempts >= h.max_attempts then "${schema}".pgworker_retirement(h.id, h.last_error) end as told,
        g.key is not null and h.key is distinct from g.key as key_gone
      from unnest(outcomes) with ordinality
        g(job_id, claim, action, delay, run_at, error, key, attempts, payload, micros, result, trace, n)
      join "${schema}"._private_jobs h on h.id = g.job_id and h.locked_by = worker_id and h.locked_at = g.claim
      for update of h skip locked),
    decided as (
      select m.*,
        (m.told is not null or m.key_gone)
          and (m.payload is null or coalesce(m.told in ('Removed by its key while running', 'Cancelled while running'), false)) as ended
      from mine m),
    put as (
      update "${schema}"._private_jobs j set
        attempts = case
          when m.ended then j.max_attempts
          when m.action = 'back' then least(m.attempts, greatest(0, m.attempts - 1))
          when m.action = 'fail' then greatest(1, m.attempts)
          else m.attempts
        end,
        -- What the worker's own limit ends reads "3 of 3": attempts are counted, never made up.
        max_attempts = case when m.action = 'fail' and not m.ended then greatest(1, m.attempts) else j.max_attempts end,
        run_at = case
          when m.ended or m.action = 'fail' then j.run_at
          when m.at is not null then m.at
          when m.delay is not null then clock_timestamp() + m.delay * interval '1 second'
          when m.action = 'retry' then greatest(now(), j.run_at) + "${schema}".pgworker_backoff(m.attempts)
          else j.run_at
        end,
        last_error = case
          when m.error is not null then m.error
          when m.ended then coalesce(m.told, 'Superseded or removed by its key while running')
          else j.last_error
        end,
        payload = coalesce(m.payload, j.payload),
        locked_at = null,
        locked_by = null,
        updated_at = now()
      from decided m
      where j.ctid = m.tid
      returning j.id, j.is_available and j.run_at <= clock_timestamp() and j.job_queue_id is null as due,
        case
          when m.ended and m.told = 'Cancelled while running' then 'cancelled'
          when m.ended then 'superseded'
          when j.attempts >= j.max_attempts then 'failed'
          when m.action = 'back' then 'back'
          else 'retried'
        end as outcome,
        m.told is not null and not m.ended as revived, j.is_available as available, j.priority, j.run_at)
    select array_agg(p.id) as ids, array_agg(p.outcome) as outcomes, count(*) filter (where p.due) as ready, (select count(*) from mine) as held,
        array_agg(p.id) filter (where p.revived) as revived, min(p.run_at) filter (where p.available) as earliest,
        array_agg(distinct p.priority::text) filter (where p.available) as levels
      into put
      from put p;
    written := written || put.ids;
    results := results || put.outcomes;
    revived := revived || put.revived;
    ready := ready + put.ready;
    earliest := least(earliest, put.earliest);
    levels := levels || put.levels;
    exit when coalesce(cardinality(put.ids), 0) = put.held;
  end loop;
  perform set_config('pgworker.ending', '', true);
  if coalesce(cardinality(put.ids), 0) < put.held then
    raise exception 'A trigger keeps jobs from being changed' using errcode = '27000';
  end if;
  perform "${schema}".pgworker_record_released(runs, written, results);
  if 'cancelled' = any(results) then
    perform "${schema}".pgworker_end_cancelled(written);
  end if;
  if revived is not null then
    delete from "${schema}".pgworker_retirements r where r.job_id = any(revived);
  end if;
  perform "${schema}".pgworker_wake(
    ready, earliest, case when cardinality(levels) <= 16 then array_to_string(levels, ',') end);
  return query
    select w.id, w.outcome from unnest(written, results) w(id, outcome)
    union all
    select m.id, m.outcome
      from "${schema}".pgworker_missed(worker_id, array(select o.job_id from unnest(outcomes) o), array(select o.claim from unnest(outcomes) o)) m
      where cardinality(written) < total and m.id <> all(written);
end
$$;
comment on function "${schema}".pgworker_release(text, "${schema}".pgworker_outcome[]) is
  'Unlocks jobs that did not succeed, as far as the worker still holds them by their claims, each a locked_at, and wakes workers for what is '
  'due then; their queues stay locked. Actions: "retry" at the given time, after the delay in seconds or after the usual back-off, '
  '"fail" for good, with the attempts made as their limit, "back" without having cost an attempt. Keys and attempts are those the jobs had '
  'when claimed; errors and payloads replace the stored ones where not null; micros, result and trace are for the history. Returns what became of each: '
  '"retried", "failed", "back", "superseded" (it lost its key while it ran and never runs again), "cancelled" (it was cancelled while it '
  'ran, and is deleted); where nothing was written, what pgworker_missed tells.';

-- The worker names the time beforehand: if the answer is lost, it knows that the lock has either the one time or the other.
create or replace function "${schema}".pgworker_renew(
  worker_id text, job_ids bigint[], claims timestamptz[], renewals timestamptz[]
) returns setof bigint
language plpgsql volatile
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off
set enable_hashjoin = off set enable_mergejoin = off set jit = off
set search_path = pg_catalog, pg_temp as $$
begin
  return query
    with held as materialized (
      select h.ctid as tid, h.job_queue_id, g.renewal
      from unnest(job_ids, claims, renewals) g(id, claim, renewal)
      join "${schema}"._private_jobs h on h.id = g.id and h.locked_by = worker_id and h.locked_at in (g.claim, g.renewal)
      for update of h skip locked),
    renewed as (
      update "${schema}"._private_jobs j set locked_at = h.renewal
      from held h
      where j.ctid = h.tid
      returning j.id),
    queue as materialized (
      select q.ctid as tid, h.renewal from held h
      join "${schema}"._private_job_queues q on q.id = h.job_queue_id and q.locked_by = worker_id and q.locked_at < h.renewal
      for no key update of q skip locked),
    renewed_queue as (
      update "${schema}"._private_job_queues q set locked_at = k.renewal from queue k where q.ctid = k.tid)
    select r.id from renewed r;
end
$$;
comment on function "${schema}".pgworker_renew(text, bigint[], timestamptz[], timestamptz[]) is
  'Renews the locks by which the worker holds these jobs, and those of their queues: other workers release locks of four hours. Returns '
  'the ids of the jobs whose locks have the given time then.';

-- Where due jobs begin, and when the next ones are due. Nothing here locks or changes anything.

create or replace function "${schema}".pgworker_look(
  request "${schema}".pgworker_request, floors "${schema}".pgworker_floor[] default null
) returns table (queued boolean, priority int, run_at timestamptz, id bigint, due_in float8, at timestamptz, took float8)
language plpgsql stable rows 10
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off
set enable_hashjoin = off set enable_mergejoin = off set jit = off set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
  task_ids constant int[] := request.task_ids;
  unqueued constant int[] := coalesce(request.unqueued_task_ids, request.task_ids);
  forbidden constant text[] := request.forbidden;
begin
  return query
    with recursive level(priority, run_at, id) as (
      (select f.priority, f.run_at, f.id from unnest(floors) f where not f.queued
      union all
      (select j.priority::int, '-infinity'::timestamptz, 0::bigint from "${schema}"._private_jobs j
        where floors is null and j.is_available and j.job_queue_id is null order by j.priority, j.run_at, j.id limit 1))
      union all
      select n.priority, '-infinity'::timestamptz, 0::bigint from level l cross join lateral (
        select j.priority from "${schema}"._private_jobs j
        where floors is null and j.is_available and j.job_queue_id is null and j.priority > l.priority
        order by j.priority, j.run_at, j.id limit 1) n)
    select false, l.priority, due.run_at, due.id, case when isfinite(next.run_at) then extract(epoch from next.run_at - clock_timestamp())::float8 end, now(), null::float8
    from level l
    left join lateral (
      select j.run_at, j.id from "${schema}"._private_jobs j
      where j.is_available and j.job_queue_id is null and j.priority = l.priority and j.run_at <= now()
        and (j.run_at, j.id) >= (l.run_at, l.id) and j.task_id = any(unqueued) and "${schema}".pgworker_allowed(j.flags, forbidden)
      order by j.run_at, j.id limit 1) due on true
    cross join lateral (
      select coalesce((
          select f.run_at from (
            select j.run_at, j.task_id from "${schema}"._private_jobs j
            where j.is_available and j.job_queue_id is null and j.priority = l.priority and j.run_at > now()
            order by j.run_at, j.id limit 100) f
          where f.task_id = any(unqueued) limit 1), (
          select j.run_at from "${schema}"._private_jobs j
          where j.is_available and j.job_queue_id is null and j.priority = l.priority and j.run_at > now()
          order by j.run_at, j.id limit 1 offset 99)) as run_at) next;
  return query
    with recursive level(priority, run_at, id) as (
      (select f.priority, f.run_at, f.id from unnest(floors) f where f.queued
      union all
      (select j.priority::int, '-infinity'::timestamptz, 0::bigint from "${schema}"._private_jobs j
        where floors is null and task_ids <> '{}' and j.is_available and j.job_queue_id is not null and j.priority >= -32768
        order by j.priority, j.run_at, j.id limit 1))
      union all
      select n.priority, '-infinity'::timestamptz, 0::bigint from level l cross join lateral (
        select j.priority from "${schema}"._private_jobs j
        where floors is null and j.is_available and j.job_queue_id is not null and j.priority >= -32768 and j.priority > l.priority
        order by j.priority, j.run_at, j.id limit 1) n)
    select true, l.priority, due.run_at, due.id, case when isfinite(next.run_at) then extract(epoch from next.run_at - clock_timestamp())::float8 end, now(), null::float8
    from level l
    left join lateral (
      select j.run_at, j.id from "${schema}"._private_jobs j
      where j.is_available and j.job_queue_id is not null and j.priority >= -32768 and j.priority = l.priority and j.run_at <= now()
        and (j.run_at, j.id) >= (l.run_at, l.id) and j.task_id = any(task_ids) and "${schema}".pgworker_allowed(j.flags, forbidden)
      order by j.run_at, j.id limit 1) due on true
    cross join lateral (
      select coalesce((
          select f.run_at from (
            select j.run_at, j.task_id from "${schema}"._private_jobs j
            where j.is_available and j.job_queue_id is not null and j.priority >= -32768 and j.priority = l.priority and j.run_at > now()
            order by j.run_at, j.id limit 100) f
          where f.task_id = any(task_ids) limit 1), (
          select j.run_at from "${schema}"._private_jobs j
          where j.is_available and j.job_queue_id is not null and j.priority >= -32768 and j.priority = l.priority and j.run_at > now()
          order by j.run_at, j.id limit 1 offset 99)) as run_at) next;
  return query select null::boolean, null::int, null::timestamptz, null::bigint, null::float8, now(),
    extract(epoch from clock_timestamp() - now())::float8;
end
$$;
comment on function "${schema}".pgworker_look("${schema}".pgworker_request, "${schema}".pgworker_floor[]) is
  'For each priority of the floors, or of all jobs if there are none, with and without a queue: the place of the first due job from there on that the '
  'worker may run, nulls if there is none; in how many seconds the next one is due, at the latest the hundredth of the future ones; and as of when that '
  'holds. The last row has only that time, and how many seconds the look took. With floors it reads little; without, all that finished jobs have left.';

-- Jobs that nobody runs gather in front of those that are run, so that a bounded look at the first ones finds them. The tasks that a worker
-- serves are left out at once: as a rule nothing is left.
create or replace function "${schema}".pgworker_waiting_tasks(served text[], longer_than interval, depth int)
returns table (identifier text, jobs bigint, since timestamptz, more boolean)
language plpgsql volatile rows 10
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off
set enable_hashjoin = off set enable_mergejoin = off set jit = off
set search_path = pg_catalog, pg_temp as $$
declare
  due constant timestamptz := now() - longer_than;
begin
  return query
    with recursive unqueued(p, n) as (
      (select j.priority, 1 from "${schema}"._private_jobs j
        where j.is_available and j.job_queue_id is null
        order by j.priority, j.run_at, j.id limit 1)
      union all
      select (
          select j.priority from "${schema}"._private_jobs j
          where j.is_available and j.job_queue_id is null and j.priority > l.p
          order by j.priority, j.run_at, j.id limit 1),
        l.n + 1
      from unqueued l where l.p is not null and l.n < depth),
    queued(p, n) as (
      (select j.priority, 1 from "${schema}"._private_jobs j
        where j.is_available and j.job_queue_id is not null and j.priority >= -32768
        order by j.priority, j.run_at, j.id limit 1)
      union all
      select (
          select j.priority from "${schema}"._private_jobs j
          where j.is_available and j.job_queue_id is not null and j.priority >= -32768 and j.priority > l.p
          order by j.priority, j.run_at, j.id limit 1),
        l.n + 1
      from queued l where l.p is not null and l.n < depth),
    first_ones as (
      (select j.task_id, j.run_at from unqueued l cross join lateral (
          select j.task_id, j.run_at from "${schema}"._private_jobs j
          where j.is_available and j.job_queue_id is null and j.priority = l.p and j.run_at <= due
          order by j.run_at, j.id limit depth) j
        limit depth)
      union all
      (select j.task_id, j.run_at from queued l cross join lateral (
          select j.task_id, j.run_at from "${schema}"._private_jobs j
          where j.is_available and j.job_queue_id is not null and j.priority >= -32768 and j.priority = l.p and j.run_at <= due
          order by j.run_at, j.id limit depth) j
        limit depth))
    select w.identifier, w.jobs, w.since, seen.all_of >= depth
    from (select count(*) as all_of from first_ones) seen
    left join (
      select t.identifier, f.jobs, f.since
      from (select o.task_id, count(*) as jobs, min(o.run_at) as since from first_ones o group by o.task_id) f
      join "${schema}"._private_tasks t on t.id = f.task_id
      where t.identifier <> all(served)) w on true;
end
$$;
comment on function "${schema}".pgworker_waiting_tasks(text[], interval, int) is
  'Tasks other than those given, of which jobs have been due for longer than that: how many among the first jobs, depth of those without '
  'a queue and depth of those with one, since when, and whether there may be more. One row of nulls but for that if there is no such '
  'task. Reads no further; waits for no lock.';

-- Called by another session than the one that has locked the jobs, as it has to be committed while they are locked. The row need not
-- survive the server, with which the other session ends.
create or replace function "${schema}".pgworker_note_batch(worker_id text, chain int, backend_pid int, xid bigint, job_ids bigint[])
returns bigint[]
language plpgsql volatile
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_mergejoin = off set jit = off
set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
  mine constant bigint := txid_current();
  -- An id that is not below this one is of another server, whose tables have been copied.
  broken constant bigint[] := array(
    select unnest(b.job_ids) from "${schema}".pgworker_batches b
    where (b.worker_id, b.chain) <> (pgworker_note_batch.worker_id, pgworker_note_batch.chain) and b.job_ids <> '{}'
      and case when b.xid between 3 and mine - 1 then txid_status(b.xid) is distinct from 'in progress' else true end);
  left_alone bigint[] := '{}';
begin
  if broken <> '{}' then
    left_alone := array(select g.id from unnest(job_ids) g(id) where g.id in (select unnest(broken)));
  end if;
  if exists (select from "${schema}".pgworker_recoveries) then
    left_alone := left_alone || array(
      select r.job_id from unnest(job_ids) g(id) join "${schema}".pgworker_recoveries r on r.job_id = g.id);
  end if;
  if left_alone <> '{}' then
    job_ids := array(select g.id from unnest(job_ids) g(id) where g.id <> all(left_alone));
  end if;
  perform set_config('synchronous_commit', 'off', true);
  insert into "${schema}".pgworker_batches as b (worker_id, chain, started_at, backend_pid, xid, job_ids)
    values (pgworker_note_batch.worker_id, pgworker_note_batch.chain, clock_timestamp(), pgworker_note_batch.backend_pid,
      pgworker_note_batch.xid, pgworker_note_batch.job_ids)
    on conflict on constraint pgworker_batches_pkey do update set
      started_at = excluded.started_at, backend_pid = excluded.backend_pid, xid = excluded.xid, job_ids = excluded.job_ids;
  return left_alone;
end
$$;
comment on function "${schema}".pgworker_note_batch(text, int, int, bigint, bigint[]) is
  'Notes that a session of the worker is about to run these jobs, which its transaction has locked, but for those that lost a worker before, '
  'or were in a batch that broke: these it returns.';

-- Of a job that cannot be deleted, because of a trigger of somebody's for instance, the others of its batch know nothing: then all are
-- claimed, and their outcomes are written as those of other jobs are. Without such triggers and rules there is no subtransaction, whose deletions of
-- rows that the transaction has locked would be written to pg_multixact one by one.
create or replace function "${schema}".pgworker_end_batch(
  worker_id text, chain int, done tid[], claimed tid[], claimed_at timestamptz
) returns boolean
language plpgsql volatile
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off
set enable_hashjoin = off set enable_mergejoin = off set jit = off
set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
  deleted boolean := true;
  changed bigint;
begin
  perform set_config('pgworker.ending', 'direct', true);
  if exists (
    select from pg_trigger t
    where t.tgrelid = to_regclass('"${schema}"._private_jobs') and t.tgtype & 8 <> 0 and t.tgenabled <> 'D'
      and t.tgname not in ('pgworker_history_deleted', 'zz_pgworker_limits_deleted'))
    or (select c.relhasrules from pg_class c where c.oid = to_regclass('"${schema}"._private_jobs'))
  then
    begin
      delete from "${schema}"._private_jobs j where j.ctid = any(done);
      get diagnostics changed = row_count;
      if changed < cardinality(done) then
        raise exception 'a trigger keeps a job from being deleted' using errcode = '27000';
      end if;
      set constraints all immediate;
    exception when others or assert_failure then
      deleted := false;
      claimed := claimed || done;
    end;
  else
    delete from "${schema}"._private_jobs j where j.ctid = any(done);
    get diagnostics changed = row_count;
    if changed < cardinality(done) then
      raise exception 'a job could not be deleted' using errcode = '27000';
    end if;
  end if;
  perform set_config('pgworker.ending', '', true);
  if claimed <> '{}' then
    update "${schema}"._private_jobs j set attempts = j.attempts + 1, locked_at = claimed_at, locked_by = pgworker_end_batch.worker_id
      where j.ctid = any(claimed);
    get diagnostics changed = row_count;
    if changed < cardinality(claimed) then
      raise exception 'a trigger keeps a job from being claimed' using errcode = '27000';
    end if;
  end if;
  update "${schema}".pgworker_batches b set job_ids = '{}'
    where b.worker_id = pgworker_end_batch.worker_id and b.chain = pgworker_end_batch.chain;
  return deleted;
end
$$;
comment on function "${schema}".pgworker_end_batch(text, int, tid[], tid[], timestamptz) is
  'Deletes the jobs at these addresses that have succeeded and claims the others for the worker, as of the given time, all of which the '
  'calling transaction has locked; forgets the batch. Returns false if some could not be deleted: then all are claimed instead.';


-- Steps from priority to priority through each index and counts entries, so that what it reads is bounded by most, not by the table.
-- Where that does not suffice, statistics answer. Each estimate has one condition, because the planner takes several for independent,
-- which they are not: failed jobs are never due in the future.
create or replace function "${schema}".pgworker_backlog(
  most int, out ready bigint, out scheduled bigint, out retrying bigint, out failed bigint, out oldest_due timestamptz,
  out estimated boolean
)
language plpgsql volatile
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off
set enable_hashjoin = off set enable_mergejoin = off set jit = off
set search_path = pg_catalog, pg_temp as $$
declare
  steps int := 0;
  level int;
  first timestamptz;
  created timestamptz;
  counted bigint;
  retries bigint;
  available bigint;
  future bigint;
begin
  if most is null or most not between 1 and 1000000 then
    raise exception 'most must be between 1 and 1000000, but is %', most using errcode = '22023';
  end if;
  ready := 0; scheduled := 0; retrying := 0; estimated := false;
  for with_queue in 0..1 loop
    level := -32769;
    while steps < 1000 loop
      steps := steps + 1;
      if with_queue = 0 then
        select j.priority, j.run_at, j.created_at into level, first, created from "${schema}"._private_jobs j
        where j.is_available and j.job_queue_id is null and j.priority > level
        order by j.priority, j.run_at limit 1;
      else
        select j.priority, j.run_at, j.created_at into level, first, created from "${schema}"._private_jobs j
        where j.is_available and j.job_queue_id is not null and j.priority >= -32768 and j.priority > level
        order by j.priority, j.run_at limit 1;
      end if;
      exit when not found;
      if first <= now() then
        -- one that has been due for ever waits since it is there
        oldest_due := least(oldest_due, case when isfinite(first) then first when isfinite(created) then created else now() end);
        if with_queue = 0 then
          select count(*) into counted from (
            select from "${schema}"._private_jobs j
            where j.is_available and j.job_queue_id is null and j.priority = level and j.run_at <= now()
            limit most - ready) c;
        else
          select count(*) into counted from (
            select from "${schema}"._private_jobs j
            where j.is_available and j.job_queue_id is not null and j.priority >= -32768 and j.priority = level and j.run_at <= now()
            limit most - ready) c;
        end if;
        ready := ready + counted;
      end if;
      if with_queue = 0 then
        select count(*), count(*) filter (where c.attempts > 0) into counted, retries from (
          select j.attempts from "${schema}"._private_jobs j
          where j.is_available and j.job_queue_id is null and j.priority = level and j.run_at > now()
          limit most - scheduled - retrying) c;
      else
        select count(*), count(*) filter (where c.attempts > 0) into counted, retries from (
          select j.attempts from "${schema}"._private_jobs j
          where j.is_available and j.job_queue_id is not null and j.priority >= -32768 and j.priority = level and j.run_at > now()
          limit most - scheduled - retrying) c;
      end if;
      scheduled := scheduled + counted - retries;
      retrying := retrying + retries;
    end loop;
  end loop;
  select count(*) into failed from (
    select from "${schema}"._private_jobs j where not j.is_available and j.locked_at is null limit most) c;
  if failed >= most then
    estimated := true;
    failed := greatest(failed, "${schema}".pgworker_estimate('not is_available'));
  end if;
  if ready >= most or scheduled + retrying >= most or steps >= 1000 then
    estimated := true;
    available := "${schema}".pgworker_estimate('is_available');
    future := "${schema}".pgworker_estimate('run_at > now()');
    if scheduled + retrying >= most or steps >= 1000 then
      scheduled := greatest(scheduled, future - retrying);
    end if;
    if ready >= most or steps >= 1000 then
      ready := greatest(ready, available - scheduled - retrying);
    end if;
  end if;
end
$$;
comment on function "${schema}".pgworker_backlog(int) is
  'Number of jobs in each state and the time since which the longest-waiting one has been due, at a cost independent of the size of the table: counts '
  'each up to the given number and estimates beyond. Running jobs are not counted.';

-- Immutable, and as fast as it need be: a worker adds to some rows every ten seconds.
create or replace function "${schema}".pgworker_add_counts(counts bigint[], more bigint[]) returns bigint[]
language sql immutable
set search_path = pg_catalog, pg_temp as $$
  select coalesce(array_agg((s.total << 7) | s.bucket order by s.bucket), '{}')
  from (select v & 127 as bucket, sum(v >> 7)::bigint as total from unnest(counts || more) v group by v & 127) s
$$;
comment on function "${schema}".pgworker_add_counts(bigint[], bigint[]) is
  'Adds two distributions of durations, as pgworker_task_minutes holds them.';

-- Called by every worker that records statistics; who comes first while there is no recent sample takes one. One that is dated later than
-- now, because the clock was set back, does not count. Where much is old, several calls delete it.
create or replace function "${schema}".pgworker_sample(interval_before interval, kept interval) returns boolean
language plpgsql volatile
set search_path = pg_catalog, pg_temp as $$
begin
  if exists (
    select from "${schema}".pgworker_samples s
    where s.taken_at > clock_timestamp() - interval_before and s.taken_at < clock_timestamp() + interval '1 minute')
    or not pg_try_advisory_xact_lock(hashtextextended('pgworker_sample ${schema}', 0))
  then
    return false;
  end if;
  if exists (
    select from "${schema}".pgworker_samples s
    where s.taken_at > clock_timestamp() - interval_before and s.taken_at < clock_timestamp() + interval '1 minute')
  then
    return false;
  end if;
  perform set_config('synchronous_commit', 'off', true);
  insert into "${schema}".pgworker_samples (taken_at, ready, scheduled, retrying, failed, oldest_due, workers)
    select clock_timestamp(), b.ready, b.scheduled, b.retrying, b.failed, b.oldest_due, (
        select count(*) from "${schema}"._private_workers w where w.last_heartbeat_at > now() - interval '5 minutes')
    from "${schema}".pgworker_backlog(10000) b
    on conflict do nothing;
  delete from "${schema}".pgworker_samples s where s.ctid = any(array(
    select o.ctid from "${schema}".pgworker_samples o where o.taken_at < now() - kept limit 1000));
  delete from "${schema}".pgworker_task_minutes m where m.ctid = any(array(
    select o.ctid from unnest(array[0, 1, 60]::smallint[]) s(span)
    cross join lateral (
      select t.ctid from "${schema}".pgworker_task_minutes t
      where t.span = s.span and t.begins_at < now() - kept - s.span * interval '1 minute' limit 5000) o));
  return true;
end
$$;
comment on function "${schema}".pgworker_sample(interval, interval) is
  'Records the backlog, unless somebody has done so within the given interval or is doing so, and deletes what is older than the time for which '
  'it is kept: up to 1,000 samples and 15,000 other rows. Returns whether it has.';


-- 10 History ------------------------------------------------------------------------------------------------------------------

-- Two triggers write the history, if the settings say that one is kept. They see all ends of jobs, those of Node.js, Rust, people and their
-- tools included, and write in the statement that ends the job. A worker of PgWorker passes what only it knows of a run in settings of the
-- transaction, and our functions pass what they are doing (pgworker.ending). The triggers run with the rights of the owner, because
-- those who end jobs need no right on the history. No failure in them keeps a job from ending: the entry is lost then, counted and
-- reported.

create or replace function "${schema}".pgworker_note_runs(
  job_ids bigint[], micros bigint[], results text[], traces text[], worker_id text default null, begun timestamptz default null
) returns bigint[]
language plpgsql volatile
set search_path = pg_catalog, pg_temp as $$
begin
  perform set_config('pgworker.run_ids', coalesce(job_ids::text, ''), true),
    set_config('pgworker.run_micros', coalesce(micros::text, ''), true),
    set_config('pgworker.run_results', coalesce(results::text, ''), true),
    set_config('pgworker.run_traces', coalesce(traces::text, ''), true),
    set_config('pgworker.run_by', coalesce(worker_id, ''), true),
    set_config('pgworker.run_begun', coalesce(begun::text, ''), true);
  return job_ids;
exception when others then
  perform set_config('pgworker.run_ids', '', true);
  raise warning 'The history of schema "${schema}" is not told of the results of some jobs: %', sqlerrm;
  return job_ids;
end
$$;
comment on function "${schema}".pgworker_note_runs(bigint[], bigint[], text[], text[], text, timestamptz) is
  'Tells the history, for the statements that follow in the transaction, how long the runs of these jobs took in microseconds, their results as JSON and '
  'their traces; a null array stands for nothing but nulls. For jobs that are not claimed also who runs them, since when. Tells nothing, '
  'with a warning, if the results are too large for a setting. Returns the ids.';

-- The bound of a wait for a lock is far longer than autovacuum and maintenance hold one. Who holds one for longer is waited for once: a
-- session waits again only in a transaction that begins ten seconds after a wait in vain.
create or replace function "${schema}".pgworker_keeps_history() returns boolean
language plpgsql volatile security definer
set lock_timeout = '900ms'
set search_path = pg_catalog, pg_temp as $$
declare
  kept boolean;
begin
  if extract(epoch from now()) < substring(current_setting('pgworker.history_waited', true) from '^[0-9]{1,12}')::float8 + 10 then
    perform set_config('lock_timeout', '1ms', true);
  elsif current_setting('statement_timeout') <> '0' then
    perform set_config('lock_timeout', greatest(1, least(extract(epoch from current_setting('lock_timeout')::interval) * 1000,
      extract(epoch from current_setting('statement_timeout')::interval) * 250))::int || 'ms', true);
  end if;
  select s.enabled into kept from "${schema}".pgworker_history_settings s;
  if current_setting('pgworker.history_kept', true) is distinct from '${schema} ' || kept then
    perform set_config('pgworker.history_kept', '${schema} ' || kept, false);
  end if;
  return kept;
exception when others then
  if extract(epoch from now()) >= coalesce(substring(current_setting('pgworker.history_waited', true) from '^[0-9]{1,12}')::float8 + 10, 0) then
    perform set_config('pgworker.history_waited', extract(epoch from clock_timestamp())::text, false);
  end if;
  return current_setting('pgworker.history_kept', true) is distinct from '${schema} false';
end
$$;
comment on function "${schema}".pgworker_keeps_history() is 'Whether a history is kept. Where that cannot be read, what the session has read last; true if it has not, so that the entry is counted as lost.';

-- All tables that writing an entry uses are locked first, so that the wait for a lock is bounded here, and the wait for what a busy server
-- does while it writes, such as extending a table, is not. The bound is below deadlock_timeout, and a quarter of the caller's
-- statement_timeout. After a wait in vain the session does not wait in transactions that begin within ten seconds.
create or replace function "${schema}".pgworker_open_history(out payloads boolean, out slot smallint)
language plpgsql volatile security definer
set lock_timeout = '900ms'
set search_path = pg_catalog, pg_temp as $$
begin
  if extract(epoch from now()) < substring(current_setting('pgworker.history_waited', true) from '^[0-9]{1,12}')::float8 + 10 then
    perform set_config('lock_timeout', '1ms', true);
  elsif current_setting('statement_timeout') <> '0' then
    perform set_config('lock_timeout', greatest(1, least(extract(epoch from current_setting('lock_timeout')::interval) * 1000,
      extract(epoch from current_setting('statement_timeout')::interval) * 250))::int || 'ms', true);
  end if;
  select s.payloads, s.slot into payloads, slot from "${schema}".pgworker_history_settings s where s.enabled;
  if found then
    lock table "${schema}"._private_tasks, "${schema}"._private_job_queues, "${schema}".pgworker_cancellations in access share mode;
    execute 'lock table only "${schema}".pgworker_history, only '
      || coalesce(to_regclass('"${schema}".pgworker_history_' || slot), to_regclass('"${schema}".pgworker_history_default'))
      || ' in row exclusive mode';
  end if;
end
$$;
comment on function "${schema}".pgworker_open_history() is
  'Locks what is needed to write entries of the history, and returns where they go and whether with payloads; nulls if none is kept.';

-- One warning a minute in a session is enough. Call it outside of the block that failed, which would take the settings back.
create or replace function "${schema}".pgworker_history_lost(jobs bigint, reason text, state text) returns void
language plpgsql volatile security definer
set lock_timeout = '20ms'
set search_path = pg_catalog, pg_temp as $$
declare
  minute constant text := floor(extract(epoch from clock_timestamp()) / 60)::bigint::text;
begin
  if state = '55P03'
    and extract(epoch from now()) >= coalesce(substring(current_setting('pgworker.history_waited', true) from '^[0-9]{1,12}')::float8 + 10, 0)
  then
    perform set_config('pgworker.history_waited', extract(epoch from clock_timestamp())::text, false);
  end if;
  if current_setting('pgworker.history_lost', true) is distinct from minute then
    perform set_config('pgworker.history_lost', minute, false);
    raise warning 'Jobs have ended that the history of schema "${schema}" does not show: %', reason;
  end if;
  if jobs > 0
    and extract(epoch from now()) >= coalesce(substring(current_setting('pgworker.history_uncounted', true) from '^[0-9]{1,12}')::float8 + 10, 0)
  then
    begin
      lock table "${schema}".pgworker_history_losses in row exclusive mode;
      perform set_config('lock_timeout', '1min', true);
      insert into "${schema}".pgworker_history_losses values (clock_timestamp(), jobs, reason);
      return;
    exception when others or assert_failure then
      raise log 'Lost entries of the history of schema "${schema}" are not counted for ten seconds: %', sqlerrm;
    end;
    perform set_config('pgworker.history_uncounted', extract(epoch from clock_timestamp())::text, false);
  end if;
end
$$;
comment on function "${schema}".pgworker_history_lost(bigint, text, text) is
  'Warns that entries of so many jobs could not be written, and counts them; or that a result could not, if there are none.';

-- Only where a group could not be written as a whole, as a subtransaction for each result costs more than all else.
create or replace function "${schema}".pgworker_result(result text) returns json
language plpgsql volatile
set search_path = pg_catalog, pg_temp as $$
begin
  return result::json;
exception when others then
  return null;
end
$$;
comment on function "${schema}".pgworker_result(text) is 'The result as JSON, or null if it is none.';

-- Jobs that were claimed have run, unless somebody removes one whose lock is four hours old. Of the others the setting pgworker.ending tells
-- what is being done to them. Failed jobs that are deleted by hand have their entry.
-- Hash joins, because a group may have hundreds of jobs, and the plan may have been made for one. As most groups are of one task, it is
-- looked up once. Before anything is read from the rows it is made sure whose they are: in a trigger on a table of somebody else, who was
-- granted all functions, a cast of theirs would run with the rights of the owner.
create or replace function "${schema}".pgworker_record_deleted() returns trigger
language plpgsql volatile security definer
set lock_timeout = '1min' set plan_cache_mode = force_generic_plan set enable_hashjoin = on set enable_nestloop = off
set enable_mergejoin = off set enable_seqscan = off set enable_bitmapscan = off set jit = off
set search_path = pg_catalog, pg_temp as $$
declare
  ended constant timestamptz := clock_timestamp();
  noted constant text := nullif(current_setting('pgworker.run_ids', true), '');
  ending constant text := current_setting('pgworker.ending', true);
  direct constant boolean := coalesce(ending = 'direct', false);
  outcome constant text := case when direct then 'succeeded' when ending in ('succeeded', 'removed') then ending end;
  careful boolean := false;
  kept record;
  seen record;
  jobs bigint;
  final boolean;
  task text;
  begun timestamptz;
  runner text;
begin
  if tg_relid <> '"${schema}"._private_jobs'::regclass then
    raise exception 'The history of schema "${schema}" is written by triggers on its jobs alone' using errcode = '42501';
  end if;
  loop
    begin
      select * into kept from "${schema}".pgworker_open_history();
      if kept.slot is null then
        return null;
      end if;
      select min(g.task_id) as first_task, max(g.task_id) as last_task into seen from gone g;
      if seen.first_task = seen.last_task then
        select t.identifier into task from "${schema}"._private_tasks t where t.id = seen.first_task;
      end if;
      if noted is null then
        insert into "${schema}".pgworker_history (job_id, ended_at, started_at, took, created_at, run_at, slot, attempt, max_attempts,
            priority, outcome, task_identifier, queue_name, key, worker_id, flags, payload)
          select g.id, ended, h.locked_at,
            case when h.locked_at <= ended and isfinite(h.locked_at) then ended - h.locked_at end,
            g.created_at, g.run_at, kept.slot,
            case when h.locked_at is not null then g.attempts when direct then g.attempts + 1 else 0 end,
            g.max_attempts, g.priority, coalesce(outcome, case when h.locked_at is null then 'removed' else 'succeeded' end),
            coalesce(task, (select t.identifier from "${schema}"._private_tasks t where t.id = g.task_id), 'task ' || g.task_id),
            case when g.job_queue_id is not null then (
              select q.queue_name from "${schema}"._private_job_queues q where q.id = g.job_queue_id) end,
            g.key, h.locked_by, g.flags, case when kept.payloads and pg_column_size(g.payload) <= 65536 and octet_length(g.payload::text) <= 65536 then g.payload end
          from gone g
          cross join lateral (
            select case when p.waits then null else g.locked_at end as locked_at, case when p.waits then null else g.locked_by end as locked_by
            from (select "${schema}".pgworker_parked(g.locked_at) as waits) p) h
          where outcome is not null or h.locked_at is not null or g.attempts < g.max_attempts;
      else
        begun := nullif(current_setting('pgworker.run_begun', true), '')::timestamptz;
        runner := nullif(current_setting('pgworker.run_by', true), '');
        insert into "${schema}".pgworker_history (job_id, ended_at, started_at, took, created_at, run_at, slot, attempt, max_attempts,
            priority, outcome, task_identifier, queue_name, key, worker_id, trace_id, flags, result, payload)
          select g.id, ended, least(g.locked_at, begun, ended - r.micros * interval '1 microsecond'),
            r.micros * interval '1 microsecond', g.created_at, g.run_at, kept.slot,
            case when g.locked_at is null then g.attempts + 1 else g.attempts end,
            g.max_attempts, g.priority, 'succeeded',
            coalesce(task, (select t.identifier from "${schema}"._private_tasks t where t.id = g.task_id), 'task ' || g.task_id),
            case when g.job_queue_id is not null then (
              select q.queue_name from "${schema}"._private_job_queues q where q.id = g.job_queue_id) end,
            g.key, coalesce(g.locked_by, runner), r.trace, g.flags,
            case when careful then "${schema}".pgworker_result(r.result) else r.result::json end,
            case when kept.payloads and pg_column_size(g.payload) <= 65536 and octet_length(g.payload::text) <= 65536 then g.payload end
          from gone g
          left join unnest(noted::bigint[],
            nullif(current_setting('pgworker.run_micros', true), '')::bigint[],
            nullif(current_setting('pgworker.run_results', true), '')::text[],
            nullif(current_setting('pgworker.run_traces', true), '')::text[]) r(id, micros, result, trace) on r.id = g.id;
      end if;
      return null;
    exception when others or assert_failure then
      final := careful or noted is null or sqlstate !~ '^(22|54)';
      select count(*) into jobs from gone g;
      perform "${schema}".pgworker_history_lost(case when final then jobs else 0 end, sqlerrm, sqlstate) where jobs > 0;
      if final then
        return null;
      end if;
      careful := true;
    end;
  end loop;
end
$$;
comment on function "${schema}".pgworker_record_deleted() is 'Writes jobs that have been deleted to the history.';

-- A row that nobody holds any more is that of a run that has ended, unless the attempt is given back. Which it was, and why, the setting
-- pgworker.ending tells; other workers' statements are told apart by what they change. Nothing reads the row before it is known to be a job.
create or replace function "${schema}".pgworker_record_updated() returns trigger
language plpgsql volatile security definer
set lock_timeout = '1min' set plan_cache_mode = force_generic_plan set jit = off
set search_path = pg_catalog, pg_temp as $$
declare
  ended constant timestamptz := clock_timestamp();
  ending constant text := coalesce(current_setting('pgworker.ending', true), '');
  lost constant text := 'Job recovered after worker interruption';
  kept record;
  final boolean;
  outcome text;
  told text;
begin
  if tg_relid <> '"${schema}"._private_jobs'::regclass then
    raise exception 'The history of schema "${schema}" is written by triggers on its jobs alone' using errcode = '42501';
  end if;
  begin
    if "${schema}".pgworker_parked(old.locked_at) then
      old.locked_at := null;
      old.locked_by := null;
    end if;
    final := new.attempts >= new.max_attempts;
    told := new.last_error;
    if old.locked_at is null then
      outcome := 'failed';
    elsif ending = 'released' then
      outcome := case
        when new.attempts < old.attempts then null
        when final and new.last_error ~ '^(Superseded|Removed|Superseded or removed) by' then 'removed'
        when final then 'failed'
        else 'retried'
      end;
    elsif ending = 'recovered' then
      outcome := case
        when final and new.last_error ~ '^(Superseded|Removed) .*; its worker died$' then 'removed'
        when final then 'failed'
        else 'recovered'
      end;
      told := case when new.last_error is distinct from old.last_error or new.last_error = lost then new.last_error end;
    elsif new.attempts >= old.attempts then
      outcome := case
        when final then 'failed'
        when new.last_error is distinct from old.last_error or new.run_at > now() then 'retried'
        else 'recovered'
      end;
      told := case when outcome <> 'recovered' then new.last_error end;
    end if;
    if outcome is null then
      return null;
    end if;
    select * into kept from "${schema}".pgworker_open_history();
    if kept.slot is null then
      return null;
    end if;
    if final and old.locked_at is not null and exists (
      select from "${schema}".pgworker_cancellations c where c.job_id = new.id and c.outcome is null)
    then
      outcome := 'cancelled';
      told := new.last_error;
    end if;
    insert into "${schema}".pgworker_history (job_id, ended_at, started_at, took, created_at, run_at, slot, attempt, max_attempts, priority,
        outcome, task_identifier, queue_name, key, worker_id, flags, error, payload)
      select old.id, ended, old.locked_at,
        case when old.locked_at <= ended and isfinite(old.locked_at) and outcome <> 'recovered' then ended - old.locked_at end,
        old.created_at, old.run_at, kept.slot, case when old.locked_at is null then 0 else old.attempts end,
        new.max_attempts, old.priority, outcome,
        coalesce((select t.identifier from "${schema}"._private_tasks t where t.id = old.task_id), 'task ' || old.task_id),
        (select q.queue_name from "${schema}"._private_job_queues q where q.id = old.job_queue_id),
        old.key, old.locked_by, old.flags, told, case when kept.payloads and pg_column_size(old.payload) <= 65536 and octet_length(old.payload::text) <= 65536 then old.payload end;
  exception when others or assert_failure then
    perform "${schema}".pgworker_history_lost(1, sqlerrm, sqlstate);
  end;
  return null;
end
$$;
comment on function "${schema}".pgworker_record_updated() is 'Writes a run that has ended without its job being deleted to the history.';

-- Not the row type of the table, to look up which is to wait for whoever has locked the table.

-- A worker's own releases are written as a group, not by the trigger, which would have to search the group for each of its rows.
create or replace function "${schema}".pgworker_runs_of(worker_id text, outcomes "${schema}".pgworker_outcome[])
returns "${schema}".pgworker_run[]
language plpgsql volatile
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set jit = off
set search_path = pg_catalog, pg_temp as $$
begin
  perform set_config('pgworker.ending', 'told', true);
  if (select o.slot from "${schema}".pgworker_open_history() o) is null then
    return null;
  end if;
  return (
    select array_agg(row(h.id, h.locked_at, g.micros * interval '1 microsecond', h.created_at, h.run_at, coalesce(g.attempts, h.attempts),
        h.priority,
        coalesce((select t.identifier from "${schema}"._private_tasks t where t.id = h.task_id), 'task ' || h.task_id),
        (select q.queue_name from "${schema}"._private_job_queues q where q.id = h.job_queue_id),
        coalesce(h.key, g.key), h.locked_by, g.trace, h.flags, g.result,
        case when pg_column_size(h.payload) <= 65536 and octet_length(h.payload::text) <= 65536 then h.payload end)::"${schema}".pgworker_run)
    from unnest(outcomes) g
    cross join lateral (select j.* from "${schema}"._private_jobs j where j.id = g.job_id offset 0) h
    where h.locked_by = pgworker_runs_of.worker_id and h.locked_at = g.claim);
exception when others then
  perform set_config('pgworker.ending', 'released', true);
  perform "${schema}".pgworker_history_lost(0, sqlerrm, sqlstate);
  return null;
end
$$;
comment on function "${schema}".pgworker_runs_of(text, "${schema}".pgworker_outcome[]) is
  'The runs that pgworker_release is about to end, as they are before, for the history; null if it keeps none. Has its trigger keep quiet.';

create or replace function "${schema}".pgworker_record_released(
  runs "${schema}".pgworker_run[], job_ids bigint[], outcomes text[]
) returns void
language plpgsql volatile security definer
set lock_timeout = '1min' set plan_cache_mode = force_generic_plan set enable_hashjoin = on set enable_nestloop = off
set enable_mergejoin = off set enable_seqscan = off set enable_bitmapscan = off set jit = off
set search_path = pg_catalog, pg_temp as $$
declare
  ended constant timestamptz := clock_timestamp();
  careful boolean := false;
  final boolean;
  kept record;
begin
  if runs is null then
    return;
  end if;
  loop
    begin
      select * into kept from "${schema}".pgworker_open_history();
      if kept.slot is null then
        return;
      end if;
      insert into "${schema}".pgworker_history (job_id, ended_at, started_at, took, created_at, run_at, slot, attempt, max_attempts,
          priority, outcome, task_identifier, queue_name, key, worker_id, trace_id, flags, error, result, payload)
        select e.job_id, ended, least(e.started_at, ended - e.took),
          coalesce(e.took, case when e.started_at <= ended and isfinite(e.started_at) then ended - e.started_at end),
          e.created_at, e.run_at, kept.slot, e.attempt, n.max_attempts, e.priority,
          case when w.outcome = 'superseded' then 'removed' else w.outcome end,
          e.task_identifier, e.queue_name, e.key, e.worker_id, e.trace_id, e.flags, n.last_error,
          case when careful then "${schema}".pgworker_result(e.result) else e.result::json end,
          case when kept.payloads then e.payload end
        from unnest(job_ids, outcomes) w(id, outcome)
        join unnest(runs) e on e.job_id = w.id
        cross join lateral (
          select j.max_attempts, j.last_error from "${schema}"._private_jobs j where j.id = w.id offset 0) n
        where w.outcome in ('retried', 'failed', 'superseded', 'cancelled');
      return;
    exception when others or assert_failure then
      final := careful or sqlstate !~ '^(22|54)';
      perform "${schema}".pgworker_history_lost(case when final then (
        select count(*) from unnest(outcomes) o(outcome) where o.outcome in ('retried', 'failed', 'superseded', 'cancelled')) else 0 end,
        sqlerrm, sqlstate);
      if final then
        return;
      end if;
      careful := true;
    end;
  end loop;
end
$$;
comment on function "${schema}".pgworker_record_released("${schema}".pgworker_run[], bigint[], text[]) is
  'Writes runs that pgworker_release has ended to the history: as the jobs were before, and what it has returned.';

create or replace function "${schema}".pgworker_keep_history(enabled boolean, keep_for interval, keep_most bigint, payloads boolean)
returns boolean
language plpgsql volatile security definer
set lock_timeout = '2s'
set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
begin
  if keep_for not between interval '1 minute' and interval '3650 days' then
    raise exception 'keep_for must be between 1 minute and 3650 days, but is %', keep_for using errcode = '22023';
  elsif keep_most not between 1000 and 10000000000 then
    raise exception 'keep_most must be between 1000 and 10000000000, but is %', keep_most using errcode = '22023';
  end if;
  update "${schema}".pgworker_history_settings s set
      enabled = coalesce(pgworker_keep_history.enabled, s.enabled),
      keep_for = coalesce(pgworker_keep_history.keep_for, s.keep_for),
      keep_most = coalesce(pgworker_keep_history.keep_most, s.keep_most),
      payloads = coalesce(pgworker_keep_history.payloads, s.payloads)
    where s.enabled <> pgworker_keep_history.enabled
      or s.keep_for <> pgworker_keep_history.keep_for
      or s.keep_most <> pgworker_keep_history.keep_most
      or s.payloads <> pgworker_keep_history.payloads;
  return found;
end
$$;
comment on function "${schema}".pgworker_keep_history(boolean, interval, bigint, boolean) is
  'Switches the history on or off, at once, and sets how much of it is kept; a null argument leaves the value unchanged. Returns whether '
  'anything has changed.';

create or replace function "${schema}".pgworker_history_trouble(partition text, reason text) returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp as $$
declare
  hour constant text := floor(extract(epoch from clock_timestamp()) / 3600)::bigint::text;
begin
  if current_setting('pgworker.history_trouble', true) is distinct from hour then
    perform set_config('pgworker.history_trouble', hour, false);
    raise warning 'Partition % of the history of schema "${schema}" cannot be tended: %', partition, reason;
  end if;
end
$$;
comment on function "${schema}".pgworker_history_trouble(text, text) is 'Warns that a partition of the history could not be read or emptied.';

-- What is committed while the lock is awaited counts, so the entries are looked at with the lock.
create or replace function "${schema}".pgworker_empty_history(partition regclass, older_than timestamptz) returns boolean
language plpgsql volatile
set lock_timeout = '50ms'
set search_path = pg_catalog, pg_temp as $$
declare
  newest timestamptz;
begin
  if not exists (select from "${schema}".pgworker_history_sizes z where z.relation = partition) then
    return false;
  end if;
  execute format('lock table only %s in access exclusive mode', partition);
  if older_than is not null then
    execute format('select max(h.ended_at) from only %s h', partition) into newest;
    if newest >= older_than then
      return false;
    end if;
  end if;
  execute format('truncate only %s', partition);
  return true;
exception
  when lock_not_available or deadlock_detected then
    return false;
  when others then
    perform "${schema}".pgworker_history_trouble(partition::text, sqlerrm);
    return false;
end
$$;
comment on function "${schema}".pgworker_empty_history(regclass, timestamptz) is
  'Empties a partition of the history if nothing in it ended after the time, if one is given; returns whether it did. Waits for nobody.';

create or replace function "${schema}".pgworker_history_part(partition regclass, out entries bigint, out newest timestamptz)
language plpgsql volatile
set lock_timeout = '50ms'
set search_path = pg_catalog, pg_temp as $$
begin
  select z.entries into entries from "${schema}".pgworker_history_sizes z where z.relation = partition;
  if not found then
    return;
  end if;
  execute format('select max(h.ended_at) from only %s h', partition) into newest;
exception
  when lock_not_available or deadlock_detected then
    null;
  when others then
    perform "${schema}".pgworker_history_trouble(partition::text, sqlerrm);
end
$$;
comment on function "${schema}".pgworker_history_part(regclass) is
  'How many entries a partition of the history has, estimated, and when the newest ended; null if it is in use.';

create or replace function "${schema}".pgworker_tend_losses() returns void
language plpgsql volatile
set lock_timeout = '50ms'
set search_path = pg_catalog, pg_temp as $$
begin
  delete from "${schema}".pgworker_history_losses l where l.lost_at < clock_timestamp() - interval '1 day';
  if (select count(*) from "${schema}".pgworker_history_losses) > 1000 then
    with gone as (
      delete from "${schema}".pgworker_history_losses l returning l.*)
    insert into "${schema}".pgworker_history_losses
      select max(g.lost_at), sum(g.jobs), g.reason from gone g group by date_trunc('hour', g.lost_at), g.reason;
  end if;
exception when lock_not_available or deadlock_detected then
  null;
end
$$;
comment on function "${schema}".pgworker_tend_losses() is
  'Forgets losses of the history after a day, and combines those of one hour and reason if there are many.';

-- What is emptied is a partition at a time, which takes the same moment whatever it holds. Where one is in use, by a backup for instance, it
-- is left to the next time: entries stay longer then, and never fewer. Few at a time, as readers wait for the transaction to end. That
-- which is written to is never emptied: the next one takes its place first. Trouble with one partition leaves the others alone, and one that somebody has
-- dropped is passed over.
-- Half of the ring suffices for the time, a seventh of it each, and half for the number, so none is emptied early whatever the rate.
create or replace function "${schema}".pgworker_tend_history() returns void
language plpgsql volatile security definer
set lock_timeout = '50ms' set client_min_messages = warning
set search_path = pg_catalog, pg_temp as $$
declare
  kept "${schema}".pgworker_history_settings;
  part record;
  seen record;
  oldest timestamptz;
  total bigint := 0;
  here bigint;
  in_use int := 0;
  emptied oid[] := '{}';
  filled oid[] := '{}';
  amounts bigint[] := '{}';
  following smallint;
  due boolean;
begin
  select * into kept from "${schema}".pgworker_history_settings s for update skip locked;
  if not found then
    return;
  end if;
  due := not exists (select from "${schema}".pgworker_history_sizes z where z.slot = kept.slot);
  perform "${schema}".pgworker_tend_losses();
  oldest := clock_timestamp() - kept.keep_for;
  for part in
    select z.relation, z.slot from "${schema}".pgworker_history_sizes z
    order by z.slot is not null, (z.slot + 15 - kept.slot) % 16
  loop
    select * into seen from "${schema}".pgworker_history_part(part.relation);
    if part.slot = kept.slot then
      here := seen.entries;
    end if;
    in_use := in_use + (seen.entries is null)::int;
    exit when in_use >= 4;
    continue when coalesce(seen.entries, 0) = 0;
    if part.slot = kept.slot then
      total := total + seen.entries;
      due := seen.entries >= kept.keep_most / 7 or kept.slot_since < clock_timestamp() - kept.keep_for / 7 or seen.newest < oldest;
    elsif seen.newest < oldest and cardinality(emptied) < 4 and "${schema}".pgworker_empty_history(part.relation, oldest) then
      emptied := emptied || part.relation;
    else
      total := total + seen.entries;
      filled := filled || part.relation;
      amounts := amounts || seen.entries;
    end if;
  end loop;
  -- oldest first
  for i in 1..cardinality(filled) loop
    exit when total <= kept.keep_most or cardinality(emptied) >= 4;
    if "${schema}".pgworker_empty_history(filled[i], null) then
      total := total - amounts[i];
      emptied := emptied || filled[i];
    end if;
  end loop;
  if due then
    begin
      select z.slot into following
        from (
          select n.slot, n.relation from "${schema}".pgworker_history_sizes n
          where n.slot <> kept.slot order by (n.slot + 15 - kept.slot) % 16 limit 1) z
        where pg_relation_size(z.relation) = 0;
    exception when lock_not_available or deadlock_detected then
      following := null;
    end;
    if following is not null then
      update "${schema}".pgworker_history_settings s set slot = following, slot_since = clock_timestamp();
    end if;
  elsif here = 0 then
    update "${schema}".pgworker_history_settings s set slot_since = clock_timestamp();
  end if;
exception when lock_not_available or deadlock_detected then
  null;
end
$$;
comment on function "${schema}".pgworker_tend_history() is
  'Chooses the partition of the history to write to, and empties old ones. Call it every 20 seconds.';

-- The claims of our workers and of the peers change none of these columns.
do $triggers$
begin
  if not exists (
    select from pg_trigger t
    where t.tgrelid = '"${schema}"._private_jobs'::regclass and t.tgname = 'pgworker_history_deleted')
  then
    create trigger pgworker_history_deleted after delete on "${schema}"._private_jobs
      referencing old table as gone for each statement when ("${schema}".pgworker_keeps_history())
      execute function "${schema}".pgworker_record_deleted();
  end if;
  if not exists (
    select from pg_trigger t
    where t.tgrelid = '"${schema}"._private_jobs'::regclass and t.tgname = 'pgworker_history_updated')
  then
    create trigger pgworker_history_updated after update of last_error, run_at, max_attempts on "${schema}"._private_jobs
      for each row when (
        (new.locked_at is null or new.locked_at = '9999-01-01 00:00:00+00') and (
          old.locked_at is not null and old.locked_at <> '9999-01-01 00:00:00+00' and (new.attempts >= old.attempts or new.last_error is distinct from old.last_error
            or new.last_error = 'Job recovered after worker interruption')
          or (old.locked_at is null or old.locked_at = '9999-01-01 00:00:00+00')
            and old.attempts < old.max_attempts and new.attempts >= new.max_attempts)
        and current_setting('pgworker.ending', true) is distinct from 'told' and "${schema}".pgworker_keeps_history())
      execute function "${schema}".pgworker_record_updated();
  end if;
end
$triggers$;


-- 11 Limits -------------------------------------------------------------------------------------------------------------------

-- A job of a limited task waits in a *lane*: it is parked, that is locked from the year 9999 on by nobody, with the name of the lane in
-- locked_by. So it is in no index of claims, in nobody's way, and no worker of any kind can claim it, while its other columns stay what they are.
-- The *gate*, pgworker_admit, notes it as a holder in each of the buckets of its lane that have room, and takes the lock off: then any
-- worker claims it as it claims others. The job itself is the permit: a gate strikes those off that have ended.
--
-- Exact, because jobs are admitted by one gate at a time only, which sees all that were admitted before, and nothing else makes a limited job
-- available: triggers park what is added, given back or changed, whoever does it. They exist only while there are limits, and name the tasks
-- that have one, so that jobs of others do not enter a function. What they do writes no row but that of the job; which lane a job waits in is a function of
-- the job. So those who add and end jobs do not wait for one another. A gate waits for other gates, and passes over jobs that somebody holds.
--
-- Admitted jobs leave dead entries at the beginning of their lane. Where reading past them takes long, because a snapshot is held, the lane
-- gets a *floor*, below which gates do not look. Who parks a job tells its place, which lowers the floor; what was not heard is
-- found by looks from the first entry, which pgworker_check_permits makes beside the gates and for a small share of the time. Rows that gates
-- change often are looked up from the end of the index, where the latest version is.
--
-- Order of locks: rows of jobs, the lock of the gates, rows of limits. The gate itself waits for no row of a job.

create or replace function "${schema}".pgworker_parked(locked_at timestamptz) returns boolean
language sql immutable parallel safe as $$
  select coalesce(locked_at operator(pg_catalog.=) '9999-01-01 00:00:00+00'::pg_catalog.timestamptz, false)
$$;
comment on function "${schema}".pgworker_parked(timestamptz) is 'Whether such a lock means that the job waits for a limit.';

-- PostgreSQL stores texts in json that it does not let anybody read: \u0000 and surrogates without their other half. Where there are some
-- they are read as if their backslash were one. Raw control characters cannot be in JSON, so one of them can stand for a pair of backslashes, and
-- another for the backslashes of two halves that belong together: such a character is the same value beside others. Strings are written so that
-- they mean the same where standard_conforming_strings is off.
-- One that is nested so deeply that there is no stack left to read it here, which needs some length, has no value.
create or replace function "${schema}".pgworker_limit_text(payload json, field text[]) returns text
language plpgsql immutable
set search_path = pg_catalog, pg_temp as $$
begin
  return payload #>> field;
exception when others then
  begin
    return replace(replace(
      regexp_replace(
        regexp_replace(replace(payload::text, E'\\\\', E'\x01'),
          E'\\\\u(d[89ab][0-9a-f]{2})\\\\u(d[c-f][0-9a-f]{2})', E'\x02u\\1\x02u\\2', 'gi'),
        E'\\\\u(0000|d[89a-f][0-9a-f]{2})', E'\x01u\\1', 'gi'), E'\x01', E'\\\\'), E'\x02', E'\\')::json
      #>> field;
  exception when others then
    return '';
  end;
end
$$;
comment on function "${schema}".pgworker_limit_text(json, text[]) is 'The text at this place of the payload, whatever the payload holds.';

create or replace function "${schema}".pgworker_limit_value(payload json, field text[]) returns text
language sql immutable as $$
  select case
      when pg_catalog.length(t.value) operator(pg_catalog.<=) 100 then t.value
      else pg_catalog.left(t.value, 60) operator(pg_catalog.||) '...'::pg_catalog.text operator(pg_catalog.||)
        pg_catalog.left(pg_catalog.encode(pg_catalog.sha256(pg_catalog.convert_to(t.value, 'UTF8')), 'hex'), 32)
    end
  from (
    select coalesce(case
        when pg_catalog.strpos(payload::pg_catalog.text, E'\\u') operator(pg_catalog.=) 0
          and pg_catalog.octet_length(payload::pg_catalog.text) operator(pg_catalog.<=) 500
        then payload operator(pg_catalog.#>>) field
        else "${schema}".pgworker_limit_text(payload, field)
      end, '') as value offset 0) t
$$;
comment on function "${schema}".pgworker_limit_value(json, text[]) is
  'The value at this place of the payload that a limit counts by: an empty one where there is none, a long one cut and made unmistakable.';

-- The text of a field has been made by PostgreSQL from an array, and so is one.
create or replace function "${schema}".pgworker_limit_values(payload json, fields text[]) returns text[]
language plpgsql immutable as $$
declare
  bucket_values pg_catalog.text[] := '{}';
  field pg_catalog.text;
begin
  foreach field in array fields loop
    bucket_values := bucket_values operator(pg_catalog.||)
      case when field is null then '' else "${schema}".pgworker_limit_value(payload, field::pg_catalog.text[]) end;
  end loop;
  return bucket_values;
end
$$;
comment on function "${schema}".pgworker_limit_values(json, text[]) is 'The value by which each limit counts a job with this payload.';

-- With the flags, because of those with a forbidden one workers pass over each other's jobs: others are not to wait behind it. The values
-- can be read from the name unless they are very long, so that a gate need not read a payload of many megabytes while it keeps all others waiting.
-- Spaces and bars separate what is told of lanes.
create or replace function "${schema}".pgworker_lane_name(
  task_id int, queue_id int, flags jsonb, limit_ids int[], fields text[], bucket_values text[]
) returns text
language sql immutable as $$
  select pg_catalog.concat(task_id, ':', coalesce(queue_id, 0), ':', pg_catalog.left(pg_catalog.encode(pg_catalog.sha256(
      pg_catalog.convert_to(pg_catalog.concat(limit_ids, fields, bucket_values, flags), 'UTF8')), 'hex'), 32),
    case when pg_catalog.octet_length(v.escaped) operator(pg_catalog.<=) 600 then ':'::pg_catalog.text operator(pg_catalog.||) v.escaped end)
  from (
    select pg_catalog.replace(pg_catalog.replace(pg_catalog.replace(bucket_values::pg_catalog.text, '%', '%25'), ' ', '%20'), '|', '%7C')
      as escaped offset 0) v
$$;
comment on function "${schema}".pgworker_lane_name(int, int, jsonb, int[], text[], text[]) is
  'The lane of a job with these values of these fields for these limits.';

-- Only who switches triggers off can have written another name.
create or replace function "${schema}".pgworker_lane_values(lane text) returns text[]
language plpgsql immutable
set search_path = pg_catalog, pg_temp as $$
begin
  return replace(replace(replace(
    substring(lane from '^[0-9]+:[0-9]+:[0-9a-f]{32}:(.*)$'), '%7C', '|'), '%20', ' '), '%25', '%')::text[];
exception when others then
  return null;
end
$$;
comment on function "${schema}".pgworker_lane_values(text) is 'The values that the name of a lane says; null if it says none.';

-- Jobs that one transaction adds have the same time, and so the same place: in tenths of a second, as it need not be exact.
create or replace function "${schema}".pgworker_place(lane text, priority smallint, run_at timestamptz) returns text
language sql immutable as $$
  select pg_catalog.concat(lane, ' ', priority, ' ', pg_catalog.floor(
    pg_catalog.date_part('epoch', run_at) operator(pg_catalog.*) 10))
$$;
comment on function "${schema}".pgworker_place(text, smallint, timestamptz) is 'A lane and a place in it that is not after that of such a job.';

create or replace function "${schema}".pgworker_lane(
  task_id int, queue_id int, payload json, flags jsonb, known text[] default null,
  out lane text, out limit_ids int[], out bucket_values text[]
)
language plpgsql stable
set search_path = pg_catalog, pg_temp as $$
declare
  fields text[];
begin
  select k.limit_ids, k.fields into limit_ids, fields from "${schema}".pgworker_limited_tasks k where k.task_id = pgworker_lane.task_id;
  if found then
    bucket_values := coalesce(known, "${schema}".pgworker_limit_values(payload, fields));
    lane := "${schema}".pgworker_lane_name(task_id, queue_id, flags, limit_ids, fields, bucket_values);
  end if;
end
$$;
comment on function "${schema}".pgworker_lane(int, int, json, jsonb, text[]) is
  'The lane of such a job, its limits, and the value by which each counts it; nulls if it is subject to none. The payload is not read if the values are known.';

-- One transaction may park jobs in many lanes, and every text that is sent is compared with those before. The setting holds how many have been
-- told, and which, so that those who call this for every row can see for themselves that it has been told.
create or replace function "${schema}".pgworker_tell_limits(kind text, name text) returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp as $$
declare
  most constant int := 64;
  told constant text := coalesce(nullif(current_setting('pgworker.limits_told', true), ''), '0|');
  number constant int := split_part(told, '|', 1)::int;
begin
  if number > most or strpos(told, '|' || kind || name || '|') > 0 then
    return;
  end if;
  perform set_config('pgworker.limits_told', (number + 1) || substr(told, strpos(told, '|')) || kind || name || '|', true);
  perform pg_notify('pgworker:limits', case when number = most then 'e' else kind || name end);
end
$$;
comment on function "${schema}".pgworker_tell_limits(text, text) is
  'Tells gates that a job waits in a lane ("l") or that a bucket may have room ("b"), or, after many of these, to look at everything ("e").';

-- Called for every job that ends, hence without settings of its own. Of tasks whose limits have no field one job tells for all. A long payload is not
-- read again.
create or replace function "${schema}".pgworker_tell_room(task_id int, payload json) returns void
language plpgsql volatile as $$
declare
  told pg_catalog.text := coalesce(pg_catalog.current_setting('pgworker.limits_told', true), '');
  limited record;
  bucket_values pg_catalog.text[];
  bucket pg_catalog.int8;
begin
  if told operator(pg_catalog.~~) '65|%' or pg_catalog.strpos(told, pg_catalog.concat('|t', task_id, '|')) operator(pg_catalog.>) 0 then
    return;
  end if;
  select k.limit_ids, k.fields into limited from "${schema}".pgworker_limited_tasks k
    where k.task_id operator(pg_catalog.=) pgworker_tell_room.task_id;
  if not found then
    return;
  end if;
  if pg_catalog.pg_column_size(payload) operator(pg_catalog.>) 50000
    and pg_catalog.array_remove(limited.fields, null) operator(pg_catalog.<>) '{}'
  then
    perform "${schema}".pgworker_tell_limits('e', '');
    return;
  end if;
  bucket_values := "${schema}".pgworker_limit_values(payload, limited.fields);
  for at in 1..pg_catalog.cardinality(limited.limit_ids) loop
    select c.id into bucket from "${schema}".pgworker_limit_buckets c
      where (c.limit_id, c.value) operator(pg_catalog.>=) (limited.limit_ids[at], bucket_values[at] collate pg_catalog."C")
        and (c.limit_id, c.value) operator(pg_catalog.<=) (limited.limit_ids[at], bucket_values[at] collate pg_catalog."C")
      order by c.limit_id desc, c.value desc limit 1;
    if found and pg_catalog.strpos(told, pg_catalog.concat('|b', bucket, '|')) operator(pg_catalog.=) 0 then
      perform "${schema}".pgworker_tell_limits('b', bucket::pg_catalog.text);
    end if;
  end loop;
  told := pg_catalog.current_setting('pgworker.limits_told', true);
  if told operator(pg_catalog.<>) '' and pg_catalog.array_remove(limited.fields, null) operator(pg_catalog.=) '{}' then
    perform pg_catalog.set_config('pgworker.limits_told', pg_catalog.concat(told, 't', task_id, '|'), true);
  end if;
end
$$;
comment on function "${schema}".pgworker_tell_room(int, json) is 'Tells gates that such a job has ended or waits again.';

-- A transaction whose snapshot is older than a limit would not see it: locking the row makes such a transaction fail with 40001. What is
-- written here is called for every row, hence without settings of its own.
create or replace function "${schema}".pgworker_park_added() returns trigger
language plpgsql volatile security definer as $$
declare
  lane pg_catalog.text;
  place pg_catalog.text;
  told pg_catalog.text;
  limited record;
begin
  if tg_relid operator(pg_catalog.<>) '"${schema}"._private_jobs'::pg_catalog.regclass then
    raise exception 'The limits of schema "${schema}" are kept by triggers on its jobs alone' using errcode = '42501';
  end if;
  if pg_catalog.current_setting('transaction_isolation') operator(pg_catalog.<>) 'read committed' then
    perform from "${schema}".pgworker_limit_state s where s.name operator(pg_catalog.=) 'changes' for share;
  end if;
  select k.limit_ids, k.fields into limited from "${schema}".pgworker_limited_tasks k where k.task_id operator(pg_catalog.=) new.task_id;
  if found then
    lane := "${schema}".pgworker_lane_name(
      new.task_id, new.job_queue_id, new.flags, limited.limit_ids, limited.fields,
      "${schema}".pgworker_limit_values(new.payload, limited.fields));
    new.locked_at := '9999-01-01 00:00:00+00'::pg_catalog.timestamptz;
    new.locked_by := 'pgworker-limit:'::pg_catalog.text operator(pg_catalog.||) lane;
    told := coalesce(pg_catalog.current_setting('pgworker.limits_told', true), '');
    if told operator(pg_catalog.!~~) '65|%' then
      place := "${schema}".pgworker_place(lane, new.priority, new.run_at);
      if pg_catalog.strpos(told, pg_catalog.concat('|l', place, '|')) operator(pg_catalog.=) 0 then
        perform "${schema}".pgworker_tell_limits('l', place);
      end if;
    end if;
  elsif new.locked_at is not null then
    new.locked_at := null;
    new.locked_by := null;
  end if;
  return new;
end
$$;
comment on function "${schema}".pgworker_park_added() is 'Parks a job of a limited task that is being added.';

-- An available job of a limited task has been admitted. It stays so if it may run as before; if not, it waits anew.
create or replace function "${schema}".pgworker_park_changed() returns trigger
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp as $$
declare
  lane text;
  limited record;
  held boolean;
  leaves boolean;
begin
  if tg_relid <> '"${schema}"._private_jobs'::regclass then
    raise exception 'The limits of schema "${schema}" are kept by triggers on its jobs alone' using errcode = '42501';
  end if;
  held := old.locked_at is not null and old.locked_at <> '9999-01-01 00:00:00+00';
  if new.attempts >= new.max_attempts then
    new.locked_at := null;
    new.locked_by := null;
    if held or old.locked_at is null and old.attempts < old.max_attempts then
      perform "${schema}".pgworker_tell_room(old.task_id, old.payload);
    end if;
    return new;
  end if;
  if current_setting('transaction_isolation') <> 'read committed' then
    perform from "${schema}".pgworker_limit_state s where s.name = 'changes' for share;
  end if;
  leaves := held or old.locked_at is null and old.attempts < old.max_attempts;
  select k.limit_ids, k.fields into limited from "${schema}".pgworker_limited_tasks k where k.task_id = new.task_id;
  if found then
    if old.locked_at is null and old.attempts < old.max_attempts and new.locked_at is null
      and new.run_at = old.run_at and new.task_id = old.task_id and new.job_queue_id is not distinct from old.job_queue_id
      and new.payload::text = old.payload::text
    then
      return new;
    end if;
    lane := "${schema}".pgworker_lane_name(
      new.task_id, new.job_queue_id, new.flags, limited.limit_ids, limited.fields,
      "${schema}".pgworker_limit_values(new.payload, limited.fields));
    new.locked_at := '9999-01-01 00:00:00+00';
    new.locked_by := 'pgworker-limit:' || lane;
    perform "${schema}".pgworker_tell_limits('l', "${schema}".pgworker_place(lane, new.priority, new.run_at));
  elsif new.locked_at is not null then
    new.locked_at := null;
    new.locked_by := null;
  end if;
  if leaves then
    perform "${schema}".pgworker_tell_room(old.task_id, old.payload);
  end if;
  return new;
end
$$;
comment on function "${schema}".pgworker_park_changed() is
  'Parks a job of a limited task that nobody holds any more or that has been changed, and tells gates of the room that it leaves, as does one that has failed.';

create or replace function "${schema}".pgworker_tell_deleted() returns trigger
language plpgsql volatile security definer as $$
begin
  if tg_relid operator(pg_catalog.<>) '"${schema}"._private_jobs'::pg_catalog.regclass then
    raise exception 'The limits of schema "${schema}" are kept by triggers on its jobs alone' using errcode = '42501';
  end if;
  perform "${schema}".pgworker_tell_room(old.task_id, old.payload);
  return null;
end
$$;
comment on function "${schema}".pgworker_tell_deleted() is 'Tells gates of the room that deleted jobs leave.';

create or replace function "${schema}".pgworker_keep_task() returns trigger
language plpgsql volatile as $$
begin
  return null;
end
$$;
comment on function "${schema}".pgworker_keep_task() is 'Keeps the row of a limited task, whose id triggers know, from being cleaned up.';

create or replace function "${schema}".pgworker_switched_limits() returns int[]
language sql stable
set search_path = pg_catalog, pg_temp as $$
  select case when count(*) = 4 and min(t.args) = max(t.args) then min(t.args)::int[] else '{}' end
  from (
    select replace(encode(t.tgargs, 'escape'), E'\\000', '') as args from pg_trigger t
    where t.tgrelid = '"${schema}"._private_jobs'::regclass
        and t.tgname in ('zz_pgworker_limits_added', 'zz_pgworker_limits_changed', 'zz_pgworker_limits_deleted')
      or t.tgrelid = '"${schema}"._private_tasks'::regclass and t.tgname = 'zz_pgworker_limits_kept') t
$$;
comment on function "${schema}".pgworker_switched_limits() is 'The ids of the tasks whose jobs go through the triggers of the limits.';

create or replace function "${schema}".pgworker_limited_ids() returns int[]
language sql stable
set search_path = pg_catalog, pg_temp as $$
  select array(
    select distinct t.id from "${schema}".pgworker_limits l cross join lateral unnest(l.task_identifiers) n(name)
    join "${schema}"._private_tasks t on t.identifier = n.name
    order by t.id)
$$;
comment on function "${schema}".pgworker_limited_ids() is 'The ids of the tasks that have limits.';

-- The names are the last in their order, so that what others' triggers change counts. Making and dropping triggers waits for who
-- writes jobs no longer than others may be made to wait behind it. Where PostgreSQL can replace a trigger, it does not wait for who only reads.
-- The row of a limited task is kept because a task that is made anew gets another id.
create or replace function "${schema}".pgworker_switch_limits(task_ids int[]) returns boolean
language plpgsql volatile
set lock_timeout = '50ms' set client_min_messages = warning
set search_path = pg_catalog, pg_temp as $$
declare
  replaces constant boolean := current_setting('server_version_num')::int >= 140000;
  make constant text := case when replaces then 'create or replace trigger ' else 'create trigger ' end;
  waits constant text := '(new.locked_at is null or new.locked_at = ''9999-01-01 00:00:00+00'')';
begin
  if not replaces or task_ids = '{}' then
    drop trigger if exists zz_pgworker_limits_added on "${schema}"._private_jobs;
    drop trigger if exists zz_pgworker_limits_changed on "${schema}"._private_jobs;
    drop trigger if exists zz_pgworker_limits_deleted on "${schema}"._private_jobs;
    drop trigger if exists zz_pgworker_limits_kept on "${schema}"._private_tasks;
  end if;
  if task_ids <> '{}' then
    execute make || format('zz_pgworker_limits_added before insert on "${schema}"._private_jobs for each row
      when ((new.task_id = any (%1$L::int[]) or new.locked_at = ''9999-01-01 00:00:00+00'') and new.attempts < new.max_attempts and %2$s)
      execute function "${schema}".pgworker_park_added(%1$L)', task_ids, waits);
    execute make || format('zz_pgworker_limits_changed
      before update of task_id, job_queue_id, payload, flags, run_at, attempts, max_attempts, locked_at on "${schema}"._private_jobs for each row
      when (%2$s and (new.task_id = any (%1$L::int[]) or old.task_id = any (%1$L::int[]) or new.locked_at = ''9999-01-01 00:00:00+00'')
        and current_setting(''pgworker.limits'', true) is distinct from ''admit'')
      execute function "${schema}".pgworker_park_changed(%1$L)', task_ids, waits);
    execute make || format('zz_pgworker_limits_deleted after delete on "${schema}"._private_jobs for each row
      when (old.task_id = any (%1$L::int[]) and (old.locked_at <> ''9999-01-01 00:00:00+00'' or old.is_available))
      execute function "${schema}".pgworker_tell_deleted(%1$L)', task_ids);
    execute make || format('zz_pgworker_limits_kept before delete on "${schema}"._private_tasks for each row
      when (old.id = any (%1$L::int[])) execute function "${schema}".pgworker_keep_task(%1$L)', task_ids);
  end if;
  return true;
exception when lock_not_available or deadlock_detected then
  return false;
end
$$;
comment on function "${schema}".pgworker_switch_limits(int[]) is
  'Makes the triggers that keep the limits of these tasks, or drops them if there are none; returns false if locks of others are in the way.';

create or replace function "${schema}".pgworker_note_limited(tasks text[]) returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp as $$
begin
  delete from "${schema}".pgworker_limited_tasks k where k.task_identifier = any(tasks);
  insert into "${schema}"._private_tasks (identifier)
    select distinct n.name from "${schema}".pgworker_limits l cross join lateral unnest(l.task_identifiers) n(name)
    where n.name = any(tasks) and not exists (select from "${schema}"._private_tasks t where t.identifier = n.name)
    order by n.name
    on conflict do nothing;
  insert into "${schema}".pgworker_limited_tasks (task_identifier, task_id, limit_ids, fields)
    select t.identifier, t.id, array_agg(l.id order by l.id), array_agg(l.field::text order by l.id)
    from (select distinct u.name from unnest(tasks) u(name)) n
    join "${schema}"._private_tasks t on t.identifier = n.name
    join "${schema}".pgworker_limits l on l.state <> 'removing' and n.name = any(l.task_identifiers)
    group by t.identifier, t.id;
end
$$;
comment on function "${schema}".pgworker_note_limited(text[]) is 'Notes the limits of these tasks, for those who add jobs.';

-- What a limit counts by is not changed in place: jobs that wait, and those that run, have to be looked at anew, as for a limit that is made.
create or replace function "${schema}".pgworker_put_limit(
  name text, task_identifiers text[], field text[] default null, max_running int default null, max_starts int default null,
  period interval default null, burst int default null, declared boolean default null
) returns "${schema}".pgworker_limits
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
  most constant int := 1000000000;
  tasks text[];
  -- However many dimensions the array has: clients expect one.
  keys constant text[] := (select array_agg(f.name order by f.place) from unnest(field) with ordinality f(name, place));
  seconds float8;
  least_burst bigint;
  usual_burst bigint;
  before "${schema}".pgworker_limits;
  put "${schema}".pgworker_limits;
begin
  if pgworker_put_limit.name is null or length(pgworker_put_limit.name) not between 1 and 128 then
    perform "${schema}".pgworker_wrong('name', 'must have 1 to 128 characters', pgworker_put_limit.name);
  end if;
  tasks := array(select distinct t.name collate "C" as name from unnest(pgworker_put_limit.task_identifiers) t(name) order by 1);
  if cardinality(tasks) not between 1 and 1000 then
    perform "${schema}".pgworker_wrong('task_identifiers', 'must name 1 to 1000 tasks', cardinality(tasks)::text);
  elsif exists (select from unnest(tasks) t(name) where t.name is null or length(t.name) not between 1 and 128) then
    perform "${schema}".pgworker_wrong('task_identifiers', 'must each have 1 to 128 characters', tasks::text);
  elsif cardinality(pgworker_put_limit.field) > 20
    or exists (select from unnest(pgworker_put_limit.field) f(name) where f.name is null or length(f.name) > 1000)
  then
    perform "${schema}".pgworker_wrong('field', 'must be null or 1 to 20 names of at most 1000 characters', pgworker_put_limit.field::text);
  elsif (pgworker_put_limit.max_running is null) = (pgworker_put_limit.max_starts is null) then
    raise exception 'Exactly one of max_running and max_starts must be given' using errcode = '22023';
  elsif pgworker_put_limit.max_running not between 1 and 1000000 then
    perform "${schema}".pgworker_wrong('max_running', 'must be between 1 and 1000000', pgworker_put_limit.max_running::text);
  elsif pgworker_put_limit.max_starts not between 1 and most then
    perform "${schema}".pgworker_wrong('max_starts', 'must be between 1 and 1000000000', pgworker_put_limit.max_starts::text);
  elsif pgworker_put_limit.max_running is not null and (pgworker_put_limit.period is not null or pgworker_put_limit.burst is not null) then
    raise exception 'period and burst belong to max_starts' using errcode = '22023';
  elsif pgworker_put_limit.max_starts is not null then
    if pgworker_put_limit.period is null
      or pgworker_put_limit.period not between interval '1 millisecond' and interval '3650 days'
      or extract(epoch from pgworker_put_limit.period) < 0.001
    then
      perform "${schema}".pgworker_wrong('period', 'must be between 1 millisecond and 3650 days', pgworker_put_limit.period::text);
    end if;
    seconds := extract(epoch from pgworker_put_limit.period);
    -- Gates look in steps: with less, what falls between two of them would be lost.
    least_burst := greatest(1, ceil(pgworker_put_limit.max_starts / seconds / 10))::bigint;
    usual_burst := least(most, greatest(1, ceil(pgworker_put_limit.max_starts / seconds / 2)))::bigint;
    if least_burst > most then
      perform "${schema}".pgworker_wrong('period', 'must be longer for so many starts', pgworker_put_limit.period::text);
    elsif pgworker_put_limit.burst not between least_burst and most then
      perform "${schema}".pgworker_wrong('burst', format(
        'must be between %s, which is what a tenth of a second allows, and 1000000000', least_burst), pgworker_put_limit.burst::text);
    end if;
  end if;

  update "${schema}".pgworker_limit_state s set number = s.number + 1 where s.name = 'changes';
  select * into before from "${schema}".pgworker_limits l where l.name = pgworker_put_limit.name for update;
  if found then
    update "${schema}".pgworker_limits l set
        task_identifiers = tasks,
        field = keys,
        max_running = pgworker_put_limit.max_running,
        max_starts = pgworker_put_limit.max_starts,
        period = pgworker_put_limit.period,
        burst = case when pgworker_put_limit.max_starts is not null then coalesce(pgworker_put_limit.burst, usual_burst::int) end,
        declared = coalesce(pgworker_put_limit.declared, l.declared),
        updated_at = clock_timestamp()
      where l.id = before.id
      returning * into put;
    if before.state = 'removing' or before.task_identifiers <> put.task_identifiers or before.field is distinct from put.field
      or before.max_running is null and put.max_running is not null
    then
      update "${schema}".pgworker_limits l set
          state = 'applying', unaware = null, looked_at = null, place = null, passed = false, sure = false, settled = false
        where l.id = before.id
        returning * into put;
    end if;
  else
    insert into "${schema}".pgworker_limits as l (name, task_identifiers, field, max_running, max_starts, period, burst, declared)
      values (pgworker_put_limit.name, tasks, keys, pgworker_put_limit.max_running,
        pgworker_put_limit.max_starts, pgworker_put_limit.period,
        case when pgworker_put_limit.max_starts is not null then coalesce(pgworker_put_limit.burst, usual_burst::int) end,
        coalesce(pgworker_put_limit.declared, false))
      returning * into put;
  end if;
  perform "${schema}".pgworker_note_limited(tasks || before.task_identifiers);
  perform pg_notify('pgworker:limits', 's');
  return put;
end
$$;
comment on function "${schema}".pgworker_put_limit(text, text[], text[], int, int, interval, int, boolean) is
  'Makes a limit or changes the one of that name: of jobs of these tasks at most max_running at once, or max_starts in each period and burst at once, '
  'for each value at this place of the payload if one is given. Without burst it is what half a second allows. It holds as soon as its '
  'state is active, which workers see to.';

create or replace function "${schema}".pgworker_delete_limit(name text) returns boolean
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp as $$
declare
  tasks text[];
begin
  update "${schema}".pgworker_limit_state s set number = s.number + 1 where s.name = 'changes';
  update "${schema}".pgworker_limits l set
      state = 'removing', unaware = null, looked_at = null, place = null, passed = false, sure = false, settled = false, updated_at = clock_timestamp()
    where l.name = pgworker_delete_limit.name and l.state <> 'removing'
    returning l.task_identifiers into tasks;
  if not found then
    return false;
  end if;
  perform "${schema}".pgworker_note_limited(tasks);
  perform pg_notify('pgworker:limits', 's');
  return true;
end
$$;
comment on function "${schema}".pgworker_delete_limit(text) is
  'Deletes a limit: new jobs are no longer subject to it, and workers let those go that wait for it. Returns whether there was one.';

-- Who has the table of jobs open for writing may have looked for limits before there was this one. All who open it later look later.
create or replace function "${schema}".pgworker_writers() returns text[]
language sql volatile
set search_path = pg_catalog, pg_temp as $$
  select coalesce(array_agg(distinct l.virtualtransaction), '{}') from pg_locks l
  where l.locktype = 'relation' and l.relation = '"${schema}"._private_jobs'::regclass and l.mode = 'RowExclusiveLock' and l.granted
    and l.database = (select d.oid from pg_database d where d.datname = current_database())
    and l.pid is distinct from pg_backend_pid()
$$;
comment on function "${schema}".pgworker_writers() is 'The open transactions that have written jobs, or are about to.';

create or replace function "${schema}".pgworker_buckets(limit_ids int[], bucket_values text[]) returns bigint[]
language plpgsql volatile
set search_path = pg_catalog, pg_temp as $$
begin
  insert into "${schema}".pgworker_limit_buckets (limit_id, value)
    select g.limit_id, g.value from unnest(limit_ids, bucket_values) g(limit_id, value)
    where not exists (select from "${schema}".pgworker_limit_buckets b where b.limit_id = g.limit_id and b.value = g.value)
    on conflict do nothing;
  return array(
    select b.id from unnest(limit_ids, bucket_values) with ordinality g(limit_id, value, place)
    join "${schema}".pgworker_limit_buckets b on b.limit_id = g.limit_id and b.value = g.value
    order by g.place);
end
$$;
comment on function "${schema}".pgworker_buckets(int[], text[]) is
  'The buckets of these values of these limits, which are made if they do not exist; for whoever has the lock of the gates.';

-- Struck off are those that have ended, noted those that were admitted, which are no holders twice.
create or replace function "${schema}".pgworker_note_holders(
  admitted_buckets bigint[], admitted_jobs bigint[], ended_buckets bigint[], ended_jobs bigint[], moment timestamptz
) returns void
language plpgsql volatile
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_mergejoin = off set jit = off
set search_path = pg_catalog, pg_temp as $$
begin
  with changed as materialized (
    select c.bucket, array_agg(c.job) as struck,
      coalesce(array_agg(c.job order by c.number) filter (where c.number is not null), '{}') as added
    from (
      select a.bucket, a.job, a.number from unnest(admitted_buckets, admitted_jobs) with ordinality a(bucket, job, number)
      union all
      select e.bucket, e.job, null from unnest(ended_buckets, ended_jobs) e(bucket, job)) c
    group by c.bucket),
  noted as materialized (
    select b.tid, k.holders || c.added as holders,
      k.since || array_fill(
        extract(epoch from moment - '2000-01-01 00:00:00+00'::timestamptz)::int, array[cardinality(c.added)]) as since
    from changed c
    cross join lateral (
      select t.ctid as tid, t.holders, t.since from "${schema}".pgworker_limit_buckets t
      where t.id >= c.bucket and t.id <= c.bucket order by t.id desc limit 1) b
    cross join lateral (
      select coalesce(array_agg(h.job_id order by h.number), '{}') as holders,
        coalesce(array_agg(h.since order by h.number), '{}') as since
      from unnest(b.holders, b.since) with ordinality h(job_id, since, number)
      where h.job_id <> all (c.struck)) k)
  update "${schema}".pgworker_limit_buckets b
    set holders = n.holders, since = n.since
    from noted n
    where b.ctid = n.tid;
end
$$;
comment on function "${schema}".pgworker_note_holders(bigint[], bigint[], bigint[], bigint[], timestamptz) is
  'Notes in the buckets which jobs were admitted and which have ended; for whoever has the lock of the gates.';

create or replace function "${schema}".pgworker_forget_holders(the_limit int) returns void
language plpgsql volatile
set lock_timeout = '1s'
set search_path = pg_catalog, pg_temp as $$
begin
  perform pg_advisory_xact_lock(hashtextextended('pgworker_limits ${schema}', 0));
  update "${schema}".pgworker_limit_buckets b set holders = '{}', since = '{}', unstarted = 0
    where b.limit_id = the_limit and (b.holders <> '{}' or b.unstarted <> 0);
end
$$;
comment on function "${schema}".pgworker_forget_holders(int) is
  'Forgets who has been admitted by a limit that admits nobody, before those who run are noted anew.';

-- Jobs that nobody holds are parked by the trigger, to which they are shown. Those that somebody runs, and those that somebody holds for
-- other reasons, a direct batch for instance, get permits, which may be more than the limit allows. Those of other limits' tasks have been admitted
-- already, and where a limit is being removed, nobody has to wait who did not.
create or replace function "${schema}".pgworker_apply_to(job_ids bigint[], the_limit int) returns bigint
language plpgsql volatile
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off
set enable_mergejoin = off set jit = off set lock_timeout = '1s'
set search_path = pg_catalog, pg_temp as $$
declare
  concerned constant int[] := array(
    select k.task_id from "${schema}".pgworker_limited_tasks k
    join "${schema}".pgworker_limits l on l.id = the_limit and l.state <> 'removing' and k.task_identifier = any(l.task_identifiers));
  freed record;
  run record;
  running bigint[];
  made bigint[];
begin
  with idle as materialized (
    select j.ctid as tid
    from unnest(job_ids) g(id)
    cross join lateral (
      select h.ctid, h.* from "${schema}"._private_jobs h where h.id = g.id offset 0) j
    where case
        when j.is_available then j.task_id = any(concerned)
        when j.locked_at = '9999-01-01 00:00:00+00' then j.locked_by is distinct from (
          select 'pgworker-limit:' || l.lane from "${schema}".pgworker_lane(j.task_id, j.job_queue_id, j.payload, j.flags) l)
      end),
  mine as materialized (
    select j.ctid as tid from "${schema}"._private_jobs j
    where j.ctid = any(array(select i.tid from idle i)) and (j.is_available or j.locked_at = '9999-01-01 00:00:00+00')
    for update skip locked),
  shown as (
    update "${schema}"._private_jobs j set locked_at = '9999-01-01 00:00:00+00', locked_by = ''
    where j.ctid = any(array(select m.tid from mine m))
    returning j.is_available, j.run_at, j.priority, j.job_queue_id)
  select count(*) as jobs, min(s.run_at) as earliest, count(s.job_queue_id) as queued,
      case when count(distinct s.priority) <= 16 then string_agg(distinct s.priority::text, ',') end as levels,
      (select count(*) from idle) - (select count(*) from mine) as missed
    into freed
    from shown s where s.is_available;
  perform "${schema}".pgworker_wake(freed.jobs, freed.earliest, freed.levels, freed.queued = freed.jobs);

  running := array(
    select j.id
    from unnest(job_ids) g(id)
    cross join lateral (
      select h.* from "${schema}"._private_jobs h where h.id = g.id offset 0) j
    where j.task_id = any(concerned) and (j.locked_at is not null or j.attempts < j.max_attempts)
      and (j.locked_at is null or j.locked_at <> '9999-01-01 00:00:00+00'));
  if running = '{}' then return freed.missed; end if;
  perform pg_advisory_xact_lock(hashtextextended('pgworker_limits ${schema}', 0));
  for run in
    select u.limit_id, u.value, array_agg(distinct g.id) as ids
    from unnest(running) g(id)
    cross join lateral (select h.* from "${schema}"._private_jobs h where h.id = g.id offset 0) j
    cross join lateral "${schema}".pgworker_lane(j.task_id, j.job_queue_id, j.payload, j.flags) n
    cross join lateral unnest(n.limit_ids, n.bucket_values) u(limit_id, value)
    join "${schema}".pgworker_limits l on l.id = u.limit_id and (l.max_running is not null or j.locked_at is null)
    group by u.limit_id, u.value
  loop
    made := "${schema}".pgworker_buckets(array[run.limit_id], array[run.value]);
    perform "${schema}".pgworker_note_holders(
      array_fill(made[1], array[cardinality(run.ids)]), run.ids, '{}', '{}', clock_timestamp());
  end loop;
  return freed.missed;
end
$$;
comment on function "${schema}".pgworker_apply_to(bigint[], int) is
  'Makes those of the given jobs that nobody holds wait as the limits say, and gives the others permits. Returns how many rows somebody had locked.';

-- All together or, where that is refused, because of a trigger of somebody's for instance, each half by itself: a job that cannot be changed
-- keeps no limit from taking effect for the others. It waits for nothing, and so does not count.
create or replace function "${schema}".pgworker_apply_to_what_lets(job_ids bigint[], the_limit int) returns bigint
language plpgsql volatile
set search_path = pg_catalog, pg_temp as $$
declare
  total constant int := cardinality(job_ids);
  middle constant int := (total + 1) / 2;
  context text;
begin
  begin
    return "${schema}".pgworker_apply_to(job_ids, the_limit);
  exception when others or assert_failure then
    get stacked diagnostics context = pg_exception_context;
    if sqlstate = '55P03' or not "${schema}".pgworker_about_row(sqlstate, context) then raise; end if;
    if total <= 1 then
      raise warning 'Job % cannot be made to wait for limits: %', job_ids[1], sqlerrm;
      return 0;
    end if;
  end;
  return "${schema}".pgworker_apply_to_what_lets(job_ids[:middle], the_limit)
    + "${schema}".pgworker_apply_to_what_lets(job_ids[middle + 1:], the_limit);
end
$$;
comment on function "${schema}".pgworker_apply_to_what_lets(bigint[], int) is
  'As pgworker_apply_to, but for jobs that do not let themselves be changed.';

-- Somebody may hold a job while all others are gone through: then it waits in a lane that knows nothing of the limit. A gate that does not know the
-- lane finds that out.
create or replace function "${schema}".pgworker_forget_lanes_of(the_limit int) returns void
language plpgsql volatile
set lock_timeout = '1s'
set search_path = pg_catalog, pg_temp as $$
begin
  perform pg_advisory_xact_lock(hashtextextended('pgworker_limits ${schema}', 0));
  delete from "${schema}".pgworker_limit_lanes n
    where n.lane in (
        select t.lane from "${schema}".pgworker_limit_turns t
        where t.bucket_id in (select b.id from "${schema}".pgworker_limit_buckets b where b.limit_id = the_limit))
      or n.task_id in (select k.task_id from "${schema}".pgworker_limited_tasks k where the_limit = any(k.limit_ids));
  delete from "${schema}".pgworker_limit_turns t
    where t.bucket_id in (select b.id from "${schema}".pgworker_limit_buckets b where b.limit_id = the_limit)
      or not exists (select from "${schema}".pgworker_limit_lanes n where n.lane = t.lane);
end
$$;
comment on function "${schema}".pgworker_forget_lanes_of(int) is
  'Forgets the lanes of the tasks of a limit, which gates make anew if there are jobs in them.';

create or replace function "${schema}".pgworker_forget_limit(the_limit int) returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp as $$
begin
  perform "${schema}".pgworker_forget_lanes_of(the_limit);
  delete from "${schema}".pgworker_limit_buckets b where b.limit_id = the_limit;
  delete from "${schema}".pgworker_limits l where l.id = the_limit;
end
$$;
comment on function "${schema}".pgworker_forget_limit(int) is 'Deletes what is left of a limit that no job is subject to any more.';

-- Transactions that do not know the limit yet are waited for, and so are those that hold rows of jobs, but not for ever: then the limit holds for all
-- jobs but those that they add, and another pass follows when they have ended; what they hold is found in a lane that is none any more. The lock of
-- the gates is taken in steps of their own or at the end of one: while jobs are being parked, those of other limits go on.
create or replace function "${schema}".pgworker_apply_limits(most int default 5000)
returns table (name text, state text, done boolean, note text)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
  patience constant interval := interval '10 seconds';
  one "${schema}".pgworker_limits;
  clear boolean;
  early boolean;
  ids bigint[];
  missed bigint;
  parked tid[];
  freed record;
  left_over record;
begin
  if most is null or most not between 1 and 100000 then
    perform "${schema}".pgworker_wrong('most', 'must be between 1 and 100000', most::text);
  elsif current_setting('transaction_isolation') <> 'read committed' then
    raise exception 'Limits are applied at the isolation level read committed only' using errcode = '25001';
  elsif not pg_try_advisory_xact_lock(hashtextextended('pgworker_apply_limits ${schema}', 0)) then
    return;
  end if;
  done := false;
  if not exists (select from "${schema}".pgworker_limits) then
    if "${schema}".pgworker_switched_limits() <> '{}' and not "${schema}".pgworker_switch_limits('{}') then
      state := 'removing';
      note := 'busy';
      return next;
      return;
    end if;
    -- What could not be changed when the last limit was removed, or comes from a dump: nobody else would let it go.
    parked := array(
      select j.ctid from "${schema}"._private_jobs j
      where j.locked_at = '9999-01-01 00:00:00+00'
      order by j.locked_by collate "C", j.priority, j.run_at, j.id limit most for update skip locked);
    select * into freed from "${schema}".pgworker_show_what_lets(parked);
    perform "${schema}".pgworker_wake(freed.jobs, freed.earliest);
    if freed.jobs > 0
      or parked = '{}' and exists (select from "${schema}"._private_jobs j where j.locked_at = '9999-01-01 00:00:00+00')
    then
      state := 'removing';
      note := case when freed.jobs = 0 then 'later' end;
      return next;
    end if;
    return;
  end if;
  for one in
    select * from "${schema}".pgworker_limits l
    where l.state <> 'active' or not l.settled or l.place is not null
    order by l.place is null, l.state = 'active', l.id for update skip locked
  loop
    name := one.name;
    state := one.state;
    note := null;
    early := one.looked_at between clock_timestamp() - patience and clock_timestamp();
    if not "${schema}".pgworker_limited_ids() <@ "${schema}".pgworker_switched_limits()
      and not "${schema}".pgworker_switch_limits("${schema}".pgworker_limited_ids())
    then
      note := 'busy';
      return next;
      return;
    end if;
    if one.unaware is null then
      update "${schema}".pgworker_limits l set unaware = "${schema}".pgworker_writers(), looked_at = clock_timestamp() where l.id = one.id;
      return next;
      return;
    end if;
    if one.place is null then
      clear := not one.unaware && "${schema}".pgworker_writers();
      if not clear and (one.passed or early) then
        note := case when one.passed then 'later' else 'waiting' end;
        if left_over is null or note = 'waiting' then
          select name, state, note into left_over;
        end if;
        continue;
      end if;
      one.place := -1;
      one.sure := clear;
      if one.state = 'applying' then
        begin
          perform "${schema}".pgworker_forget_holders(one.id);
          perform "${schema}".pgworker_forget_lanes_of(one.id);
          update "${schema}".pgworker_limits l set place = one.place, sure = one.sure where l.id = one.id;
        exception when lock_not_available then
          note := 'busy';
        end;
        return next;
        return;
      end if;
    end if;
    ids := array(select j.id from "${schema}"._private_jobs j where j.id > one.place order by j.id limit most);
    begin
      missed := "${schema}".pgworker_apply_to_what_lets(ids, one.id);
      one.sure := one.sure and (missed = 0 or not early);
      if cardinality(ids) = most then
        update "${schema}".pgworker_limits l set place = ids[most], sure = one.sure where l.id = one.id;
      elsif not one.sure and early then
        update "${schema}".pgworker_limits l set place = null where l.id = one.id;
        note := 'waiting';
      elsif one.state = 'removing' and one.sure then
        perform "${schema}".pgworker_forget_limit(one.id);
        done := true;
      else
        update "${schema}".pgworker_limits l set
            place = null, passed = true, sure = one.sure, settled = one.sure,
            state = case when l.state = 'applying' then 'active' else l.state end
          where l.id = one.id
          returning l.state into state;
        done := one.sure;
      end if;
      if cardinality(ids) < most and note is null then
        perform pg_notify('pgworker:limits', 's'), pg_notify('pgworker:limits', 'e');
      end if;
    exception when lock_not_available then
      note := 'busy';
    end;
    return next;
    return;
  end loop;
  if left_over is not null then
    name := left_over.name;
    state := left_over.state;
    note := left_over.note;
    return next;
  elsif "${schema}".pgworker_limited_ids() <> "${schema}".pgworker_switched_limits() then
    -- Triggers that know of too many tasks cost a little, and nothing else.
    perform "${schema}".pgworker_switch_limits("${schema}".pgworker_limited_ids());
  end if;
end
$$;
comment on function "${schema}".pgworker_apply_limits(int) is
  'Goes one step on with a limit that was made, changed or deleted: parks its jobs or lets them go, at most so many in each step. Returns no '
  'row if there is nothing to do, or somebody does it. With the note busy or waiting it is to be called again in a moment, because others '
  'are in its way, with the note later in a second; without one at once.';

-- Who calls this has the lock of the gates, which is not kept while somebody has a change of limits open.
create or replace function "${schema}".pgworker_review_limits() returns bigint
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp as $$
declare
  reviewed bigint;
begin
  perform from "${schema}".pgworker_limit_state s where s.name = 'changes' for update skip locked;
  if not found then
    return 0;
  end if;
  update "${schema}".pgworker_limits l set unaware = null, looked_at = null, place = null, passed = false, sure = false, settled = false
    where l.state = 'active' and l.settled and l.place is null;
  get diagnostics reviewed = row_count;
  if reviewed > 0 then
    perform "${schema}".pgworker_note_limited(array(select distinct n.name from "${schema}".pgworker_limits l, unnest(l.task_identifiers) n(name)));
    perform pg_notify('pgworker:limits', 's');
  end if;
  return reviewed;
end
$$;
comment on function "${schema}".pgworker_review_limits() is
  'Has pgworker_apply_limits look at all jobs once more: some may have been written while triggers were switched off, or did not know their task.';

-- All together or, where that is refused, because of a trigger of somebody's for instance, each half by itself: a job that cannot be changed
-- keeps no other in a lane that is none any more.
create or replace function "${schema}".pgworker_show_what_lets(parked tid[], out jobs bigint, out earliest timestamptz)
language plpgsql volatile
set search_path = pg_catalog, pg_temp as $$
declare
  -- Where there is no limit there is no trigger.
  mark constant timestamptz := case when exists (select from "${schema}".pgworker_limits) then '9999-01-01 00:00:00+00'::timestamptz end;
  total constant int := cardinality(parked);
  middle constant int := (total + 1) / 2;
  half record;
  context text;
begin
  begin
    with shown as (
      update "${schema}"._private_jobs j set locked_at = mark, locked_by = case when mark is not null then '' end
      where j.ctid = any(parked)
      returning j.is_available, j.run_at)
    select count(*), min(s.run_at) into jobs, earliest from shown s where s.is_available;
    return;
  exception when others or assert_failure then
    get stacked diagnostics context = pg_exception_context;
    if not "${schema}".pgworker_about_row(sqlstate, context) then raise; end if;
    if total = 1 then
      raise warning 'A job whose limits have changed cannot be made to wait for others: %', sqlerrm;
      jobs := 0;
      return;
    end if;
  end;
  jobs := 0;
  for at in 1..total by middle loop
    select * into half from "${schema}".pgworker_show_what_lets(parked[at:at + middle - 1]);
    jobs := jobs + half.jobs;
    earliest := least(earliest, half.earliest);
  end loop;
end
$$;
comment on function "${schema}".pgworker_show_what_lets(tid[]) is
  'Shows parked jobs to the trigger, which finds their lanes anew or lets them go; returns how many it has let go and when the first of them was due.';

-- The lane of a job is known when it is parked. What it consists of a gate learns from the first job in it. Jobs of which the lane is not what it would
-- be today, as after a restore, are shown to the trigger, unless somebody goes through all jobs of the task.
create or replace function "${schema}".pgworker_make_lanes(names text[]) returns void
language plpgsql volatile
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off
set enable_mergejoin = off set jit = off
set search_path = pg_catalog, pg_temp as $$
declare
  first record;
  made bigint[];
  freed record;
begin
  for first in
    select n.name, j.task_id, j.job_queue_id, j.priority, l.lane, l.limit_ids, l.bucket_values
    from (
      select distinct g.name from unnest(names) g(name)
      where not exists (
        select from "${schema}".pgworker_limit_lanes k where k.lane >= g.name collate "C" and k.lane <= g.name collate "C"
        order by k.lane desc limit 1)) n
    cross join lateral (
      select h.task_id, h.job_queue_id, h.payload, h.flags, h.priority from "${schema}"._private_jobs h
      where h.locked_at = '9999-01-01 00:00:00+00' and h.locked_by collate "C" = 'pgworker-limit:' || n.name
      order by h.locked_by collate "C", h.priority, h.run_at, h.id limit 1) j
    cross join lateral "${schema}".pgworker_lane(j.task_id, j.job_queue_id, j.payload, j.flags, "${schema}".pgworker_lane_values(n.name)) l
  loop
    if first.lane = first.name then
      made := "${schema}".pgworker_buckets(first.limit_ids, first.bucket_values);
      insert into "${schema}".pgworker_limit_lanes (lane, task_id, queue_id, buckets, used_at, level)
        values (first.name, first.task_id, first.job_queue_id, made, clock_timestamp(), first.priority) on conflict do nothing;
      insert into "${schema}".pgworker_limit_turns (bucket_id, lane)
        select b.id, first.name from unnest(made) b(id) on conflict do nothing;
    elsif not exists (
      select from "${schema}".pgworker_limited_tasks m join "${schema}".pgworker_limits l on l.id = any(m.limit_ids)
      where m.task_id = first.task_id and l.state = 'applying')
    then
      perform set_config('pgworker.limits', '', true);
      select * into freed from "${schema}".pgworker_show_what_lets(array(
        select h.ctid from "${schema}"._private_jobs h
        where h.locked_at = '9999-01-01 00:00:00+00' and h.locked_by collate "C" = 'pgworker-limit:' || first.name
        order by h.locked_by collate "C", h.priority, h.run_at, h.id limit 500 for update skip locked));
      perform "${schema}".pgworker_wake(freed.jobs, freed.earliest);
      perform set_config('pgworker.limits', 'admit', true);
    end if;
  end loop;
end
$$;
comment on function "${schema}".pgworker_make_lanes(text[]) is
  'Makes those of the lanes that do not exist and have jobs; for whoever has the lock of the gates.';

-- Which holders have ended their jobs tell: all of them, or, of a bucket with many, so many that no more than a twentieth of the time is spent
-- on it, the first and some others: jobs end about in the order in which they were admitted. Those that have not been looked at count. No more
-- are admitted ahead of those who start them than they can start until the next look.
--
-- Tokens of a rate grow as long as they and the jobs that were admitted but have not started are fewer than the burst. So no more jobs than burst
-- plus what the rate allows start in any stretch of time, whenever it is that workers start them. Between two looks none was admitted,
-- so the number at the first look bounds it, which may leave a little out but never adds. While nothing grows because so many have not started, the
-- next look comes the sooner the faster the rate is, for the time until it is lost. A clock that is set back adds nothing either, and the
-- time from then on counts.
create or replace function "${schema}".pgworker_rooms(
  buckets bigint[], moment timestamptz,
  out ids bigint[], out rooms int[], out pauses float8[], out ended_buckets bigint[], out ended_jobs bigint[]
)
language plpgsql volatile
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off
set enable_mergejoin = off set jit = off
set search_path = pg_catalog, pg_temp as $$
declare
  piece constant int := 250;
  most_ahead constant int := 5000;
begin
  with wanted as materialized (
    select b.id, b.tid, b.tokens, b.filled_at, b.unstarted, b.holders, b.looked_at, cardinality(b.holders) as held,
      l.state, l.max_running, l.burst, l.max_starts / extract(epoch from l.period)::float8 as rate,
      cardinality(b.holders) <= 2 * piece or coalesce(
        b.looked_at not between moment - cardinality(b.holders) * interval '20 microseconds' and moment, true) as whole
    from unnest(pgworker_rooms.buckets) g(id)
    cross join lateral (
      select k.*, k.ctid as tid from "${schema}".pgworker_limit_buckets k where k.id >= g.id and k.id <= g.id order by k.id desc limit 1) b
    join "${schema}".pgworker_limits l on l.id = b.limit_id),
  counted as materialized (
    select w.*, c.ended, w.held - cardinality(c.ended) as left_over,
      case when w.whole then c.available
        when w.max_running is null then least(w.held - cardinality(c.ended), w.unstarted)
        else w.unstarted end as waiting
    from wanted w
    cross join lateral (select (piece + 1 + floor(random() * (w.held - piece)))::int as first) r
    cross join lateral (
      select coalesce(array_agg(h.job_id) filter (where j.is_available is distinct from true), '{}') as ended,
        (count(*) filter (where j.is_available))::int as available
      from unnest(
        case when w.whole then w.holders else w.holders[1:piece] || w.holders[r.first:r.first + piece - 1] end) h(job_id)
      left join lateral (
        select k.is_available, k.locked_at from "${schema}"._private_jobs k where k.id = h.job_id offset 0) j on true
      where j.is_available or w.max_running is null or j.locked_at is null or j.locked_at = '9999-01-01 00:00:00+00') c),
  rates as materialized (
    select c.id, c.tid, c.rate, c.burst, c.waiting, c.whole and c.held > 2 * piece as looked,
      least(greatest(0, c.burst - c.waiting), coalesce(greatest(least(c.tokens, c.burst), least(
        c.tokens + c.rate * greatest(0, extract(epoch from moment - c.filled_at)::float8), c.burst - c.unstarted)), c.burst)) as tokens
    from counted c
    where c.max_running is null and c.state = 'active'),
  filled as (
    update "${schema}".pgworker_limit_buckets b
      set tokens = r.tokens, filled_at = moment, unstarted = r.waiting,
        looked_at = case when r.looked then moment else b.looked_at end
      from rates r
      where b.ctid = r.tid),
  looked as (
    update "${schema}".pgworker_limit_buckets b set looked_at = moment, unstarted = c.waiting
      from counted c
      where b.ctid = c.tid and c.max_running is not null and c.whole and c.held > 2 * piece),
  known as (
    select c.id, case c.state
        when 'removing' then 1000000000
        when 'applying' then 0
        else least(c.max_running - c.left_over, most_ahead - c.waiting)
      end as room,
      case when c.state = 'active' and (c.held > 2 * piece or c.waiting >= most_ahead) then greatest(0.05, c.held * 20e-6) end as pause
    from counted c where c.max_running is not null or c.state <> 'active'
    union all
    select r.id, r.room, case
        when r.room + r.waiting < r.burst then greatest(0.001, r.next)
        when r.room > 0 then greatest(0.001, least(r.next, greatest(0.005, 0.02 / r.rate)))
        else greatest(0.02, least(r.next, 0.05 / r.rate))
      end
    from (
      select t.*, (1 - (t.tokens - floor(t.tokens))) / t.rate as next, greatest(0, floor(t.tokens + 1e-6))::int as room from rates t) r)
  select k.ids, k.rooms, k.pauses, e.ended_buckets, e.ended_jobs into ids, rooms, pauses, ended_buckets, ended_jobs
    from (select array_agg(k.id) as ids, array_agg(k.room) as rooms, array_agg(k.pause) as pauses from known k) k,
      (select array_agg(c.id) as ended_buckets, array_agg(o.job_id) as ended_jobs
        from counted c cross join lateral unnest(c.ended) o(job_id)) e;
end
$$;
comment on function "${schema}".pgworker_rooms(bigint[], timestamptz) is
  'How many jobs each of the buckets has room for at this moment, and in how many seconds to look again at those that have none; and which of its '
  'holders have ended. For whoever has the lock of the gates.';

create or replace function "${schema}".pgworker_served() returns text[]
language sql stable
set search_path = pg_catalog, pg_temp as $$
  select coalesce(array_agg(distinct t.name), '{}')
  from "${schema}"._private_workers w
  cross join lateral jsonb_array_elements_text(
    case when jsonb_typeof(w.metadata -> 'tasks') = 'array' then w.metadata -> 'tasks' else '[]' end) t(name)
  where w.last_heartbeat_at > now() - interval '5 minutes'
$$;
comment on function "${schema}".pgworker_served() is 'The tasks that registered workers say they run.';

-- Nothing lies below the first jobs, which the caller has seen: what finished jobs left in the index is not read again.
create or replace function "${schema}".pgworker_admit_jobs(
  names text[], quotas int[], levels int[], first_run_ats timestamptz[], first_ids bigint[], moment timestamptz,
  out ids bigint[], out places int[], out run_ats timestamptz[], out priorities int[], out queued bigint
)
language plpgsql volatile
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off
set enable_hashjoin = off set enable_mergejoin = off set jit = off
set search_path = pg_catalog, pg_temp as $$
begin
  with picked as materialized (
    select c.place, c.name, f.tid, f.priority, f.run_at, f.job_queue_id
    from unnest(names, quotas, levels, first_run_ats, first_ids) with ordinality c(name, quota, level, run_at, id, place)
    cross join lateral (
      with recursive level(p) as (
        select c.level
        union all
        select (
          select j.priority from "${schema}"._private_jobs j
          where j.locked_at = '9999-01-01 00:00:00+00' and j.locked_by collate "C" = 'pgworker-limit:' || c.name and j.priority > l.p
          order by j.locked_by collate "C", j.priority, j.run_at, j.id limit 1)
        from level l where l.p is not null)
      select f.* from level l
      cross join lateral (
        select j.ctid as tid, j.priority, j.run_at, j.job_queue_id from "${schema}"._private_jobs j
        where j.locked_at = '9999-01-01 00:00:00+00' and j.locked_by collate "C" = 'pgworker-limit:' || c.name and j.priority = l.p
          and j.run_at <= moment
          and (j.run_at, j.id) >= (case when l.p = c.level then c.run_at else '-infinity' end, case when l.p = c.level then c.id else 0 end)
        order by j.run_at, j.id limit c.quota for update skip locked) f
      limit c.quota) f
    where c.quota > 0),
  freed as (
    update "${schema}"._private_jobs j set locked_at = null, locked_by = null
    from picked f
    where j.ctid = f.tid
    returning j.id, f.place, f.run_at, f.priority, f.job_queue_id)
  select array_agg(f.id), array_agg(f.place), array_agg(f.run_at), array_agg(f.priority), count(f.job_queue_id)
    into ids, places, run_ats, priorities, queued
    from freed f;
end
$$;
comment on function "${schema}".pgworker_admit_jobs(text[], int[], int[], timestamptz[], bigint[], timestamptz) is
  'Admits at most so many of the first due jobs of each lane, which begins with a job of this priority, time and id: takes their locks off. Returns the place of the lane of each.';

-- The lanes that a gate is to look at: those it was told, and those that wait for the same buckets, from the one on that had the last turn. Left
-- out are empty ones, those of which nobody here runs the task, and those of limits that do not hold yet. A queue is offered one job at a
-- time, and only while it is free, so that no permit waits for a queue.
create or replace function "${schema}".pgworker_lanes_in_turn(
  task_ids int[], served text[], names text[], open_buckets bigint[], closed_buckets bigint[],
  out lanes text[], out queue_ids int[], out levels int[], out first_run_ats timestamptz[], out first_ids bigint[], out busy_lanes text[],
  out empty_lanes text[],
  out places int[], out bucket_ids bigint[], out shares int[]
)
language plpgsql volatile
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off
set enable_mergejoin = off set jit = off
set search_path = pg_catalog, pg_temp as $$
declare
  most_of_bucket constant int := 100;
begin
  with waiting as (
    select g.name, null::bigint as turn, g.place from unnest(names) with ordinality g(name, place)
    union all
    select t.lane, t.turn, null
    from unnest(open_buckets) g(id)
    cross join lateral (
      select b.turn from "${schema}".pgworker_limit_buckets b where b.id >= g.id and b.id <= g.id order by b.id desc limit 1) b
    cross join lateral (
      select t.lane, row_number() over () as turn from (
        (select k.lane from "${schema}".pgworker_limit_turns k
          where k.bucket_id = g.id and k.lane > coalesce(b.turn, '') order by k.bucket_id, k.lane limit most_of_bucket)
        union all
        (select k.lane from "${schema}".pgworker_limit_turns k
          where k.bucket_id = g.id and k.lane <= b.turn order by k.bucket_id, k.lane limit most_of_bucket)
        limit most_of_bucket) t) t),
  named as (
    select w.name, min(w.place) as place, min(w.turn) as turn from waiting w group by w.name),
  found as materialized (
    select n.name, n.place, n.turn, k.queue_id, k.buckets, f.priority, f.run_at, f.id,
      row_number() over (partition by k.queue_id order by f.priority, n.turn nulls last, n.place) as of_queue
    from named n
    cross join lateral (
      select l.* from "${schema}".pgworker_limit_lanes l
      where l.lane >= n.name collate "C" and l.lane <= n.name collate "C" order by l.lane desc limit 1) k
    cross join lateral (
      select t.identifier from "${schema}"._private_tasks t where t.id = k.task_id offset 0) t
    left join lateral (
      select j.priority, j.run_at, j.id from "${schema}"._private_jobs j
      where j.locked_at = '9999-01-01 00:00:00+00' and j.locked_by collate "C" = 'pgworker-limit:' || n.name
        and (j.priority, j.run_at, j.id) >= (coalesce(k.floor_priority, -32768), coalesce(k.floor_run_at, '-infinity'), coalesce(k.floor_id, 0))
      order by j.locked_by collate "C", j.priority, j.run_at, j.id limit 1) f on true
    where not k.buckets && closed_buckets
      and (k.task_id = any(task_ids) or t.identifier <> all(served))
      and not exists (
        select from "${schema}".pgworker_limited_tasks m
        join "${schema}".pgworker_limits l on l.id = any(m.limit_ids) and l.state = 'applying'
        where m.task_id = k.task_id)),
  free as materialized (
    select f.*, f.queue_id is null or f.of_queue = 1 and (
        select q.locked_at is null from "${schema}"._private_job_queues q
        where q.id >= f.queue_id and q.id <= f.queue_id order by q.id desc limit 1)
      and not exists (
        select from (
          select j.task_id from "${schema}"._private_jobs j
          where j.is_available and j.job_queue_id is not null and j.job_queue_id = f.queue_id
          order by j.priority, j.run_at, j.id limit 20) a
        where a.task_id in (select m.task_id from "${schema}".pgworker_limited_tasks m)) as free
    from found f
    where f.id is not null),
  ordered as materialized (
    select f.*, row_number() over (order by f.priority, f.turn nulls last, f.place) as number from free f where f.free)
  select (select array_agg(o.name order by o.number) from ordered o),
      (select array_agg(o.queue_id order by o.number) from ordered o),
      (select array_agg(o.priority::int order by o.number) from ordered o),
      (select array_agg(o.run_at order by o.number) from ordered o),
      (select array_agg(o.id order by o.number) from ordered o),
      (select array_agg(f.name) from free f where not f.free),
      (select array_agg(f.name) from found f where f.id is null),
      array_agg(e.number order by e.number), array_agg(e.bucket order by e.number), array_agg(e.share order by e.number)
    into lanes, queue_ids, levels, first_run_ats, first_ids, busy_lanes, empty_lanes, places, bucket_ids, shares
    from (
      select o.number, u.bucket, row_number() over (partition by u.bucket, o.priority order by o.number desc) as share
      from ordered o cross join lateral unnest(o.buckets) u(bucket)) e;
end
$$;
comment on function "${schema}".pgworker_lanes_in_turn(int[], text[], text[], bigint[], bigint[]) is
  'The given lanes and others of the open buckets that have jobs, without those of closed ones, the best priority and the longest wait '
  'for a turn first, each with the priority, time and id of its first job; and which buckets they need, each with the number of lanes of this priority from this one on that need it.';

create or replace function "${schema}".pgworker_next_parked(names text[], moment timestamptz, out lanes text[], out waits float8[])
language plpgsql volatile
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off
set enable_hashjoin = off set enable_mergejoin = off set jit = off
set search_path = pg_catalog, pg_temp as $$
begin
  select array_agg(n.name), array_agg(extract(epoch from n.run_at - moment)::float8) into lanes, waits
    from (
      select g.name, (
          with recursive level(p) as (
            (select j.priority from "${schema}"._private_jobs j
              where j.locked_at = '9999-01-01 00:00:00+00' and j.locked_by collate "C" = 'pgworker-limit:' || g.name
                and (j.priority, j.run_at, j.id) >= (coalesce(k.floor_priority, -32768), coalesce(k.floor_run_at, '-infinity'), coalesce(k.floor_id, 0))
              order by j.locked_by collate "C", j.priority, j.run_at, j.id limit 1)
            union all
            select (
              select j.priority from "${schema}"._private_jobs j
              where j.locked_at = '9999-01-01 00:00:00+00' and j.locked_by collate "C" = 'pgworker-limit:' || g.name and j.priority > l.p
              order by j.locked_by collate "C", j.priority, j.run_at, j.id limit 1)
            from level l where l.p is not null)
          select min((
            select j.run_at from "${schema}"._private_jobs j
            where j.locked_at = '9999-01-01 00:00:00+00' and j.locked_by collate "C" = 'pgworker-limit:' || g.name and j.priority = l.p
              and j.run_at > moment
            order by j.run_at, j.id limit 1))
          from level l where l.p is not null) as run_at
      from unnest(names) g(name)
      cross join lateral (
        select l.floor_priority, l.floor_run_at, l.floor_id from "${schema}".pgworker_limit_lanes l
        where l.lane >= g.name collate "C" and l.lane <= g.name collate "C" order by l.lane desc limit 1) k) n
    where isfinite(n.run_at);
end
$$;
comment on function "${schema}".pgworker_next_parked(text[], timestamptz) is
  'Those of the lanes in which a job falls due after this moment, and in how many seconds.';

-- Lanes that have a floor are taken to have jobs, and what lies between them is looked through.
create or replace function "${schema}".pgworker_parked_lanes(after text, most int) returns text[]
language plpgsql volatile
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off
set enable_hashjoin = off set enable_mergejoin = off set jit = off
set search_path = pg_catalog, pg_temp as $$
declare
  prefix constant text := 'pgworker-limit:';
  beginning text := prefix || coalesce(after, '');
  ending text;
  names text[] := '{}';
begin
  loop
    select prefix || k.lane into ending from "${schema}".pgworker_limit_lanes k
      where k.floor_until is not null and k.lane > substr(beginning, length(prefix) + 1) collate "C" order by k.lane limit 1;
    names := names || array(
      with recursive step(holder, number) as (
        (select j.locked_by collate "C", 1 from "${schema}"._private_jobs j
          where j.locked_at = '9999-01-01 00:00:00+00' and j.locked_by collate "C" > beginning
            and j.locked_by collate "C" < coalesce(ending, 'pgworker-limit;')
          order by j.locked_by collate "C", j.priority, j.run_at, j.id limit 1)
        union all
        select (
            select j.locked_by collate "C" from "${schema}"._private_jobs j
            where j.locked_at = '9999-01-01 00:00:00+00' and j.locked_by collate "C" > s.holder
              and j.locked_by collate "C" < coalesce(ending, 'pgworker-limit;')
            order by j.locked_by collate "C", j.priority, j.run_at, j.id limit 1),
          s.number + 1
        from step s where s.holder is not null and s.number < most - cardinality(names))
      select substr(s.holder, length(prefix) + 1) from step s where s.holder is not null);
    exit when ending is null or cardinality(names) >= most;
    names := names || substr(ending, length(prefix) + 1);
    exit when cardinality(names) >= most;
    beginning := ending;
  end loop;
  return names;
end
$$;
comment on function "${schema}".pgworker_parked_lanes(text, int) is 'The next lanes after the given one that have jobs.';

-- Anybody may tell anything: what is no place of a lane does nothing. No place is after the one that was told last.
create or replace function "${schema}".pgworker_lower_floors(told text[]) returns void
language plpgsql volatile
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off
set enable_mergejoin = off set jit = off
set search_path = pg_catalog, pg_temp as $$
begin
  update "${schema}".pgworker_limit_lanes k set floor_priority = p.priority, floor_run_at = p.run_at, floor_id = 0
    from (
      select distinct on (g.parts[1]) g.parts[1] as lane, g.parts[2]::int as priority,
        case when g.parts[3] like '%Infinity' then replace(g.parts[3], 'Infinity', 'infinity')::timestamptz
          else to_timestamp(least(greatest(g.parts[3]::float8 / 10, -2e11), 9e12)) end as run_at
      from (select string_to_array(t.place, ' ') as parts from unnest(told) t(place)
        where t.place ~ '^[^ ]+ -?[0-9]{1,5} (-?[0-9]{1,15}|-?Infinity)$' offset 0) g
      order by 1, 2, 3) p
    where k.lane = p.lane collate "C" and k.floor_until is not null and (p.priority, p.run_at, 0) < (k.floor_priority, k.floor_run_at, k.floor_id);
end
$$;
comment on function "${schema}".pgworker_lower_floors(text[]) is 'Lowers the floors of lanes to the places that were told.';

create or replace function "${schema}".pgworker_raise_floors(
  lanes text[], levels int[], run_ats timestamptz[], ids bigint[], empty_lanes text[]
) returns void
language plpgsql volatile
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off
set enable_mergejoin = off set jit = off
set search_path = pg_catalog, pg_temp as $$
begin
  update "${schema}".pgworker_limit_lanes k
    set floor_priority = f.level, floor_run_at = f.run_at, floor_id = f.id, floor_until = coalesce(k.floor_until, clock_timestamp() + interval '1 second')
    from (
      select u.lane collate "C", u.level, least(u.run_at, clock_timestamp() - interval '2 seconds'),
          case when u.run_at <= clock_timestamp() - interval '2 seconds' then u.id else 0 end
        from unnest(lanes, levels, run_ats, ids) u(lane, level, run_at, id)
      union all
      select l.lane, coalesce(l.floor_priority, l.level), clock_timestamp() - interval '2 seconds', 0
      from unnest(empty_lanes) e(lane) join "${schema}".pgworker_limit_lanes l on l.lane = e.lane collate "C"
      where l.floor_run_at is null or l.floor_run_at < clock_timestamp() - interval '30 seconds') f(lane, level, run_at, id)
    where k.lane = f.lane
      and (f.level, f.run_at, f.id) > (coalesce(k.floor_priority, -32768), coalesce(k.floor_run_at, '-infinity'), coalesce(k.floor_id, 0));
end
$$;
comment on function "${schema}".pgworker_raise_floors(text[], int[], timestamptz[], bigint[], text[]) is
  'Sets the floors of lanes to their first jobs, or to what has been due for two seconds where these are later or there is none; for whoever has the lock of the gates.';

-- Who looks holds up no gate, and looks as seldom as it takes long. Times more than an hour ahead were written before the clock was set back. Floors
-- that are higher than a job are lowered, and those that would not be missed go.
create or replace function "${schema}".pgworker_check_floors() returns void
language plpgsql volatile
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off
set enable_mergejoin = off set jit = off set lock_timeout = '1s'
set search_path = pg_catalog, pg_temp as $$
declare
  share constant int := 50;
  one record;
  first record;
  began timestamptz;
  seconds float8[] := '{}';
  lanes text[] := '{}';
  found_levels int[] := '{}';
  found_run_ats timestamptz[] := '{}';
  found_ids bigint[] := '{}';
begin
  if not pg_try_advisory_xact_lock(hashtextextended('pgworker_limit_floors ${schema}', 0)) then
    return;
  end if;
  for one in
    select k.lane, k.floor_priority, k.floor_run_at, k.floor_id from "${schema}".pgworker_limit_lanes k
    where k.floor_until not between clock_timestamp() and clock_timestamp() + interval '1 hour' order by k.floor_until limit 200
  loop
    began := clock_timestamp();
    select j.priority, j.run_at, j.id into first from "${schema}"._private_jobs j
      where j.locked_at = '9999-01-01 00:00:00+00' and j.locked_by collate "C" = 'pgworker-limit:' || one.lane
        and (j.priority, j.run_at, j.id) < (one.floor_priority, one.floor_run_at, one.floor_id)
      order by j.locked_by collate "C", j.priority, j.run_at, j.id limit 1;
    seconds := seconds || extract(epoch from clock_timestamp() - began)::float8;
    lanes := lanes || one.lane;
    found_levels := found_levels || first.priority::int;
    found_run_ats := found_run_ats || first.run_at;
    found_ids := found_ids || first.id;
    exit when (select sum(t.s) from unnest(seconds) t(s)) > 0.5;
  end loop;
  if lanes = '{}' then
    return;
  end if;
  perform pg_advisory_xact_lock(hashtextextended('pgworker_limits ${schema}', 0));
  update "${schema}".pgworker_limit_lanes k set
      floor_priority = case when f.took <= 0.001 then null when f.below then f.level else k.floor_priority end,
      floor_run_at = case when f.took <= 0.001 then null when f.below then f.run_at else k.floor_run_at end,
      floor_id = case when f.took <= 0.001 then null when f.below then f.id else k.floor_id end,
      floor_until = case when f.took > 0.001 then clock_timestamp() + greatest(1, share * f.took) * interval '1 second' end
    from (
      select l.ctid as tid, u.*, coalesce((u.level, u.run_at, u.id) < (l.floor_priority, l.floor_run_at, l.floor_id), false) as below
      from unnest(lanes, seconds, found_levels, found_run_ats, found_ids) u(lane, took, level, run_at, id)
      cross join lateral (select m.*, m.ctid from "${schema}".pgworker_limit_lanes m where m.lane = u.lane collate "C" offset 0) l) f
    where k.ctid = f.tid;
  perform "${schema}".pgworker_tell_limits('l', f.lane) from unnest(lanes, found_levels) f(lane, level) where f.level is not null;
exception when lock_not_available then
  return;
end
$$;
comment on function "${schema}".pgworker_check_floors() is 'Looks for jobs below the floors of lanes.';

-- All together or, where that is refused, because of a trigger of somebody's for instance, each half by itself: a job that cannot be changed
-- holds up its lane only.
create or replace function "${schema}".pgworker_admit_what_lets(
  names text[], quotas int[], levels int[], first_run_ats timestamptz[], first_ids bigint[], moment timestamptz,
  out ids bigint[], out places int[], out run_ats timestamptz[], out priorities int[], out queued bigint
)
language plpgsql volatile
set search_path = pg_catalog, pg_temp as $$
declare
  total constant int := cardinality(names);
  middle constant int := (total + 1) / 2;
  half record;
  context text;
begin
  begin
    select * into ids, places, run_ats, priorities, queued from "${schema}".pgworker_admit_jobs(
      names, quotas, levels, first_run_ats, first_ids, moment);
    return;
  exception when others or assert_failure then
    get stacked diagnostics context = pg_exception_context;
    if not "${schema}".pgworker_about_row(sqlstate, context) then raise; end if;
    if total = 1 then
      raise warning 'A job that waits for a limit in lane % cannot be admitted: %', names[1], sqlerrm;
      return;
    end if;
  end;
  for at in 1..total by middle loop
    select * into half from "${schema}".pgworker_admit_what_lets(
      names[at:at + middle - 1], quotas[at:at + middle - 1], levels[at:at + middle - 1], first_run_ats[at:at + middle - 1],
      first_ids[at:at + middle - 1], moment);
    places := places || array(select p.place + at - 1 from unnest(half.places) with ordinality p(place, number) order by p.number);
    ids := ids || half.ids;
    run_ats := run_ats || half.run_ats;
    priorities := priorities || half.priorities;
    queued := coalesce(queued, 0) + coalesce(half.queued, 0);
  end loop;
end
$$;
comment on function "${schema}".pgworker_admit_what_lets(text[], int[], int[], timestamptz[], bigint[], timestamptz) is
  'As pgworker_admit_jobs, but for lanes of which a job does not let itself be changed.';

-- What each lane may take is decided without looking at its jobs: of the room of each of its buckets a fair share. What a lane leaves goes to
-- those that took all of theirs, in another round.
create or replace function "${schema}".pgworker_admit(
  task_ids int[], lanes text[], buckets bigint[], everything boolean, after text, most int,
  out admitted bigint, out next_after text, out waiting_lanes text[], out waits float8[]
)
language plpgsql volatile security definer
set lock_timeout = '1s' set jit = off
set search_path = pg_catalog, pg_temp as $$
declare
  most_lanes constant int := 500;
  most_told constant int := 300;
  most_unstarted constant int := 1000000000;
  moment timestamptz;
  names text[] := array(select distinct split_part(l.told, ' ', 1) from unnest(lanes) l(told));
  began timestamptz;
  room record;
  more record;
  ids bigint[];
  rooms int[];
  pauses float8[];
  ended_buckets bigint[];
  ended_jobs bigint[];
  admitted_jobs bigint[] := '{}';
  admitted_lanes int[] := '{}';
  turn record;
  total int;
  firsts int[];
  lasts int[];
  entry_rooms int[];
  quotas int[];
  taken int[];
  given int[];
  dry boolean[];
  got record;
  give int;
  earliest timestamptz;
  levels text[] := '{}';
  queued bigint := 0;
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    raise exception 'Jobs are admitted at the isolation level read committed only' using errcode = '25001';
  elsif most is null or most not between 1 and 100000 then
    perform "${schema}".pgworker_wrong('most', 'must be between 1 and 100000', most::text);
  end if;
  admitted := 0;
  perform pg_advisory_xact_lock(hashtextextended('pgworker_limits ${schema}', 0));
  perform set_config('pgworker.limits', 'admit', true);
  -- An admission that a crash of the server undoes has started nothing: the claims that follow it are not on the disk either.
  perform set_config('synchronous_commit', 'off', true);
  moment := clock_timestamp();
  total := cardinality(names);
  if everything then
    names := names || "${schema}".pgworker_parked_lanes(after, most_lanes);
    if cardinality(names) >= total + most_lanes then
      next_after := names[cardinality(names)];
    end if;
  end if;
  perform "${schema}".pgworker_lower_floors(lanes);
  perform "${schema}".pgworker_make_lanes(names);
  select * into room from "${schema}".pgworker_rooms(array(
    select g.id from unnest(pgworker_admit.buckets) g(id)
    union
    select unnest((
      select k.buckets from "${schema}".pgworker_limit_lanes k
      where k.lane >= n.name collate "C" and k.lane <= n.name collate "C" order by k.lane desc limit 1)) from unnest(names) n(name)), moment);
  ids := coalesce(room.ids, '{}');
  rooms := room.rooms;
  pauses := room.pauses;
  ended_buckets := coalesce(room.ended_buckets, '{}');
  ended_jobs := coalesce(room.ended_jobs, '{}');
  -- Where a snapshot is held, reading past dead entries takes as long each time.
  for look in 1..3 loop
    began := clock_timestamp();
    select * into turn from "${schema}".pgworker_lanes_in_turn(
      task_ids,
      case when exists (
          select from "${schema}".pgworker_limited_tasks m
          join "${schema}"._private_tasks t on t.id = m.task_id and t.id <> all(task_ids))
        then "${schema}".pgworker_served()
      end,
      names,
      array(select r.id from unnest(ids, rooms) r(id, room) where r.room > 0),
      array(select r.id from unnest(ids, rooms) r(id, room) where r.room <= 0));
    total := coalesce(cardinality(turn.lanes), 0);
    exit when clock_timestamp() - began
      < interval '3 milliseconds' + (total + coalesce(cardinality(turn.empty_lanes), 0)) * interval '50 microseconds';
    if look = 3 then
      perform "${schema}".pgworker_raise_floors(turn.lanes, turn.levels, turn.first_run_ats, turn.first_ids, turn.empty_lanes);
    end if;
  end loop;

  if total > 0 then
    if not turn.bucket_ids <@ ids then
      select * into more from "${schema}".pgworker_rooms(
        array(select distinct e.id from unnest(turn.bucket_ids) e(id) where e.id <> all(ids)), moment);
      ids := ids || more.ids;
      rooms := rooms || more.rooms;
      pauses := pauses || more.pauses;
      ended_buckets := ended_buckets || more.ended_buckets;
      ended_jobs := ended_jobs || more.ended_jobs;
    end if;
    entry_rooms := array(
      select r.number from unnest(turn.bucket_ids) with ordinality e(id, place)
      left join unnest(ids) with ordinality r(id, number) on r.id = e.id
      order by e.place);
    select array_agg(e.first order by e.lane), array_agg(e.last order by e.lane) into firsts, lasts
      from (
        select p.lane, min(p.place) as first, max(p.place) as last
        from unnest(turn.places) with ordinality p(lane, place) group by p.lane) e;
    given := array_fill(0, array[total]);
    dry := array_fill(false, array[total]);
    for round in 1..5 loop
      quotas := array_fill(0, array[total]);
      for lane in 1..total loop
        exit when admitted >= most;
        continue when dry[lane];
        give := most - admitted;
        for entry in firsts[lane]..lasts[lane] loop
          give := least(give, coalesce(
            case when round = 1 then (rooms[entry_rooms[entry]] + turn.shares[entry] - 1) / turn.shares[entry]
              else rooms[entry_rooms[entry]] end, 0));
        end loop;
        if turn.queue_ids[lane] is not null then
          give := least(give, 1 - given[lane]);
        end if;
        continue when give <= 0;
        quotas[lane] := give;
        admitted := admitted + give;
        for entry in firsts[lane]..lasts[lane] loop
          rooms[entry_rooms[entry]] := rooms[entry_rooms[entry]] - give;
        end loop;
      end loop;
      exit when 0 = all(quotas);
      select * into got from "${schema}".pgworker_admit_what_lets(
        turn.lanes, quotas, turn.levels, turn.first_run_ats, turn.first_ids, moment);
      taken := array(
        select count(p.lane)::int from generate_series(1, total) l(lane) left join unnest(got.places) p(lane) on p.lane = l.lane
        group by l.lane order by l.lane);
      for lane in 1..total loop
        continue when quotas[lane] = 0;
        given[lane] := given[lane] + taken[lane];
        if taken[lane] < quotas[lane] then
          dry[lane] := true;
          give := quotas[lane] - taken[lane];
          admitted := admitted - give;
          for entry in firsts[lane]..lasts[lane] loop
            rooms[entry_rooms[entry]] := rooms[entry_rooms[entry]] + give;
          end loop;
        end if;
      end loop;
      if got.places is not null then
        earliest := least(earliest, (select min(r.run_at) from unnest(got.run_ats) r(run_at)));
        levels := array(select unnest(levels) union select p.level::text from unnest(got.priorities) p(level));
        queued := queued + got.queued;
        admitted_jobs := admitted_jobs || got.ids;
        admitted_lanes := admitted_lanes || got.places;
      end if;
    end loop;
  end if;
  perform set_config('pgworker.limits', '', true);
  if admitted > 0 or ended_jobs <> '{}' then
    perform "${schema}".pgworker_note_holders(a.buckets, a.jobs, ended_buckets, ended_jobs, moment)
      from (
        select coalesce(array_agg(e.id order by j.number), '{}') as buckets, coalesce(array_agg(j.id order by j.number), '{}') as jobs
        from unnest(admitted_jobs, admitted_lanes) with ordinality j(id, lane, number)
        join unnest(turn.bucket_ids, turn.places) e(id, lane) on e.lane = j.lane) a;
  end if;

  -- Where all lanes that were looked at wait for something else, others have their turn. Only a rate that is in effect takes tokens: a limit that is
  -- being removed may be made again, and one of concurrency made a rate, and neither owes anything then. What has not started counts for rates,
  -- and for others where not all holders are looked at.
  if admitted > 0 or total >= 100 then
    update "${schema}".pgworker_limit_buckets b set
        tokens = b.tokens - case when u.rated then u.jobs else 0 end,
        unstarted = case when u.rated or cardinality(b.holders) > 500 then least(b.unstarted + u.jobs, most_unstarted) else 0 end,
        turn = case when u.lanes > 1 then turn.lanes[coalesce(u.last_given, u.last_place)] else b.turn end
      from (
        select e.*, k.tid, exists (
            select from "${schema}".pgworker_limits l where l.id = k.limit_id and l.state = 'active' and l.max_starts is not null) as rated
        from (
          select e.id, sum(given[e.place])::int as jobs, count(*) as lanes, max(e.place) as last_place,
            max(e.place) filter (where given[e.place] > 0) as last_given
          from unnest(turn.bucket_ids, turn.places) e(id, place)
          group by e.id) e
        cross join lateral (
          select l.ctid as tid, l.limit_id from "${schema}".pgworker_limit_buckets l
          where l.id >= e.id and l.id <= e.id order by l.id desc limit 1) k) u
      where b.ctid = u.tid and (u.jobs > 0 and (u.lanes > 1 or u.rated or cardinality(b.holders) > 500) or u.lanes >= 100);
  end if;
  if admitted > 0 then
    update "${schema}".pgworker_limit_lanes k set used_at = moment
      where k.lane = any(array(select l.name collate "C" from unnest(turn.lanes, given) l(name, jobs) where l.jobs > 0))
        and k.used_at < moment - interval '30 seconds';
    -- They come to the places of their old times, before which there may be much that has ended.
    for begins in 1..cardinality(admitted_jobs) by most_told loop
      perform "${schema}".pgworker_wake(least(most_told, cardinality(admitted_jobs) - begins + 1), earliest,
        case when cardinality(levels) <= 16 then array_to_string(levels, ',') end, queued = admitted,
        job_ids => case when queued < admitted then array_to_string(admitted_jobs[begins:begins + most_told - 1], ',') end);
    end loop;
  end if;
  select array_agg(w.lane), array_agg(w.seconds) into waiting_lanes, waits
    from (
      select a.lane, min(a.seconds) as seconds
      from (
        select p.lane, p.seconds
        from "${schema}".pgworker_next_parked(
          array(select d.name from unnest(turn.lanes, dry) d(name, dry) where d.dry), moment) n
        cross join lateral unnest(n.lanes, n.waits) p(lane, seconds)
        union all
        select b.name, 0.1 from unnest(turn.busy_lanes) b(name)
        union all
        select n.name, max(r.pause)
        from (
          select unnest(names) as name
          union
          select d.name from unnest(turn.lanes, dry) d(name, dry) where not d.dry) n
        join "${schema}".pgworker_limit_lanes k on k.lane = n.name
        cross join lateral unnest(k.buckets) u(bucket)
        join unnest(ids, rooms, pauses) r(id, room, pause) on r.id = u.bucket
        where r.room <= 0 and r.pause is not null
        group by n.name) a
      group by a.lane) w;
end
$$;
comment on function "${schema}".pgworker_admit(int[], text[], bigint[], boolean, text, int) is
  'Gives permits to jobs that wait for limits, at most so many, and makes them available: of the given lanes, of those that wait for the given '
  'buckets, and if everything is asked for of the next lanes after a given one (next_after is null after the last). Only jobs of these tasks, and of those '
  'that no registered worker runs. Tells in how many seconds which lanes are to be looked at again. SQLSTATE 55P03: others are at it.';

-- All together or, where that is refused, because of a trigger of somebody's for instance, each half by itself: a job that cannot be changed
-- keeps its permit, and no other.
create or replace function "${schema}".pgworker_return_permits(job_ids bigint[]) returns void
language plpgsql volatile
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off
set enable_mergejoin = off set jit = off
set search_path = pg_catalog, pg_temp as $$
declare
  total constant int := cardinality(job_ids);
  middle constant int := (total + 1) / 2;
  context text;
begin
  begin
    with mine as materialized (
      select j.ctid as tid, j.id, j.task_id, j.job_queue_id, j.payload, j.flags from unnest(job_ids) g(id) join "${schema}"._private_jobs j on j.id = g.id and j.is_available
      for update of j skip locked),
    returned as (
      update "${schema}".pgworker_limit_buckets b set
          tokens = b.tokens + r.jobs, unstarted = greatest(0, b.unstarted - r.jobs), turn = r.lane
      from (
        select b.id, count(*)::int as jobs, max(l.lane) as lane
        from mine m
        cross join lateral "${schema}".pgworker_lane(m.task_id, m.job_queue_id, m.payload, m.flags) l
        cross join lateral unnest(l.limit_ids, l.bucket_values) u(limit_id, value)
        join "${schema}".pgworker_limit_buckets b on b.limit_id = u.limit_id and b.value = u.value collate "C"
        group by b.id) r
      where b.id = r.id)
    update "${schema}"._private_jobs j set locked_at = '9999-01-01 00:00:00+00', locked_by = ''
      where j.ctid = any(array(select m.tid from mine m));
    return;
  exception when others or assert_failure then
    get stacked diagnostics context = pg_exception_context;
    if not "${schema}".pgworker_about_row(sqlstate, context) then raise; end if;
    if total <= 1 then
      raise warning 'Job %, which nobody starts, cannot be made to give its permit to others: %', job_ids[1], sqlerrm;
      return;
    end if;
  end;
  perform "${schema}".pgworker_return_permits(job_ids[:middle]);
  perform "${schema}".pgworker_return_permits(job_ids[middle + 1:]);
end
$$;
comment on function "${schema}".pgworker_return_permits(bigint[]) is
  'Makes those of the given jobs that have been admitted and not been claimed wait again, and gives their tokens back; for whoever has the lock of the gates.';

-- What nobody has an eye on else: holders whose end nobody told; jobs that were admitted but that nobody starts, which wait again if others do; lanes
-- and buckets that have not been used for a while; limited tasks that the triggers do not know, as after a restore. A bounded piece of each, by turns.
create or replace function "${schema}".pgworker_check_permits() returns bigint
language plpgsql volatile security definer
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off
set enable_mergejoin = off set jit = off
set search_path = pg_catalog, pg_temp as $$
declare
  piece constant int := 200;
  last bigint;
  looked bigint[];
  room record;
  late bigint[];
  old text[];
  taken bigint := 0;
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    raise exception 'Limits are checked at the isolation level read committed only' using errcode = '25001';
  end if;
  perform "${schema}".pgworker_check_floors();
  if not pg_try_advisory_xact_lock(hashtextextended('pgworker_limits ${schema}', 0)) then
    return 0;
  end if;
  if not array(select k.task_id from "${schema}".pgworker_limited_tasks k join "${schema}"._private_tasks t on t.id = k.task_id)
      <@ "${schema}".pgworker_switched_limits()
    or exists (
      select from "${schema}".pgworker_limited_tasks k
      where not exists (select from "${schema}"._private_tasks t where t.id = k.task_id and t.identifier = k.task_identifier))
  then
    perform "${schema}".pgworker_review_limits();
  end if;
  select s.number into last from "${schema}".pgworker_limit_state s where s.name = 'checked' for update skip locked;
  if not found then
    return 0;
  end if;
  looked := array(select b.id from "${schema}".pgworker_limit_buckets b where b.id > last order by b.id limit piece);
  update "${schema}".pgworker_limit_state s set number = case when cardinality(looked) = piece then looked[piece] else -1 end
    where s.name = 'checked' and s.number <> case when cardinality(looked) = piece then looked[piece] else -1 end;
  select * into room from "${schema}".pgworker_rooms(looked, clock_timestamp());
  if room.ended_jobs <> '{}' then
    perform "${schema}".pgworker_note_holders('{}', '{}', room.ended_buckets, room.ended_jobs, clock_timestamp());
    taken := cardinality(room.ended_jobs);
    perform "${schema}".pgworker_tell_limits('b', e.id::text) from (select distinct u.id from unnest(room.ended_buckets) u(id)) e;
  end if;
  perform "${schema}".pgworker_forget_buckets(looked);

  -- Large payloads take long to read: of these one at a time, and only where jobs of another task wait.
  late := array(
    select distinct on (case when j.large then 0 else h.job_id end) h.job_id
    from unnest(looked) g(id)
    cross join lateral (
      select b.id, b.holders, b.since from "${schema}".pgworker_limit_buckets b where b.id >= g.id and b.id <= g.id order by b.id desc limit 1) b
    cross join lateral (
      select u.job_id from unnest(b.holders, b.since) u(job_id, since)
      where u.since < extract(epoch from clock_timestamp() - '2000-01-01 00:00:00+00'::timestamptz) - 5 limit 1000) h
    cross join lateral (
      select j.task_id, pg_column_size(j.payload) > 50000 as large,
        case when pg_column_size(j.payload) <= 50000 then (
          select l.lane from "${schema}".pgworker_lane(j.task_id, j.job_queue_id, j.payload, j.flags) l) end as lane
      from "${schema}"._private_jobs j where j.id = h.job_id and j.is_available offset 0) j
    where exists (
      select from (
        select t.lane from "${schema}".pgworker_limit_turns t where t.bucket_id = b.id order by t.bucket_id, t.lane limit 100) t
      cross join lateral (
        select l.floor_priority, l.floor_run_at, l.floor_id from "${schema}".pgworker_limit_lanes l
        where l.lane >= t.lane and l.lane <= t.lane order by l.lane desc limit 1) k
      where case when j.large then split_part(t.lane, ':', 1) <> j.task_id::text else t.lane <> j.lane end
        and exists (
          select from "${schema}"._private_jobs n
          where n.locked_at = '9999-01-01 00:00:00+00' and n.locked_by collate "C" = 'pgworker-limit:' || t.lane
            and (n.priority, n.run_at, n.id) >= (coalesce(k.floor_priority, -32768), coalesce(k.floor_run_at, '-infinity'), coalesce(k.floor_id, 0)))));
  if late <> '{}' then
    perform "${schema}".pgworker_return_permits(late);
  end if;

  old := array(
    select k.lane from "${schema}".pgworker_limit_lanes k where k.used_at < clock_timestamp() - interval '1 minute'
    order by k.used_at limit 200);
  if old <> '{}' then
    update "${schema}".pgworker_limit_lanes k set used_at = clock_timestamp()
      where k.lane = any(old) and exists (
        select from "${schema}"._private_jobs j
        where j.locked_at = '9999-01-01 00:00:00+00' and j.locked_by collate "C" = 'pgworker-limit:' || k.lane
          and (j.priority, j.run_at, j.id) >= (coalesce(k.floor_priority, -32768), coalesce(k.floor_run_at, '-infinity'), coalesce(k.floor_id, 0)));
    perform "${schema}".pgworker_forget_lanes(old);
  end if;
  return taken + coalesce(cardinality(late), 0);
end
$$;
comment on function "${schema}".pgworker_check_permits() is
  'Takes permits back of jobs that have ended or that nobody starts, and forgets lanes and buckets that are not used. Call it about once a second; returns how many it has taken.';

create or replace function "${schema}".pgworker_forget_buckets(ids bigint[]) returns void
language plpgsql volatile
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off
set enable_mergejoin = off set jit = off
set search_path = pg_catalog, pg_temp as $$
begin
  delete from "${schema}".pgworker_limit_buckets b
    using "${schema}".pgworker_limits l
    where b.id = any(ids) and l.id = b.limit_id
      and not exists (select from "${schema}".pgworker_limit_turns t where t.bucket_id = b.id)
      and b.holders = '{}'
      and (b.tokens is null or l.max_starts is null
        or b.tokens + extract(epoch from clock_timestamp() - b.filled_at)::float8 * l.max_starts / extract(epoch from l.period)::float8 >= l.burst);
end
$$;
comment on function "${schema}".pgworker_forget_buckets(bigint[]) is
  'Forgets those of the buckets that nobody waits for and nobody holds, and that are as good as new; for whoever has the lock of the gates.';

create or replace function "${schema}".pgworker_forget_lanes(names text[]) returns void
language plpgsql volatile
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off
set enable_mergejoin = off set jit = off
set search_path = pg_catalog, pg_temp as $$
declare
  gone record;
begin
  with forgotten as (
    delete from "${schema}".pgworker_limit_lanes k
    where k.lane = any(names) and k.used_at < clock_timestamp() - interval '1 minute'
    returning k.lane, k.buckets),
  turns as (
    delete from "${schema}".pgworker_limit_turns t
    using (select f.lane, u.bucket from forgotten f cross join lateral unnest(f.buckets) u(bucket)) f
    where t.bucket_id = f.bucket and t.lane = f.lane)
  select array_agg(distinct u.bucket) as buckets into gone from forgotten f cross join lateral unnest(f.buckets) u(bucket);
  perform "${schema}".pgworker_forget_buckets(gone.buckets);
end
$$;
comment on function "${schema}".pgworker_forget_lanes(text[]) is
  'Forgets those of the lanes that have not been used for a minute, and their buckets if they are as good as new.';

create or replace function "${schema}".pgworker_limit_usage(name text, after_value text default null, most int default 100)
returns table (value text, running bigint, waiting bigint, tokens float8, next_at timestamptz)
language plpgsql volatile security definer
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off
set enable_mergejoin = off set jit = off
set search_path = pg_catalog, pg_temp as $$
begin
  if most is null or most not between 1 and 10000 then
    perform "${schema}".pgworker_wrong('most', 'must be between 1 and 10000', most::text);
  end if;
  return query
    select u.value::text,
      (select count(*) from "${schema}".pgworker_permits p where p.bucket_id = u.id and u.max_running is not null),
      (select count(*) from (
        select from "${schema}".pgworker_limit_turns t
        join "${schema}".pgworker_limit_lanes k on k.lane = t.lane
        cross join lateral (
          select from "${schema}"._private_jobs j
          where j.locked_at = '9999-01-01 00:00:00+00' and j.locked_by collate "C" = 'pgworker-limit:' || t.lane
            and (j.priority, j.run_at, j.id) >= (coalesce(k.floor_priority, -32768), coalesce(k.floor_run_at, '-infinity'), coalesce(k.floor_id, 0)) limit 10000) j
        where t.bucket_id = u.id limit 10000) w),
      u.filled,
      case when u.filled < 1 then clock_timestamp() + (1 - u.filled) / u.rate * interval '1 second' end
    from (
      select b.id, b.value, l.max_running, f.rate,
        case when l.max_starts is not null then least(l.burst, coalesce(
          b.tokens + f.rate * greatest(0, extract(epoch from clock_timestamp() - b.filled_at)::float8), l.burst)) end as filled
      from "${schema}".pgworker_limits l
      cross join lateral (select l.max_starts / extract(epoch from l.period)::float8 as rate) f
      join "${schema}".pgworker_limit_buckets b on b.limit_id = l.id
      where l.name = pgworker_limit_usage.name collate "C" and (after_value is null or b.value > after_value collate "C")
      order by b.value limit most) u
    order by u.value;
end
$$;
comment on function "${schema}".pgworker_limit_usage(text, text, int) is
  'The values for which a limit has been used lately, in their order after the given one: how many jobs have a permit, how many wait (10,000 at most are '
  'counted), and of a rate the tokens and, if there is none, when the next one is there.';

create or replace function "${schema}".pgworker_job_limits(job_id bigint)
returns table (
  name text, value text, running bigint, max_running int, tokens float8, max_starts int, period interval, next_at timestamptz, state text
)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
begin
  return query
    select l.name::text, u.value,
      case when l.max_running is not null then (select count(*) from "${schema}".pgworker_permits p where p.bucket_id = b.id) end,
      l.max_running, f.tokens, l.max_starts, l.period,
      case when f.tokens < 1 then clock_timestamp() + (1 - f.tokens) / r.rate * interval '1 second' end, l.state
    from "${schema}"._private_jobs j
    cross join lateral "${schema}".pgworker_lane(j.task_id, j.job_queue_id, j.payload, j.flags) n
    cross join lateral unnest(n.limit_ids, n.bucket_values) u(id, value)
    join "${schema}".pgworker_limits l on l.id = u.id
    left join "${schema}".pgworker_limit_buckets b on b.limit_id = l.id and b.value = u.value collate "C"
    cross join lateral (select l.max_starts / extract(epoch from l.period)::float8 as rate) r
    cross join lateral (
      select case when l.max_starts is not null then least(l.burst, coalesce(
        b.tokens + r.rate * greatest(0, extract(epoch from clock_timestamp() - b.filled_at)::float8), l.burst)) end as tokens) f
    where j.id = pgworker_job_limits.job_id
    order by l.name;
end
$$;
comment on function "${schema}".pgworker_job_limits(bigint) is 'The limits that a job is subject to, by which value, and how much of each is used.';

create or replace function "${schema}".pgworker_limited_totals() returns table (name text, waiting bigint, used bigint)
language plpgsql volatile security definer
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off
set enable_mergejoin = off set jit = off
set search_path = pg_catalog, pg_temp as $$
declare
  most constant int := 10000;
begin
  return query
    select l.name::text,
      (select count(*) from (
        select from "${schema}".pgworker_limit_buckets b
        join "${schema}".pgworker_limit_turns t on t.bucket_id = b.id
        join "${schema}".pgworker_limit_lanes k on k.lane = t.lane
        cross join lateral (
          select from "${schema}"._private_jobs j
          where j.locked_at = '9999-01-01 00:00:00+00' and j.locked_by collate "C" = 'pgworker-limit:' || t.lane
            and (j.priority, j.run_at, j.id) >= (coalesce(k.floor_priority, -32768), coalesce(k.floor_run_at, '-infinity'), coalesce(k.floor_id, 0)) limit most) j
        where b.limit_id = l.id limit most) w),
      (select count(*) from (
        select from "${schema}".pgworker_limit_buckets b
        cross join lateral unnest(b.holders) h(job_id)
        where b.limit_id = l.id limit most) u)
    from "${schema}".pgworker_limits l
    order by l.name;
end
$$;
comment on function "${schema}".pgworker_limited_totals() is
  'Of each limit how many jobs wait for it and how many permits are given, up to 10,000 of each.';


-- 12 Rights --------------------------------------------------------------------------------------------------------------------

-- Who may insert jobs may add them by the functions, and who may write schedules may change them: these, and what they call, stay
-- executable for everybody. They do nothing that the caller could not do without them. So do pgworker_indexes and pgworker_keeps_history,
-- which only tell what every start checks and what triggers ask for whoever ends jobs. Of the others, those of the
-- shared interface that were here before keep the rights that they had.
do $rights$
declare
  adding constant text[] := array[
    'add_job', 'add_jobs', 'pgworker_add_jobs', 'pgworker_put', 'pgworker_put_all', 'pgworker_columns', 'pgworker_fits',
    'pgworker_refuse', 'pgworker_kept_out', 'pgworker_flags', 'pgworker_json', 'pgworker_merge', 'pgworker_next_revision',
    'pgworker_task_id', 'pgworker_queue_id', 'pgworker_know_names', 'pgworker_hold_names', 'pgworker_retire', 'pgworker_cancel_running', 'pgworker_wake',
    'pgworker_announce', 'pgworker_indexes', 'pgworker_parked', 'pgworker_keeps_history',
    'pgworker_put_schedule', 'pgworker_delete_schedule', 'pgworker_pause_schedule', 'pgworker_resume_schedule', 'pgworker_trigger_schedule',
    'pgworker_schedule_row', 'pgworker_check_schedule', 'pgworker_check_length', 'pgworker_changed_schedule', 'pgworker_span', 'pgworker_wrong',
    'pgworker_pause', 'pgworker_resume', 'pgworker_check_pause', 'pgworker_hold_queue', 'pgworker_resume_queue'];
  here_before constant oid[] := current_setting('pgworker.found')::oid[];
  helper regprocedure;
  private regprocedure;
begin
  for helper in
    select p.oid from pg_proc p
    where p.pronamespace = '"${schema}"'::regnamespace and p.proname = any(adding) and p.proname like 'pgworker\_%'
  loop
    execute 'grant execute on function ' || helper || ' to public';
  end loop;
  for private in
    select p.oid from pg_proc p
    where p.pronamespace = '"${schema}"'::regnamespace and p.proname <> all(adding)
      and (p.proname like 'pgworker\_%' or p.oid <> all(here_before) and p.proname in (
        'remove_job', 'complete_jobs', 'permanently_fail_jobs', 'reschedule_jobs', 'force_unlock_workers', 'worker_heartbeat',
        'worker_deregister', 'list_stale_workers', 'list_orphan_locked_workers', 'recover_dead_worker_jobs', 'delete_stale_workers'))
  loop
    execute 'revoke execute on function ' || private || ' from public';
  end loop;
end
$rights$;


-- 13 Ledger -------------------------------------------------------------------------------------------------------------------
>>>>>>> ded1e00a (Broken direct batches are known by the database, rest kept small)

-- Both peers look at the highest id only, so 20 keeps Node.js from migrating over this schema, and Rust as far as it knows no
-- higher one. Node.js calls 19 breaking, Rust does not: it is, because workers that know nothing of it fetch several jobs of one
-- queue at once. Rust workers that support this schema know 19 and do not mind.
-- Any Node.js worker stops when it is told of a breaking migration, whatever its number. It is told only where 19 was missing:
-- there, none can be running that knows it.
do $ledger$
declare
  newest int;
begin
  select max(m.id) into newest from "${schema}".migrations m;
  insert into "${schema}".migrations (id, breaking)
    select i, i in (1, 3, 11, 13, 14, 16, 19) from generate_series(1, 20) i
    on conflict (id) do nothing;
  update "${schema}".migrations m set breaking = true where m.id = 19 and not m.breaking;
  if newest < 19 then
    perform pg_notify('worker:migrate', '{"migrationNumber":19,"breaking":true}');
  end if;
end
$ledger$;
