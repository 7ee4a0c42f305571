-- Limits: making them hold for jobs that are there, and how much of them is used.

create or replace function "${schema}".pgworker_hold_permits(job_ids bigint[]) returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp as $$
begin
  insert into "${schema}".pgworker_limit_buckets as b (limit_id, value, holders)
    select u.limit_id, u.value, array_agg(j.id)
    from "${schema}"._private_jobs j
    join "${schema}".pgworker_limited_tasks k on k.task_id = j.task_id
    cross join lateral unnest(k.limit_ids, "${schema}".pgworker_limit_values(j.payload, k.fields)) u(limit_id, value)
    join "${schema}".pgworker_limits l on l.id = u.limit_id and l.max_running is not null
    where j.id = any(job_ids) and j.locked_at is not null and j.locked_at <> '9999-01-01 00:00:00+00'
    group by u.limit_id, u.value
    on conflict (limit_id, value) do update set holders = array(select unnest(b.holders) union select unnest(excluded.holders));
end
$$;
comment on function "${schema}".pgworker_hold_permits(bigint[]) is 'Gives permits to those of the jobs that run; for the caller that has the turn.';

-- Waiting jobs of which another limit holds than their lane knows. Only those of the tasks that are concerned are read.
create or replace function "${schema}".pgworker_move_waiting(most int) returns boolean
language plpgsql volatile
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set jit = off
set search_path = pg_catalog, pg_temp as $$
declare
  lane "${schema}".pgworker_limit_lanes;
  tids tid[];
  moved bigint := 0;
begin
  for lane in
    select l.* from "${schema}".pgworker_limit_lanes l
    where not exists (select from "${schema}".pgworker_limited_tasks k where k.task_id = l.task_id and k.limit_ids = l.limit_ids)
    order by l.id limit 100
  loop
    tids := array(
      select j.ctid from "${schema}"._private_jobs j
      where j.locked_at = '9999-01-01 00:00:00+00' and j.locked_by collate "C" = 'pgworker-limit:' || lane.name
      limit most for update skip locked);
    if tids <> '{}' then
      moved := moved + "${schema}".pgworker_show(tids);
      most := most - cardinality(tids);
      exit when most <= 0;
    elsif not exists (
      select from "${schema}"._private_jobs j
      where j.locked_at = '9999-01-01 00:00:00+00' and j.locked_by collate "C" = 'pgworker-limit:' || lane.name) then
      delete from "${schema}".pgworker_limit_lanes l where l.id = lane.id;
    end if;
  end loop;
  return moved > 0;
end
$$;
comment on function "${schema}".pgworker_move_waiting(int) is
  'Moves some jobs that wait in lanes of other limits than theirs, and forgets lanes that are empty then; returns whether it has moved any. For the caller that has the turn.';

-- Goes through the jobs in the order of their ids, once for all limits that are new: parks those that no worker holds, and gives permits to
-- those that run. A row that is locked for longer than patience allows holds up nothing: ordinary claims leave it out. Transactions that
-- have written before a limit was there may still add jobs that are not parked, which later passes find: one when they have ended, one
-- every half a minute until then, and one every hour for whatever has come past the triggers. One that has a snapshot from before and has
-- written nothing yet is not visible: a limit is not settled within its first minute.
create or replace function "${schema}".pgworker_apply_limits(most int default 5000) returns text
language plpgsql volatile security definer
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set jit = off set lock_timeout = '500ms'
set search_path = pg_catalog, pg_temp as $$
declare
  patience constant interval := '10 seconds';
  old constant interval := '1 minute';
  moment constant timestamptz := clock_timestamp();
  over constant bigint := txid_snapshot_xmin(txid_current_snapshot());
  pass "${schema}".pgworker_limit_passes;
  seen record;
  held bigint[];
begin
  if most is null or most not between 1 and 100000 then
    perform "${schema}".pgworker_wrong('most', 'must be between 1 and 100000', most::text);
  elsif current_setting('transaction_isolation') <> 'read committed' then
    raise exception 'Limits are applied at the isolation level read committed only' using errcode = '25001';
  end if;
  select * into pass from "${schema}".pgworker_limit_passes p for update skip locked;
  if not found then return 'busy'; end if;
  begin
    lock table "${schema}".pgworker_limit_turn in exclusive mode;
  exception when lock_not_available then
    return 'busy';
  end;
  perform "${schema}".pgworker_take_arrivals(moment);
  if "${schema}".pgworker_move_waiting(most) then return 'more'; end if;
  delete from "${schema}".pgworker_limits l
    where l.id in (select m.id from "${schema}".pgworker_limits m where m.state = 'removing' for update skip locked)
      and not exists (select from "${schema}".pgworker_limit_lanes n where l.id = any(n.limit_ids));
  if pass.place is null then
    if not exists (
      select from "${schema}".pgworker_limits l
      where l.state = 'applying' or pass.began_at < moment - interval '1 hour' or pass.began_at is null
        or not l.settled and (l.made_by < over and l.created_at < moment - old or pass.began_at < moment - interval '30 seconds')) then
      perform "${schema}".pgworker_forget_limits(moment);
      return case when exists (select from "${schema}".pgworker_limits l where not l.settled) then 'later' else 'done' end;
    end if;
    pass.place := -9223372036854775808;
    pass.began_at := moment;
    pass.missed := '{}';
    pass.limits := array(select l.id from "${schema}".pgworker_limits l);
    pass.settles := array(select l.id from "${schema}".pgworker_limits l where l.made_by < over and l.created_at < moment - old);
  end if;
  with piece as materialized (
    select j.id, j.ctid as tid, j.task_id, j.is_available, j.locked_at from "${schema}"._private_jobs j
    where j.id > pass.place order by j.id limit most),
  wanted as materialized (
    select s.id, s.tid, s.is_available, s.locked_at from piece s
    where s.task_id in (select k.task_id from "${schema}".pgworker_limited_tasks k)
    union all
    select j.id, j.ctid, j.is_available, j.locked_at from "${schema}"._private_jobs j where j.id = any(pass.missed)),
  mine as materialized (
    select j.id, j.ctid as tid from "${schema}"._private_jobs j
    where j.ctid = any(array(select w.tid from wanted w where w.is_available)) and j.is_available for update skip locked)
  select array(select m.tid from mine m) as waiting, (select max(s.id) from piece s) as last,
      array(select w.id from wanted w where w.is_available and w.id not in (select m.id from mine m)) as missed,
      array(select w.id from wanted w where w.locked_at <> '9999-01-01 00:00:00+00') as running
    into seen;
  if seen.waiting <> '{}' then
    perform "${schema}".pgworker_show(seen.waiting);
  end if;
  if seen.running <> '{}' then
    perform "${schema}".pgworker_hold_permits(seen.running);
  end if;
  if seen.missed <> '{}' and pass.began_at <= moment - patience then
    seen.missed := '{}';
    pass.settles := '{}'; -- a later pass finds them
  end if;
  pass.missed := seen.missed;
  if seen.last is null and pass.missed = '{}' then
    held := array(select l.id from "${schema}".pgworker_limits l where l.id = any(pass.limits) for update skip locked);
    update "${schema}".pgworker_limits l set
        state = case when l.state = 'applying' then 'active' else l.state end, settled = l.settled or l.id = any(pass.settles)
      where l.id = any(held) and (l.state = 'applying' or not l.settled and l.id = any(pass.settles));
    pass.place := null;
    perform pg_notify('pgworker:limits', '');
  else
    pass.place := coalesce(seen.last, pass.place);
  end if;
  update "${schema}".pgworker_limit_passes p set
    place = pass.place, began_at = pass.began_at, missed = pass.missed, limits = pass.limits, settles = pass.settles;
  return case when pass.place is null or seen.last is not null then 'more' else 'busy' end;
end
$$;
comment on function "${schema}".pgworker_apply_limits(int) is
  'Makes limits hold for the jobs that are there, a piece at a time. Returns "more" if it is to be called again at once, "busy" soon, "later" in a '
  'second, "done" if there is nothing left to do.';

create or replace function "${schema}".pgworker_forget_limits(moment timestamptz) returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp as $$
begin
  delete from "${schema}".pgworker_limit_lanes l where l.due_at = 'infinity' and l.used_at < moment - interval '1 minute';
  delete from "${schema}".pgworker_limit_buckets b where not exists (select from "${schema}".pgworker_limits l where l.id = b.limit_id);
  delete from "${schema}".pgworker_limit_buckets b
    using "${schema}".pgworker_limits l, "${schema}".pgworker_limit_rooms(array(
      select u.id from "${schema}".pgworker_limit_buckets u
      where not exists (
        select from "${schema}".pgworker_limit_lanes n cross join lateral unnest(n.buckets) k(id) where k.id = u.id)), moment) r
    where b.id = r.id and l.id = b.limit_id and coalesce(r.holders, '{}') = '{}' and (r.tokens is null or r.tokens >= l.burst);
end
$$;
comment on function "${schema}".pgworker_forget_limits(timestamptz) is
  'Forgets lanes that have been empty for a while, and buckets that are as good as new; for the caller that has the turn.';

create or replace function "${schema}".pgworker_lane_size(names text[], most bigint) returns bigint
language plpgsql stable
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set jit = off
set search_path = pg_catalog, pg_temp as $$
begin
  return (
    select count(*) from (
      select from unnest(names) l(name)
      cross join lateral (
        select from "${schema}"._private_jobs j
        where j.locked_at = '9999-01-01 00:00:00+00' and j.locked_by collate "C" = 'pgworker-limit:' || l.name
          and j.run_at <= now() limit most) j limit most) w);
end
$$;
comment on function "${schema}".pgworker_lane_size(text[], bigint) is 'How many due jobs wait in these lanes, at most so many are counted.';

create or replace function "${schema}".pgworker_limit_usage(name text, after_value text default null, most int default 100)
returns table (value text, running bigint, waiting bigint, tokens float8, next_at timestamptz)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp as $$
begin
  if most is null or most not between 1 and 10000 then
    perform "${schema}".pgworker_wrong('most', 'must be between 1 and 10000', most::text);
  end if;
  return query
    select b.value::text, coalesce(cardinality(r.holders), 0)::bigint, "${schema}".pgworker_lane_size(array(
        select n.name::text from "${schema}".pgworker_limit_lanes n where b.id = any(n.buckets)), 10000), r.tokens, r.next_at
    from (
      select b.id, b.value from "${schema}".pgworker_limits l join "${schema}".pgworker_limit_buckets b on b.limit_id = l.id
      where l.name = pgworker_limit_usage.name collate "C" and (after_value is null or b.value > after_value collate "C")
      order by b.value limit most) b
    cross join lateral "${schema}".pgworker_limit_rooms(array[b.id], clock_timestamp()) r
    order by b.value;
end
$$;
comment on function "${schema}".pgworker_limit_usage(text, text, int) is
  'The values for which a limit has been used lately, in their order after the given one: how many jobs run, how many wait (10,000 at most are '
  'counted), and of a rate the tokens and, if there is none, when the next one is there. Values come from payloads.';

create or replace function "${schema}".pgworker_job_limits(job_id bigint)
returns table (
  name text, field text[], running bigint, max_running int, tokens float8, max_starts int, period interval, next_at timestamptz, state text
)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp as $$
begin
  return query
    select l.name::text, l.field, coalesce(cardinality(r.holders), 0)::bigint, l.max_running, r.tokens, l.max_starts, l.period, r.next_at, l.state
    from "${schema}"._private_jobs j
    join "${schema}".pgworker_limited_tasks k on k.task_id = j.task_id
    cross join lateral unnest(k.limit_ids, "${schema}".pgworker_limit_values(j.payload, k.fields)) u(id, value)
    join "${schema}".pgworker_limits l on l.id = u.id
    left join "${schema}".pgworker_limit_buckets b on b.limit_id = l.id and b.value = u.value collate "C"
    left join lateral "${schema}".pgworker_limit_rooms(array[b.id], clock_timestamp()) r on true
    where j.id = pgworker_job_limits.job_id
    order by l.name;
end
$$;
comment on function "${schema}".pgworker_job_limits(bigint) is
  'The limits that a job is subject to, and how much of each is used for its value, which is not told: values come from payloads.';

create or replace function "${schema}".pgworker_limited_totals() returns table (name text, waiting bigint, used bigint)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp as $$
begin
  return query
    select l.name::text, "${schema}".pgworker_lane_size(array(
        select n.name::text from "${schema}".pgworker_limit_lanes n where l.id = any(n.limit_ids)), 10000),
      (select coalesce(sum(cardinality(r.holders)), 0)::bigint from "${schema}".pgworker_limit_rooms(array(
        select b.id from "${schema}".pgworker_limit_buckets b where b.limit_id = l.id and b.holders <> '{}'), clock_timestamp()) r)
    from "${schema}".pgworker_limits l
    order by l.name;
end
$$;
comment on function "${schema}".pgworker_limited_totals() is 'Of each limit how many jobs wait for it, up to 10,000, and how many run that it counts.';

revoke execute on function "${schema}".pgworker_hold_permits, "${schema}".pgworker_move_waiting, "${schema}".pgworker_apply_limits,
  "${schema}".pgworker_forget_limits, "${schema}".pgworker_lane_size, "${schema}".pgworker_limit_usage, "${schema}".pgworker_job_limits,
  "${schema}".pgworker_limited_totals from public;
