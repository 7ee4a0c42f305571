-- Ends of jobs that are waited for: who asks for one, the triggers that write it, who reads it, and the deletion of old ones.

-- A row of pgworker_ends asks for the end of a job. Two triggers on the jobs look, in the statement that ends jobs, whether their end is
-- asked for, and write it: so it does not matter who ends them. Those who ask lock the job's row first, and the triggers wait for no lock:
-- if a stranger holds our row or table, that end is lost, which pgworker_tend_ends then finds to be unknown. A worker of PgWorker passes
-- results by pgworker_note_runs, of jobs that have the flag "pgworker:result". One that begins with "!" is the reason why there is none,
-- and one that begins with "+" is not for the history.

create or replace function "${schema}".pgworker_keep_ends(job_ids bigint[], keep_for interval default null, flow boolean default false)
returns bigint[]
language plpgsql volatile security definer
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off
set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
  own constant bigint := txid_current();
  found_ids bigint[];
begin
  if keep_for not between interval '1 second' and interval '3650 days' then
    raise exception 'keep_for must be between 1 second and 3650 days, but is %', keep_for using errcode = '22023';
  end if;
  if pg_sequence_last_value('"${schema}".pgworker_ends_used'::regclass) is null then
    perform nextval('"${schema}".pgworker_ends_used'::regclass);
  end if;
  found_ids := array(
    select j.id from (select distinct u.id from unnest(job_ids) u(id) order by u.id) g
    cross join lateral (select h.id from "${schema}"._private_jobs h where h.id = g.id for key share) j);
  insert into "${schema}".pgworker_ends as e (job_id, task_identifier, keep_for, awaited, flow, news, outcome, error, ended_at, expires_at, marked_by)
    select j.id, coalesce((select t.identifier from "${schema}"._private_tasks t where t.id = j.task_id), 'task ' || j.task_id),
      coalesce(pgworker_keep_ends.keep_for, interval '1 hour'), not pgworker_keep_ends.flow, pgworker_keep_ends.flow,
      pgworker_keep_ends.flow and f.failed, case when f.failed then 'failed' end, case when f.failed then j.last_error end,
      case when f.failed then now() end, case when f.failed then now() + coalesce(pgworker_keep_ends.keep_for, interval '1 hour') end,
      case when j.xmin::text::bigint <> own & 4294967295 and not "${schema}".pgworker_written_here(j.xmin) then own end
    from unnest(found_ids) g(id)
    cross join lateral (select h.*, h.xmin from "${schema}"._private_jobs h where h.id = g.id offset 0) j
    cross join lateral (
      select j.attempts >= j.max_attempts and (j.locked_at is null or "${schema}".pgworker_parked(j.locked_at)) as failed offset 0) f
    on conflict on constraint pgworker_ends_pkey do update set
      keep_for = greatest(e.keep_for, excluded.keep_for), awaited = e.awaited or excluded.awaited, flow = e.flow or excluded.flow,
      news = e.news or (excluded.flow and e.outcome is not null), marked_by = coalesce(excluded.marked_by, e.marked_by);
  -- This makes them look as if this transaction had added them, hence marked_by. The trigger parks a job again that waits for a limit.
  update "${schema}"._private_jobs j set
      flags = case when jsonb_typeof(j.flags) = 'object' then j.flags else '{}' end || '{"pgworker:result": true}', locked_at = null, locked_by = null
    where j.id = any(found_ids) and (j.locked_at is null or "${schema}".pgworker_parked(j.locked_at))
      and not coalesce(j.flags ? 'pgworker:result', false);
  return array(select unnest(job_ids) except select unnest(found_ids) order by 1);
end
$$;
comment on function "${schema}".pgworker_keep_ends(bigint[], interval, boolean) is
  'Asks for the ends of jobs that are there, with their results, until keep_for after each (null: an hour, or what has been asked for), and if flow is '
  'true for the jobs that are to start after them. Best called by the transaction that adds them: of a job that runs already the result may not come. '
  'Holds their ends up until the transaction ends. Returns the ids of those that are not there.';
revoke execute on function "${schema}".pgworker_keep_ends(bigint[], interval, boolean) from public;

create or replace function "${schema}".pgworker_keep_result(job_id bigint, keep_for interval default '1 hour') returns bigint
language plpgsql volatile
set search_path = pg_catalog, pg_temp as $$
begin
  if job_id is null or "${schema}".pgworker_keep_ends(array[job_id], keep_for) <> '{}' then
    raise exception 'There is no job %', job_id using errcode = 'P0002', hint = 'Call pgworker_keep_result in the transaction that adds the job.';
  end if;
  return job_id;
end
$$;
comment on function "${schema}".pgworker_keep_result(bigint, interval) is
  'Has the result of a job kept until so long after its end. To be called by the transaction that adds the job; returns its id.';
revoke execute on function "${schema}".pgworker_keep_result(bigint, interval) from public;

create or replace function "${schema}".pgworker_awaited(first_id bigint, last_id bigint) returns boolean
language plpgsql volatile
set enable_seqscan = off
set search_path = pg_catalog, pg_temp as $$
begin
  lock table "${schema}".pgworker_ends in row exclusive mode nowait;
  -- Ids that lie far apart, before and behind what a held snapshot keeps of old rows, are looked for one by one.
  return last_id - first_id >= 20000 or exists (select from "${schema}".pgworker_ends e where e.job_id between first_id and last_id);
exception when others or assert_failure then
  raise log 'The ends of some jobs of schema "${schema}" cannot be written for those who wait for them: %', sqlerrm;
  return false;
end
$$;
comment on function "${schema}".pgworker_awaited(bigint, bigint) is
  'Whether the end of a job with an id in this range may have been asked for. Never waits: false if the table is locked.';
revoke execute on function "${schema}".pgworker_awaited(bigint, bigint) from public;

create or replace function "${schema}".pgworker_write_ends(gone boolean, job_ids bigint[], hints text[], errors text[], promised boolean[])
returns void
language plpgsql volatile
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off
set array_nulls = on set lock_timeout = '1min' set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
  ended constant timestamptz := clock_timestamp();
  ending constant text := coalesce(current_setting('pgworker.ending', true), '');
  told_ids constant bigint[] := case when gone then nullif(current_setting('pgworker.run_ids', true), '') end;
  results constant text[] := case when gone then nullif(current_setting('pgworker.run_results', true), '') end;
  written record;
begin
  lock table "${schema}".pgworker_cancellations, "${schema}".pgworker_retirements in access share mode nowait;
  with mine as materialized (
    select e.job_id, j.error, r.result, left(r.result, 1) as mark, p.place is null and j.promised as untold,
      case
        when not gone then o.outcome
        when ending in ('direct', 'succeeded') or ending <> 'removed' and (p.place is not null or j.hint = 'succeeded') then 'succeeded'
        else coalesce(e.outcome, 'removed')
      end as outcome,
      case when gone then ending in ('direct', 'succeeded') or ending <> 'removed' and (p.place is not null or j.hint = 'succeeded') end as done
    from unnest(job_ids, hints, errors, promised) j(id, hint, error, promised)
    cross join lateral (
      select h.* from "${schema}".pgworker_ends h
      where h.job_id = j.id and (gone or (j.hint is null) = (h.outcome is not null)) for update skip locked) e
    cross join lateral (select array_position(told_ids, j.id) as place offset 0) p
    cross join lateral (select results[p.place] as result offset 0) r
    cross join lateral (
      select case
          when gone or j.hint is null then null
          when exists (select from "${schema}".pgworker_cancellations c where c.job_id = j.id and c.outcome is null) then 'cancelled'
          when exists (select from "${schema}".pgworker_retirements t where t.job_id = j.id)
            or j.error ~ '^(Superseded|Removed) .* while running(; its worker died)?$' then 'removed'
          else 'failed'
        end as outcome offset 0) o),
  put as (
    update "${schema}".pgworker_ends e set
        outcome = m.outcome,
        result = case when m.done then "${schema}".pgworker_result(
          case m.mark when '!' then null when '+' then substr(m.result, 2) else m.result end) end,
        error = case
          when m.outcome is null then null
          when m.done is distinct from true then case when gone then coalesce(e.error, m.error) else m.error end
          when m.mark = '!' then substr(m.result, 2)
          when m.untold then 'its worker could not pass it on'
        end,
        ended_at = case when m.outcome is not null then ended end, expires_at = case when m.outcome is not null then ended + e.keep_for end,
        news = e.flow
      from mine m where e.job_id = m.job_id
      returning e.job_id, e.awaited and e.outcome is not null as awaited, e.flow and e.outcome is not null as flow)
  select string_agg(p.job_id::text, ',') filter (where p.awaited) as ids, bool_or(p.flow) as flow into written from put p;
  perform pg_notify('pgworker:ends', case when length(written.ids) <= 7000 then written.ids else '' end) where written.ids is not null;
  perform pg_notify('pgworker:continue', '') where written.flow;
exception when others or assert_failure then
  raise log 'The ends of some jobs of schema "${schema}" cannot be written for those who wait for them: %', sqlerrm;
end
$$;
comment on function "${schema}".pgworker_write_ends(boolean, bigint[], text[], text[], boolean[]) is
  'Writes ends that are asked for. Of jobs that are gone the hint is "succeeded" of those that a worker held; of others it is null unless they have failed '
  'for good. Of promised ones the worker knows that it is to pass the result on. Never waits, and fails with a line in the log.';
revoke execute on function "${schema}".pgworker_write_ends(boolean, bigint[], text[], text[], boolean[]) from public;

-- A sequence shows whether anything has ever been asked for, as no session can lock it; schemas where nothing was pay for nothing else.
-- Called for all statements that end or claim jobs, hence without settings of its own. Before anything is read from the rows it is made
-- sure whose they are.
create or replace function "${schema}".pgworker_end() returns trigger
language plpgsql volatile security definer as $$
declare
  jobs record;
begin
  if tg_relid operator(pg_catalog.<>) '"${schema}"._private_jobs'::pg_catalog.regclass then
    raise exception 'The ends of schema "${schema}" are written by triggers on its jobs alone' using errcode = '42501';
  end if;
  if pg_catalog.pg_sequence_last_value('"${schema}".pgworker_ends_used'::pg_catalog.regclass) is null then
    return null;
  end if;
  if tg_op operator(pg_catalog.=) 'DELETE' then
    select pg_catalog.min(g.id) as least, pg_catalog.max(g.id) as most into jobs from old_jobs g;
    if jobs.least is null or not "${schema}".pgworker_awaited(jobs.least, jobs.most) then return null; end if;
    select pg_catalog.array_agg(g.id) as ids,
      pg_catalog.array_agg(case when g.locked_at is not null and not "${schema}".pgworker_parked(g.locked_at) then 'succeeded' end) as hints,
      pg_catalog.array_agg(g.last_error) as errors,
      pg_catalog.array_agg(g.locked_by operator(pg_catalog.~~) 'pgworker-%' and coalesce(g.flags operator(pg_catalog.?) 'pgworker:result', false))
        as promised
      into jobs from old_jobs g;
    perform "${schema}".pgworker_write_ends(true, jobs.ids, jobs.hints, jobs.errors, jobs.promised);
    return null;
  end if;
  select pg_catalog.min(n.id) as least, pg_catalog.max(n.id) as most into jobs from new_jobs n
    where n.locked_at is null or "${schema}".pgworker_parked(n.locked_at);
  if jobs.least is null or not "${schema}".pgworker_awaited(jobs.least, jobs.most) then return null; end if;
  select pg_catalog.array_agg(n.id) as ids,
    pg_catalog.array_agg(case when n.attempts operator(pg_catalog.>=) n.max_attempts then 'failed' end) as hints,
    pg_catalog.array_agg(n.last_error) as errors
    into jobs from new_jobs n where n.locked_at is null or "${schema}".pgworker_parked(n.locked_at);
  perform "${schema}".pgworker_write_ends(false, jobs.ids, jobs.hints, jobs.errors, null);
  return null;
end
$$;
comment on function "${schema}".pgworker_end() is 'Writes the ends of jobs that are asked for, and notifies pgworker:ends and pgworker:continue.';
revoke execute on function "${schema}".pgworker_end() from public;

do $triggers$
begin
  if not exists (
    select from pg_trigger t where t.tgrelid = '"${schema}"._private_jobs'::regclass and t.tgname = 'pgworker_ends_deleted') then
    create trigger pgworker_ends_deleted after delete on "${schema}"._private_jobs
      referencing old table as old_jobs for each statement execute function "${schema}".pgworker_end();
  end if;
  if not exists (
    select from pg_trigger t where t.tgrelid = '"${schema}"._private_jobs'::regclass and t.tgname = 'pgworker_ends_updated') then
    create trigger pgworker_ends_updated after update on "${schema}"._private_jobs
      referencing new table as new_jobs for each statement
      when (current_setting('pgworker.ending', true) is distinct from 'claimed') execute function "${schema}".pgworker_end();
  end if;
end
$triggers$;

-- One snapshot: a job and its end are never both missing from it, unless the end was lost. Results are returned until they are four million
-- bytes as they are stored, so that a call for ten thousand of them ends; who asks again gets the others.
create or replace function "${schema}".pgworker_results(job_ids bigint[])
returns table (job_id bigint, task_identifier text, outcome text, result json, error text, ended_at timestamptz)
language plpgsql stable security definer
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off
set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
begin
  return query
    select s.job_id, s.task_identifier, s.outcome, s.result, s.error, s.ended_at
    from (
      select k.*, sum(k.size) over (order by k.job_id) - k.size as before
      from (
        select g.id as job_id, e.task_identifier,
          case when e.job_id is null then 'absent' else coalesce(e.outcome, 'unknown') end as outcome,
          e.result, e.error, e.ended_at, coalesce(pg_column_size(e.result), 0) as size
        from (select distinct u.id from unnest(job_ids) u(id)) g
        left join lateral (select h.* from "${schema}".pgworker_ends h where h.job_id = g.id offset 0) e on true
        where e.job_id is null or e.outcome is not null
          or not exists (select from "${schema}"._private_jobs j where j.id = e.job_id)) k) s
    where s.before < 4000000
    order by s.job_id;
end
$$;
comment on function "${schema}".pgworker_results(bigint[]) is
  'How those of the jobs have ended that have, as pgworker_ends tells it; "absent" are those whose end was not asked for, or whose transaction is '
  'not committed, or whose record has expired. Of those that have not ended there is no row. Not more than some megabytes of results are told at once.';
revoke execute on function "${schema}".pgworker_results(bigint[]) from public;

create or replace function "${schema}".pgworker_tend_ends() returns void
language plpgsql volatile security definer
set plan_cache_mode = force_custom_plan set enable_seqscan = off set jit = off
set search_path = pg_catalog, pg_temp as $$
declare
  most constant bigint := 100000;
  lost record;
begin
  lock table "${schema}".pgworker_ends in row exclusive mode nowait;
  with gone as materialized (
    select o.job_id, j.id is not null as failed, j.last_error from "${schema}".pgworker_ends o
    left join lateral (select h.* from "${schema}"._private_jobs h where h.id = o.job_id offset 0) j on true
    where o.outcome is null
      and (j.id is null or j.attempts >= j.max_attempts and (j.locked_at is null or "${schema}".pgworker_parked(j.locked_at)))
    order by o.job_id limit 10000 for update of o skip locked),
  put as (
    update "${schema}".pgworker_ends e set
        outcome = coalesce(h.outcome, case when g.failed then 'failed' else 'unknown' end), result = h.result,
        error = coalesce(h.error, g.last_error), ended_at = clock_timestamp(),
        expires_at = clock_timestamp() + e.keep_for, news = e.flow
      from gone g
      left join lateral (
        select y.outcome, y.result, y.error from "${schema}".pgworker_history y
        where y.job_id = g.job_id and y.outcome in ('succeeded', 'failed', 'removed', 'cancelled')
        order by y.ended_at desc limit 1) h on true
      where e.job_id = g.job_id
      returning e.awaited, e.flow)
  select bool_or(p.awaited) as awaited, bool_or(p.flow) as flow into lost from put p;
  perform pg_notify('pgworker:ends', '') where lost.awaited;
  perform pg_notify('pgworker:continue', '') where lost.flow;
  delete from "${schema}".pgworker_ends d where d.ctid = any(array(
    select e.ctid from "${schema}".pgworker_ends e
    where e.outcome is not null and not e.flow and e.expires_at < greatest(clock_timestamp(), (
      select o.expires_at from "${schema}".pgworker_ends o
      where o.outcome is not null and not o.flow order by o.expires_at desc offset most - 1 limit 1))
    order by e.expires_at limit 100000 for update skip locked));
exception when lock_not_available or deadlock_detected then
  null;
end
$$;
comment on function "${schema}".pgworker_tend_ends() is
  'Finds jobs that are gone, or have failed for good, without their end having been written, which it then has from the history if it can. Deletes what '
  'has been kept for long enough, and of the rest all but the 100,000 that are to be kept for longest. What jobs are to start after (flow) stays.';
revoke execute on function "${schema}".pgworker_tend_ends() from public;
