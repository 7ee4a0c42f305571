-- Statistics of jobs and runs, and what is left of those that are over.

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
revoke execute on function "${schema}".pgworker_forget_running() from public;

-- No session adds to the rows of a job that is gone, so deleting them waits for none. Who may not write what workers record leaves it
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
revoke execute on function "${schema}".pgworker_sweep_up() from public;

-- Jobs that no worker runs gather in front of those that are run, so that a bounded look at the first ones finds them. The tasks that a
-- worker serves are left out at once: as a rule nothing is left.
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
revoke execute on function "${schema}".pgworker_waiting_tasks(text[], interval, int) from public;

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
revoke execute on function "${schema}".pgworker_backlog(int) from public;

-- Immutable, and as fast as it need be: a worker adds to some rows every ten seconds.
create or replace function "${schema}".pgworker_add_counts(counts bigint[], more bigint[]) returns bigint[]
language sql immutable
set search_path = pg_catalog, pg_temp as $$
  select coalesce(array_agg((s.total << 7) | s.bucket order by s.bucket), '{}')
  from (select v & 127 as bucket, sum(v >> 7)::bigint as total from unnest(counts || more) v group by v & 127) s
$$;
comment on function "${schema}".pgworker_add_counts(bigint[], bigint[]) is
  'Adds two distributions of durations, as pgworker_task_minutes holds them.';
revoke execute on function "${schema}".pgworker_add_counts(bigint[], bigint[]) from public;

-- Called by every worker that records statistics; who comes first while there is no recent sample takes one. One that is dated later than
-- now, because the clock was set back, does not count. Where much is old, several calls delete it.
create or replace function "${schema}".pgworker_sample(interval_before interval, kept interval) returns boolean
language plpgsql volatile
set search_path = pg_catalog, pg_temp as $$
begin
  if exists (
    select from "${schema}".pgworker_samples s
    where s.taken_at > clock_timestamp() - interval_before and s.taken_at < clock_timestamp() + interval '1 minute')
  then
    return false;
  end if;
  begin
    lock table "${schema}".pgworker_samples in exclusive mode nowait;
  exception when lock_not_available then
    return false;
  end;
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
  'Records the backlog, unless another session has done so within the given interval or is doing so, and deletes what is older than the time for which '
  'it is kept: up to 1,000 samples and 15,000 other rows. Returns whether it has.';
revoke execute on function "${schema}".pgworker_sample(interval, interval) from public;
