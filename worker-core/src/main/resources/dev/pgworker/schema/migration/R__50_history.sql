-- History: what the triggers and the releases of workers write.

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
revoke execute on function "${schema}".pgworker_note_runs(bigint[], bigint[], text[], text[], text, timestamptz) from public;

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
grant execute on function "${schema}".pgworker_keeps_history() to public;

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
revoke execute on function "${schema}".pgworker_open_history() from public;

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
revoke execute on function "${schema}".pgworker_history_lost(bigint, text, text) from public;

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
revoke execute on function "${schema}".pgworker_result(text) from public;

-- Jobs that were claimed have run, unless somebody removes one whose lock is four hours old. Of the others the setting pgworker.ending tells
-- what is being done to them. Failed jobs that are deleted by hand have their entry.
-- Hash joins, because a group may have hundreds of jobs, and the plan may have been made for one. As most groups are of one task, it is
-- looked up once. Before anything is read from the rows it is made sure whose they are: in a trigger on a table of somebody else, who was
-- granted all functions, a cast of theirs would run with the rights of the owner.
create or replace function "${schema}".pgworker_record_deleted() returns trigger
language plpgsql volatile security definer
set lock_timeout = '1min' set plan_cache_mode = force_generic_plan set enable_hashjoin = on set enable_nestloop = off
set enable_mergejoin = off set enable_seqscan = off set enable_bitmapscan = off set jit = off set array_nulls = on
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
revoke execute on function "${schema}".pgworker_record_deleted() from public;

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
revoke execute on function "${schema}".pgworker_record_updated() from public;

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
revoke execute on function "${schema}".pgworker_runs_of(text, "${schema}".pgworker_outcome[]) from public;

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
revoke execute on function "${schema}".pgworker_record_released("${schema}".pgworker_run[], bigint[], text[]) from public;

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
