-- History: its entries, what it lost, its settings, and the deletion of old entries.

-- Two triggers on the jobs write the history, in the statement that ends the jobs. So they see all ends: those that Node.js, Rust, people
-- and their tools cause as well. They run with the rights of the owner, because those who end jobs need none on the history. A worker of
-- PgWorker passes what only it knows of a run in settings of the transaction (pgworker_note_runs), and its functions pass what
-- they are doing to jobs (pgworker.ending). Nothing of PgWorker takes a lock that an entry waits for: old entries are deleted, never truncated.
-- A failure to write entries keeps no job from ending: the entries are lost then, counted and reported.

create or replace function "${schema}".pgworker_note_runs(
  job_ids bigint[], micros bigint[], results text[], traces text[], worker_id text default null, begun timestamptz default null,
  attempts int[] default null, keys text[] default null
) returns bigint[]
language plpgsql volatile
set search_path = pg_catalog, pg_temp as $$
begin
  perform set_config('pgworker.run_ids', coalesce(job_ids::text, ''), true),
    set_config('pgworker.run_micros', coalesce(micros::text, ''), true),
    set_config('pgworker.run_results', coalesce(results::text, ''), true),
    set_config('pgworker.run_traces', coalesce(traces::text, ''), true),
    set_config('pgworker.run_by', coalesce(worker_id, ''), true),
    set_config('pgworker.run_begun', coalesce(begun::text, ''), true),
    set_config('pgworker.run_attempts', coalesce(attempts::text, ''), true),
    set_config('pgworker.run_keys', coalesce(keys::text, ''), true);
  return job_ids;
exception when others then
  perform set_config('pgworker.run_ids', '', true);
  raise warning 'The history of schema "${schema}" is not told of the results of some jobs: %', sqlerrm;
  return job_ids;
end
$$;
comment on function "${schema}".pgworker_note_runs(bigint[], bigint[], text[], text[], text, timestamptz, int[], text[]) is
  'Tells the history, for the statements that follow in the transaction, how long the runs of these jobs took in microseconds, their results as JSON, '
  'their traces, and the attempts and keys that the jobs had when claimed; a null array stands for nothing but nulls. For jobs that are not '
  'claimed also who runs them, since when. Tells nothing, with a warning, if the results are too large for a setting. Returns the ids.';
revoke execute on function "${schema}".pgworker_note_runs(bigint[], bigint[], text[], text[], text, timestamptz, int[], text[]) from public;

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
revoke execute on function "${schema}".pgworker_result(text) from public;

-- No name is resolved to a table here, as that would wait for the holder of the lock.
create or replace function "${schema}".pgworker_history_holder() returns text
language sql volatile
set search_path = pg_catalog, pg_temp as $$
  select string_agg(format('process %s of %s (%s) holds %s on %s', l.pid, a.usename, a.application_name, l.mode, c.relname), ', ')
  from pg_locks l
  join pg_class c on c.oid = l.relation and c.relnamespace = '"${schema}"'::regnamespace
  left join pg_index i on i.indexrelid = c.oid
  left join pg_class t on t.oid = i.indrelid
  left join pg_stat_activity a on a.pid = l.pid
  where l.database = (select d.oid from pg_database d where d.datname = current_database()) and l.granted and l.pid <> pg_backend_pid()
    and coalesce(t.relname, c.relname) in ('pgworker_history', 'pgworker_history_settings', 'pgworker_cancellations', '_private_tasks',
      '_private_job_queues')
    and (l.mode = 'AccessExclusiveLock'
      or coalesce(t.relname, c.relname) = 'pgworker_history' and l.mode in ('ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock'))
$$;
comment on function "${schema}".pgworker_history_holder() is 'Who holds a lock that keeps entries from being written to the history; null if none does.';
revoke execute on function "${schema}".pgworker_history_holder() from public;

-- Called where nothing is rolled back any more, or the count would be, too. One warning a minute is enough.
create or replace function "${schema}".pgworker_history_lost(jobs bigint, reason text, state text default null) returns void
language plpgsql volatile security definer
set lock_timeout = '20ms'
set search_path = pg_catalog, pg_temp as $$
declare
  whole constant text := reason || coalesce(': '::text || case when state = '55P03' then "${schema}".pgworker_history_holder() end, '');
  told boolean := false;
begin
  begin
    lock table "${schema}".pgworker_history_losses in row exclusive mode;
    perform set_config('lock_timeout', '1min', true);
    told := exists (select from "${schema}".pgworker_history_losses l where l.lost_at > clock_timestamp() - interval '1 minute');
    insert into "${schema}".pgworker_history_losses values (clock_timestamp(), jobs, whole);
  exception when others or assert_failure then
    raise log 'The loss of % entries of the history of schema "${schema}" is not counted: %', jobs, sqlerrm;
  end;
  if not told then
    raise warning 'Jobs have ended that the history of schema "${schema}" does not show: %', whole;
  end if;
end
$$;
comment on function "${schema}".pgworker_history_lost(bigint, text, text) is
  'Counts entries that could not be written, and warns, naming who holds the lock if the SQLSTATE is that of a lock that was not available.';
revoke execute on function "${schema}".pgworker_history_lost(bigint, text, text) from public;

-- Begins the work of the two triggers below, whose settings hold here, too: lock_timeout bounds only the wait for a stranger's lock on a
-- table, by less than deadlock_timeout and by a quarter of the caller's statement_timeout. What a busy server waits for while it writes,
-- such as the extension of a table, may take a minute. So all tables are locked before anything is written. Within ten seconds after a loss
-- no statement waits for a stranger who still holds a lock.
create or replace function "${schema}".pgworker_open_history() returns boolean
language plpgsql volatile as $$
declare
  kept record;
begin
  if pg_catalog.current_setting('statement_timeout') operator(pg_catalog.<>) '0' then
    perform pg_catalog.set_config('lock_timeout', greatest(1, least(
      extract(epoch from pg_catalog.current_setting('lock_timeout')::pg_catalog.interval) operator(pg_catalog.*) 1000,
      extract(epoch from pg_catalog.current_setting('statement_timeout')::pg_catalog.interval) operator(pg_catalog.*) 250))
        ::pg_catalog.int4 operator(pg_catalog.||) 'ms'::pg_catalog.text, true);
  end if;
  if exists (
      select from "${schema}".pgworker_history_losses l
      where l.lost_at operator(pg_catalog.>) (pg_catalog.clock_timestamp() operator(pg_catalog.-) interval '10 seconds'))
    and "${schema}".pgworker_history_holder() is not null
  then
    raise exception 'lock not waited for again' using errcode = 'lock_not_available';
  end if;
  select s.enabled, s.payloads into kept from "${schema}".pgworker_history_settings s;
  if not kept.enabled then
    return null;
  end if;
  lock table "${schema}"._private_tasks, "${schema}"._private_job_queues, "${schema}".pgworker_cancellations in access share mode;
  lock table "${schema}".pgworker_history in row exclusive mode;
  perform pg_catalog.set_config('lock_timeout', '1min', true);
  return kept.payloads;
end
$$;
comment on function "${schema}".pgworker_open_history() is
  'Locks all tables that an entry of the history needs. Returns whether entries have payloads; null, without a lock, if no history is kept.';
revoke execute on function "${schema}".pgworker_open_history() from public;

-- Inlined. No nullif, which would look up an operator in the caller's search path.
create or replace function "${schema}".pgworker_noted(name text) returns text
language sql stable as $$
  select case when pg_catalog.current_setting('pgworker.run_'::pg_catalog.text operator(pg_catalog.||) name, true) operator(pg_catalog.<>) ''
    then pg_catalog.current_setting('pgworker.run_'::pg_catalog.text operator(pg_catalog.||) name, true) end
$$;
comment on function "${schema}".pgworker_noted(text) is 'One of the settings of pgworker_note_runs, null if it has noted nothing.';
revoke execute on function "${schema}".pgworker_noted(text) from public;

create or replace function "${schema}".pgworker_noted_runs()
returns table (id bigint, took interval, result text, trace text, attempts int, key text, begun timestamptz, runner text)
language plpgsql volatile as $$
begin
  return query
    select u.id, u.micros operator(pg_catalog.*) interval '1 microsecond', u.result, u.trace, u.attempts, u.key,
      "${schema}".pgworker_noted('begun')::pg_catalog.timestamptz,
      "${schema}".pgworker_noted('by')
    from rows from (
      pg_catalog.unnest("${schema}".pgworker_noted('ids')::pg_catalog.int8[]),
      pg_catalog.unnest("${schema}".pgworker_noted('micros')::pg_catalog.int8[]),
      pg_catalog.unnest("${schema}".pgworker_noted('results')::pg_catalog.text[]),
      pg_catalog.unnest("${schema}".pgworker_noted('traces')::pg_catalog.text[]),
      pg_catalog.unnest("${schema}".pgworker_noted('attempts')::pg_catalog.int4[]),
      pg_catalog.unnest("${schema}".pgworker_noted('keys')::pg_catalog.text[]))
      u(id, micros, result, trace, attempts, key);
end
$$;
comment on function "${schema}".pgworker_noted_runs() is 'What pgworker_note_runs has noted in this transaction: a row for each run.';
revoke execute on function "${schema}".pgworker_noted_runs() from public;

-- The two triggers. Whose rows they see is made sure before anything is read from these: in a trigger on another role's table, a cast of
-- that role would run with the rights of the owner. Hash joins, because a group may have hundreds of jobs, and the plan may have been made
-- for one.

-- What our functions are doing to jobs (pgworker.ending) is the outcome. Where that is not set, a job that was claimed, or whose run was
-- noted, has succeeded, and another one was removed. One that has failed for good has its entry since then, and gets no other.
create or replace function "${schema}".pgworker_record_deleted() returns trigger
language plpgsql volatile security definer
set lock_timeout = '900ms' set array_nulls = on set plan_cache_mode = force_generic_plan set enable_hashjoin = on set enable_nestloop = off
set enable_mergejoin = off set enable_seqscan = off set enable_bitmapscan = off set jit = off
set search_path = pg_catalog, pg_temp as $$
declare
  ended constant timestamptz := clock_timestamp();
  ending constant text := coalesce(current_setting('pgworker.ending', true), '');
  outcome constant text := case when ending = 'direct' then 'succeeded' when ending in ('succeeded', 'removed') then ending end;
  payloads boolean;
  jobs bigint;
begin
  if tg_relid <> '"${schema}"._private_jobs'::regclass then
    raise exception 'The history of schema "${schema}" is written by triggers on its jobs alone' using errcode = '42501';
  end if;
  begin
    payloads := "${schema}".pgworker_open_history();
    if payloads is null then
      return null;
    end if;
    insert into "${schema}".pgworker_history (job_id, ended_at, started_at, took, created_at, run_at, attempt, max_attempts,
        priority, outcome, task_identifier, queue_name, key, worker_id, trace_id, flags, result, payload)
      select g.id, ended, least(h.locked_at, r.begun, ended - r.took),
        coalesce(r.took, case when h.locked_at <= ended and isfinite(h.locked_at) then ended - h.locked_at end),
        g.created_at, g.run_at,
        case when h.locked_at is not null then g.attempts when r.id is not null or ending = 'direct' then g.attempts + 1 else 0 end,
        g.max_attempts, g.priority,
        coalesce(outcome, case when r.id is not null or h.locked_at is not null then 'succeeded' else 'removed' end),
        coalesce((select t.identifier from "${schema}"._private_tasks t where t.id = g.task_id), 'task ' || g.task_id),
        case when g.job_queue_id is not null then (
          select q.queue_name from "${schema}"._private_job_queues q where q.id = g.job_queue_id) end,
        g.key, case when h.locked_at is not null then g.locked_by else r.runner end, r.trace, g.flags,
        case when r.result is not null then "${schema}".pgworker_result(r.result) end,
        case when payloads and pg_column_size(g.payload) <= 65536 and octet_length(g.payload::text) <= 65536 then g.payload end
      from old_jobs g
      left join "${schema}".pgworker_noted_runs() r on r.id = g.id
      cross join lateral (select case when not "${schema}".pgworker_parked(g.locked_at) then g.locked_at end as locked_at offset 0) h
      where outcome is not null or r.id is not null or h.locked_at is not null or g.attempts < g.max_attempts;
  exception when others or assert_failure then
    select count(*) into jobs from old_jobs g where outcome is not null or g.locked_at is not null or g.attempts < g.max_attempts;
    perform "${schema}".pgworker_history_lost(jobs, sqlerrm, sqlstate) where jobs > 0;
  end;
  return null;
end
$$;
comment on function "${schema}".pgworker_record_deleted() is 'Writes deleted jobs to the history.';
revoke execute on function "${schema}".pgworker_record_deleted() from public;

-- A row that is no longer locked is that of a run that has ended, unless the attempt was given back; one that was not locked before has an
-- entry only if its last attempt was taken away.
create or replace function "${schema}".pgworker_record_updated() returns trigger
language plpgsql volatile security definer
set lock_timeout = '900ms' set array_nulls = on set plan_cache_mode = force_generic_plan set enable_hashjoin = on set enable_nestloop = off
set enable_mergejoin = off set enable_seqscan = off set enable_bitmapscan = off set jit = off
set search_path = pg_catalog, pg_temp as $$
declare
  ended constant timestamptz := clock_timestamp();
  ending constant text := coalesce(current_setting('pgworker.ending', true), '');
  payloads boolean;
  jobs bigint;
begin
  if tg_relid <> '"${schema}"._private_jobs'::regclass then
    raise exception 'The history of schema "${schema}" is written by triggers on its jobs alone' using errcode = '42501';
  end if;
  if not exists (select from new_jobs n where n.locked_at is null or "${schema}".pgworker_parked(n.locked_at)) then
    return null;
  end if;
  begin
    payloads := "${schema}".pgworker_open_history();
    if payloads is null then
      return null;
    end if;
    insert into "${schema}".pgworker_history (job_id, ended_at, started_at, took, created_at, run_at, attempt, max_attempts,
        priority, outcome, task_identifier, queue_name, key, worker_id, trace_id, flags, error, result, payload)
      select g.id, ended, least(h.locked_at, ended - r.took),
        coalesce(r.took,
          case when e.outcome <> 'recovered' and h.locked_at <= ended and isfinite(h.locked_at) then ended - h.locked_at end),
        g.created_at, g.run_at, case when h.locked_at is null then 0 else coalesce(r.attempts, g.attempts) end,
        n.max_attempts, g.priority, e.outcome,
        coalesce((select t.identifier from "${schema}"._private_tasks t where t.id = g.task_id), 'task ' || g.task_id),
        case when g.job_queue_id is not null then (
          select q.queue_name from "${schema}"._private_job_queues q where q.id = g.job_queue_id) end,
        coalesce(g.key, r.key), case when h.locked_at is not null then g.locked_by end, r.trace, g.flags,
        case
          when h.locked_at is not null and (ending = 'recovered' or e.outcome = 'recovered') and e.outcome <> 'cancelled' and n.last_error is not distinct from g.last_error
            and n.last_error is distinct from 'Job recovered after worker interruption' then null
          else n.last_error
        end,
        case when r.result is not null then "${schema}".pgworker_result(r.result) end,
        case when payloads and pg_column_size(g.payload) <= 65536 and octet_length(g.payload::text) <= 65536 then g.payload end
      from new_jobs n
      join old_jobs g on g.id = n.id
      left join "${schema}".pgworker_noted_runs() r on r.id = n.id and ending = 'released'
      cross join lateral (
        select case when not "${schema}".pgworker_parked(g.locked_at) then g.locked_at end as locked_at,
          n.attempts >= n.max_attempts as final offset 0) h
      cross join lateral (
        select case
          when h.locked_at is null then case when h.final and g.attempts < g.max_attempts then 'failed' end
          when ending <> 'recovered' and n.attempts < coalesce(r.attempts, g.attempts) then null
          when h.final and exists (
            select from "${schema}".pgworker_cancellations c where c.job_id = n.id and c.outcome is null) then 'cancelled'
          when h.final and ending = 'recovered' and n.last_error ~ '^(Superseded|Removed) .*; its worker died$' then 'removed'
          when h.final and ending = 'released' and (g.key is distinct from coalesce(r.key, g.key)
            or g.key is null and g.attempts >= g.max_attempts and "${schema}".pgworker_retirement(g.id, g.last_error) is not null)
            then 'removed'
          when h.final then 'failed'
          when ending = 'recovered' then 'recovered'
          when ending = 'released' or n.last_error is distinct from g.last_error or n.run_at > now() then 'retried'
          else 'recovered'
        end as outcome offset 0) e
      where (n.locked_at is null or "${schema}".pgworker_parked(n.locked_at)) and e.outcome is not null;
  exception when others or assert_failure then
    select count(*) into jobs from new_jobs n join old_jobs g on g.id = n.id
      where (n.locked_at is null or "${schema}".pgworker_parked(n.locked_at))
        and case
          when g.locked_at is null or "${schema}".pgworker_parked(g.locked_at) then g.attempts < g.max_attempts and n.attempts >= n.max_attempts
          else n.attempts >= g.attempts or ending = 'recovered'
        end;
    perform "${schema}".pgworker_history_lost(jobs, sqlerrm, sqlstate) where jobs > 0;
  end;
  return null;
end
$$;
comment on function "${schema}".pgworker_record_updated() is 'Writes runs that have ended, and jobs that have failed for good, to the history.';
revoke execute on function "${schema}".pgworker_record_updated() from public;

do $triggers$
begin
  if not exists (
    select from pg_trigger t where t.tgrelid = '"${schema}"._private_jobs'::regclass and t.tgname = 'pgworker_history_deleted') then
    create trigger pgworker_history_deleted after delete on "${schema}"._private_jobs
      referencing old table as old_jobs for each statement execute function "${schema}".pgworker_record_deleted();
  end if;
  if not exists (
    select from pg_trigger t where t.tgrelid = '"${schema}"._private_jobs'::regclass and t.tgname = 'pgworker_history_updated') then
    create trigger pgworker_history_updated after update on "${schema}"._private_jobs
      referencing old table as old_jobs new table as new_jobs for each statement
      when (current_setting('pgworker.ending', true) is distinct from 'claimed') execute function "${schema}".pgworker_record_updated();
  end if;
end
$triggers$;

-- A deletion of old entries holds the row of the settings, for less than the 8 s that are waited here.
create or replace function "${schema}".pgworker_keep_history(enabled boolean, keep_for interval, keep_most bigint, payloads boolean)
returns boolean
language plpgsql volatile security definer
set lock_timeout = '8s'
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
revoke execute on function "${schema}".pgworker_keep_history(boolean, interval, bigint, boolean) from public;

-- Ten seconds apart: the number of entries is that of the server's statistics, which count a deletion some seconds later.
create or replace function "${schema}".pgworker_tend_history() returns void
language plpgsql volatile security definer
set lock_timeout = '50ms' set plan_cache_mode = force_custom_plan set enable_seqscan = off set jit = off
set search_path = pg_catalog, pg_temp as $$
declare
  kept "${schema}".pgworker_history_settings;
begin
  update "${schema}".pgworker_history_settings s set tended_at = clock_timestamp()
    where s.ctid = any(array(
      select h.ctid from "${schema}".pgworker_history_settings h
      where h.tended_at < clock_timestamp() - interval '10 seconds' for update skip locked))
    returning s.* into kept;
  if not found then
    return;
  end if;
  if kept.enabled and 2 > (
    select count(*) from pg_trigger t
    where t.tgrelid = '"${schema}"._private_jobs'::regclass and t.tgenabled in ('O', 'A') and t.tgfoid in (
      '"${schema}".pgworker_record_deleted()'::regprocedure, '"${schema}".pgworker_record_updated()'::regprocedure))
  then
    perform "${schema}".pgworker_history_lost(0, 'a trigger of the history on _private_jobs is missing or disabled');
  end if;
  with gone as (
    delete from "${schema}".pgworker_history_losses l
    where l.lost_at < clock_timestamp() - interval '1 day'
      or 1000 < (select count(*) from "${schema}".pgworker_history_losses)
    returning l.*)
  insert into "${schema}".pgworker_history_losses
    select max(g.lost_at), sum(g.jobs), g.reason from gone g where g.lost_at >= clock_timestamp() - interval '1 day'
    group by date_trunc('hour', g.lost_at), g.reason;
  delete from "${schema}".pgworker_history d where d.ctid = any(array(
    select h.ctid from "${schema}".pgworker_history h
    where h.ended_at < greatest(clock_timestamp() - kept.keep_for, (
      select o.ended_at from "${schema}".pgworker_history o order by o.ended_at
      offset greatest(0, pg_stat_get_live_tuples('"${schema}".pgworker_history'::regclass) - kept.keep_most) limit 1))
    order by h.ended_at limit 200000));
  perform "${schema}".pgworker_tend_ends();
exception when lock_not_available or deadlock_detected then
  null;
end
$$;
comment on function "${schema}".pgworker_tend_history() is 'Deletes entries of the history that are too old, or of which there are too many, and has pgworker_tend_ends do the like. Call it every 20 seconds.';
revoke execute on function "${schema}".pgworker_tend_history() from public;
