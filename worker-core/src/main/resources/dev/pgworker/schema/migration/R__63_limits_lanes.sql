-- Limits: lanes that have jobs, in turn, and their floors.

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
revoke execute on function "${schema}".pgworker_make_lanes(text[]) from public;

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
revoke execute on function "${schema}".pgworker_lanes_in_turn(int[], text[], text[], bigint[], bigint[]) from public;

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
revoke execute on function "${schema}".pgworker_next_parked(text[], timestamptz) from public;

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
revoke execute on function "${schema}".pgworker_parked_lanes(text, int) from public;

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
revoke execute on function "${schema}".pgworker_lower_floors(text[]) from public;

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
revoke execute on function "${schema}".pgworker_raise_floors(text[], int[], timestamptz[], bigint[], text[]) from public;

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
  perform from "${schema}".pgworker_limit_state s where s.name = 'floors' for update skip locked;
  if not found then
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
  perform from "${schema}".pgworker_limit_state s where s.name = 'gates' for update;
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
revoke execute on function "${schema}".pgworker_check_floors() from public;

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
revoke execute on function "${schema}".pgworker_forget_lanes(text[]) from public;
