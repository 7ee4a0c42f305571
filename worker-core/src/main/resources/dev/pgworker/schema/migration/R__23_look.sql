-- Where due jobs begin, and when the next ones are due. Nothing here locks or changes anything.

create or replace function "${schema}".pgworker_look(
  request "${schema}".pgworker_request, floors "${schema}".pgworker_floor[] default null
) returns table (queued boolean, priority int, run_at timestamptz, id bigint, due_in float8, at timestamptz, took float8)
language plpgsql stable rows 10
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off
set enable_hashjoin = off set enable_mergejoin = off set jit = off set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
  task_ids constant int[] := "${schema}".pgworker_unlimited(request.task_ids);
  unqueued constant int[] := "${schema}".pgworker_unlimited(coalesce(request.unqueued_task_ids, request.task_ids));
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
revoke execute on function "${schema}".pgworker_look("${schema}".pgworker_request, "${schema}".pgworker_floor[]) from public;
