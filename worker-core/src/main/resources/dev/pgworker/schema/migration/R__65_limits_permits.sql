-- Limits: permits that come back, and how much of a limit is used.

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
revoke execute on function "${schema}".pgworker_return_permits(bigint[]) from public;

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
  perform from "${schema}".pgworker_limit_state s where s.name = 'gates' for update skip locked;
  if not found then
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
revoke execute on function "${schema}".pgworker_check_permits() from public;

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
revoke execute on function "${schema}".pgworker_forget_buckets(bigint[]) from public;

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
revoke execute on function "${schema}".pgworker_limit_usage(text, text, int) from public;

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
revoke execute on function "${schema}".pgworker_job_limits(bigint) from public;

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
revoke execute on function "${schema}".pgworker_limited_totals() from public;
