-- Limits: claiming jobs of limited tasks, and making limits hold for jobs that are there.

-- Lanes and buckets are changed by those alone who have locked pgworker_limit_turn, which is always empty: one at a time in a schema. A
-- claim has the rights of who claims, so that a role that sees no job sees no payload by it. Lanes start in the order of their "pass", a
-- virtual time, which a start takes forward by 1 / weight; one that has been empty begins where the others are.

create or replace function "${schema}".pgworker_take_arrivals(moment timestamptz) returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp as $$
declare
  taken "${schema}".pgworker_limit_arrivals[];
  front float8;
begin
  with gone as (
    delete from "${schema}".pgworker_limit_arrivals a
    where a.ctid = any(array(select t.ctid from "${schema}".pgworker_limit_arrivals t limit 5000 for update skip locked))
    returning a as arrival)
  select array_agg(g.arrival) into taken from gone g;
  if taken is null then return; end if;
  select coalesce(min(l.pass) filter (where l.due_at <= moment and l.blocked_by is null), min(l.pass) filter (where l.due_at <= moment), max(l.pass), 0)
    into front from "${schema}".pgworker_limit_lanes l;
  insert into "${schema}".pgworker_limit_buckets (limit_id, value)
    select distinct u.limit_id, u.value from unnest(taken) t cross join lateral unnest(t.limit_ids, t.bucket_values) u(limit_id, value)
    where not exists (
      select from "${schema}".pgworker_limit_buckets b where b.limit_id = u.limit_id and b.value = u.value collate "C");
  insert into "${schema}".pgworker_limit_lanes as l (name, task_id, queue_id, priority, flags, limit_ids, buckets, share, due_at, pass)
    select t.lane, t.task_id, t.queue_id, t.priority, t.flags, t.limit_ids, k.buckets, k.share, t.run_at,
      greatest(front, case when k.share is not null then (select max(s.pass) from "${schema}".pgworker_limit_lanes s where s.share = k.share) end)
    from (select distinct on (a.lane) a.* from unnest(taken) a order by a.lane, a.run_at) t
    cross join lateral (
      select array_agg(b.id order by u.n) as buckets, min(b.id) filter (where m.weights is not null) as share
      from unnest(t.limit_ids, t.bucket_values) with ordinality u(limit_id, value, n)
      join "${schema}".pgworker_limit_buckets b on b.limit_id = u.limit_id and b.value = u.value collate "C"
      left join "${schema}".pgworker_limits m on m.id = u.limit_id) k
    on conflict (name) do update set
      pass = case when l.due_at > moment then greatest(l.pass, front) else l.pass end,
      due_at = least(l.due_at, excluded.due_at), due_id = case when excluded.due_at <= l.due_at then 0 else l.due_id end;
end
$$;
comment on function "${schema}".pgworker_take_arrivals(timestamptz) is
  'Makes the lanes of jobs that have been parked lately, or notes when they have their first job; for the caller that has the turn.';

-- Of the jobs that hold a permit some have ended since. The newest version of a row has the last index entry, see pgworker_queue_row.
create or replace function "${schema}".pgworker_limit_rooms(bucket_ids bigint[], moment timestamptz)
returns table (id bigint, room bigint, holders bigint[], tokens float8, next_at timestamptz)
language plpgsql stable rows 10
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off
set enable_hashjoin = off set enable_mergejoin = off set jit = off
set search_path = pg_catalog, pg_temp as $$
begin
  return query
    select b.id,
      case when l.max_running is not null then l.max_running - cardinality(h.ids)
        when l.max_starts is not null then floor(f.tokens)::bigint else 1000000 end,
      h.ids, f.tokens, case when f.tokens < 1 then moment + (1 - f.tokens) / r.rate * interval '1 second' end
    from unnest(bucket_ids) g(id)
    cross join lateral (
      select n.* from "${schema}".pgworker_limit_buckets n where n.id >= g.id and n.id <= g.id order by n.id desc limit 1) b
    join "${schema}".pgworker_limits l on l.id = b.limit_id and l.state <> 'removing'
    cross join lateral (
      select case when l.max_running is not null then array(
        select u.id from unnest(b.holders) u(id)
        where exists (
          select from "${schema}"._private_jobs j
          where j.id = u.id and j.locked_at is not null and j.locked_at <> '9999-01-01 00:00:00+00')) end as ids) h
    cross join lateral (select l.max_starts / extract(epoch from l.period)::float8 as rate) r
    cross join lateral (
      select case when l.max_starts is not null then least(l.burst, coalesce(
        b.tokens + r.rate * greatest(0, extract(epoch from moment - b.filled_at)::float8), l.burst)) end as tokens) f;
end
$$;
comment on function "${schema}".pgworker_limit_rooms(bigint[], timestamptz) is
  'How many more jobs may start of each bucket; of a limit of concurrency the jobs that run, of a rate the tokens and, if there is none, when the next '
  'one is there.';

-- Lanes in the order of their turns, whose passes count as at most 100 behind the first, and how many jobs of each: as many as the fullest of its buckets allows, and of few lanes more than one at a
-- time, by their weights; of a named queue one. All lanes of a bucket that is found full are left out until it has room.
create or replace function "${schema}".pgworker_choose_lanes(
  request "${schema}".pgworker_request, wanted bigint, moment timestamptz, out lanes bigint[], out amounts bigint[], out weights float8[],
  out looked int, out least_pass float8
)
language plpgsql volatile
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_mergejoin = off
set max_parallel_workers_per_gather = 0 set jit = off set search_path = pg_catalog, pg_temp as $$
declare
  open_buckets constant bigint[] := array(
    select r.id from "${schema}".pgworker_limit_rooms(array(
      select b.id from "${schema}".pgworker_limit_buckets b where b.waited and (b.next_at is null or b.next_at <= moment)), moment) r
    where r.room > 0);
  found record;
  lane record;
  ids bigint[];
  rooms bigint[];
  next_ats timestamptz[];
  left_over bigint := wanted;
  amount bigint;
  at int;
  full_at int;
  full_buckets bigint[];
  queues int[] := '{}';
begin
  with tasks as materialized (
    select k.task_id, k.limit_ids from "${schema}".pgworker_limited_tasks k
    where k.task_id = any(request.task_ids)
      and not exists (select from "${schema}".pgworker_limits m where m.id = any(k.limit_ids) and m.state = 'applying')),
  weights as materialized (
    select b.id as share, w.weight::float8 as weight
    from "${schema}".pgworker_limits m cross join lateral jsonb_each_text(case when jsonb_typeof(m.weights) = 'object' then m.weights end) w(value, weight)
    cross join lateral (
      select n.id from "${schema}".pgworker_limit_buckets n where n.limit_id = m.id and n.value = w.value collate "C" offset 0) b)
  select coalesce(array_agg(c.id), '{}') as ids, array_agg(c.weight) as weights, max(c.total) as total, max(c.top) - 100 as least_pass into found from (
    select l.id, coalesce(w.weight, 1) as weight, sum(coalesce(w.weight, 1)) over () as total, max(l.pass) over () as top
    from "${schema}".pgworker_limit_lanes l
    join tasks k on k.task_id = l.task_id and k.limit_ids = l.limit_ids
    left join weights w on w.share = l.share
    where l.due_at <= moment and l.retry_at <= moment
      and (l.blocked_by is null or l.blocked_by = any(open_buckets)) and "${schema}".pgworker_allowed(l.flags, request.forbidden)
    order by l.priority, greatest(l.pass, max(l.pass) over () - 100), l.due_at, l.id limit wanted) c;
  looked := cardinality(found.ids);
  least_pass := found.least_pass;
  select array_agg(r.id), array_agg(r.room), array_agg(r.next_at) into ids, rooms, next_ats
    from "${schema}".pgworker_limit_rooms(array(
      select distinct unnest(l.buckets) from "${schema}".pgworker_limit_lanes l where l.id = any(found.ids)), moment) r;
  for lane in
    select g.id, g.weight, l.buckets, l.queue_id from unnest(found.ids, found.weights) with ordinality g(id, weight, n)
    join "${schema}".pgworker_limit_lanes l on l.id = g.id order by g.n
  loop
    continue when lane.queue_id = any(queues);
    amount := case when lane.queue_id is null then greatest(1, floor(wanted * lane.weight / found.total)::bigint) else 1 end;
    full_at := null;
    for n in 1..cardinality(lane.buckets) loop
      at := array_position(ids, lane.buckets[n]);
      if rooms[at] < amount then
        amount := rooms[at];
        full_at := at;
      end if;
    end loop;
    if amount <= 0 then
      full_buckets := full_buckets || ids[full_at];
    elsif left_over > 0 then
      amount := least(amount, left_over);
      left_over := left_over - amount;
      for n in 1..cardinality(lane.buckets) loop
        at := array_position(ids, lane.buckets[n]);
        if at is not null then
          rooms[at] := rooms[at] - amount;
        end if;
      end loop;
      lanes := lanes || lane.id;
      amounts := amounts || amount;
      weights := weights || lane.weight;
      if lane.queue_id is not null then
        queues := queues || lane.queue_id;
      end if;
    end if;
  end loop;
  if full_buckets is not null then
    update "${schema}".pgworker_limit_lanes l set blocked_by = (select b from unnest(l.buckets) b where b = any(full_buckets) limit 1)
      where l.buckets && full_buckets and l.due_at <= moment and (l.blocked_by is null or l.blocked_by = any(open_buckets) and l.blocked_by <> all(full_buckets));
    update "${schema}".pgworker_limit_buckets b set waited = true, next_at = u.next_at
      from unnest(ids, next_ats) u(id, next_at) where b.id = u.id and b.id = any(full_buckets);
  end if;
  update "${schema}".pgworker_limit_buckets b set waited = false
    where b.id = any(open_buckets)
      and b.id <> all(array(select distinct l.blocked_by from "${schema}".pgworker_limit_lanes l where l.blocked_by = any(open_buckets)));
end
$$;
comment on function "${schema}".pgworker_choose_lanes("${schema}".pgworker_request, bigint, timestamptz) is
  'Lanes whose jobs may start now, and how many of each, with their weights; and how many lanes it has looked at. For the caller that has the turn.';

-- A job of a named queue needs the queue as well. A lane without a free job, because the row or the queue is locked, is tried again
-- soon, and each time later.
create or replace function "${schema}".pgworker_start_limited(
  request "${schema}".pgworker_request, lanes bigint[], amounts bigint[], weights float8[], least_pass float8, moment timestamptz, dry boolean
) returns "${schema}".pgworker_claimed[]
language plpgsql volatile
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off
set enable_hashjoin = off set enable_mergejoin = off set jit = off
set search_path = pg_catalog, pg_temp as $$
declare
  passed constant bigint[] := coalesce(request.passed, '{}');
  queue record;
  tids tid[];
  ids bigint[];
  job_lanes bigint[];
  jobs "${schema}".pgworker_claimed[];
begin
  select coalesce(array_agg(h.id), '{}') as ids, array_agg(h.tid) as tids, array_agg(h.queue_name) as names into queue from (
    select q.id, q.ctid as tid, q.queue_name
    from (select distinct l.queue_id from unnest(lanes) g(id) join "${schema}".pgworker_limit_lanes l on l.id = g.id and l.queue_id is not null) l
    cross join lateral "${schema}".pgworker_queue_row(l.queue_id) r
    join "${schema}"._private_job_queues q on q.ctid = r.tid and q.locked_at is null for no key update of q skip locked) h;
  select array_agg(p.tid), array_agg(p.id), array_agg(p.lane) into tids, ids, job_lanes from (
    select j.tid, j.id, l.id as lane
    from unnest(lanes, amounts) with ordinality g(lane, amount, n)
    join "${schema}".pgworker_limit_lanes l on l.id = g.lane and (l.queue_id is null or l.queue_id = any(queue.ids))
    cross join lateral (
      select j.ctid as tid, j.id from "${schema}"._private_jobs j
      where j.locked_at = '9999-01-01 00:00:00+00' and j.locked_by collate "C" = 'pgworker-limit:' || l.name and j.priority = l.priority
        and (j.run_at, j.id) >= (l.due_at, l.due_id) and j.run_at <= moment and j.id <> all(passed)
      order by j.run_at, j.id limit g.amount for update skip locked) j) p;
  if dry then
    return array(
      select row(j.id, null, null, j.task_id, null, j.priority, j.run_at, j.attempts, j.max_attempts, null, null, null, null, null, null, j.ctid, null)
        ::"${schema}".pgworker_claimed from "${schema}"._private_jobs j where j.ctid = any(tids[1:1]));
  end if;
  update "${schema}"._private_job_queues q set locked_at = moment, locked_by = request.worker_id
    where q.ctid = any(array(
      select u.tid from unnest(queue.ids, queue.tids) u(id, tid)
      where u.id in (select l.queue_id from "${schema}".pgworker_limit_lanes l where l.id = any(job_lanes))));
  with started as (
    update "${schema}"._private_jobs j set attempts = j.attempts + 1, locked_at = moment, locked_by = request.worker_id
      where j.ctid = any(tids)
      returning row(j.id, j.job_queue_id, queue.names[array_position(queue.ids, j.job_queue_id)], j.task_id, "${schema}".pgworker_short(j.payload),
        j.priority, j.run_at, j.attempts, j.max_attempts, j.last_error, j.created_at, j.updated_at, j.key, j.revision, j.flags, j.ctid,
        j.locked_at)::"${schema}".pgworker_claimed as job)
  select array_agg(s.job) into jobs from started s;
  if coalesce(cardinality(jobs), 0) < coalesce(cardinality(tids), 0) then
    raise exception 'a trigger keeps a job from being claimed' using errcode = '27000';
  end if;
  update "${schema}".pgworker_limit_buckets b set
      holders = case when r.holders is null then '{}' else array(select unnest(r.holders) union select unnest(n.ids)) end, tokens = r.tokens - cardinality(n.ids), filled_at = moment
    from (
      select u.bucket, array_agg(p.id) as ids from unnest(job_lanes, ids) p(lane, id)
      join "${schema}".pgworker_limit_lanes l on l.id = p.lane cross join lateral unnest(l.buckets) u(bucket) group by u.bucket) n
    join "${schema}".pgworker_limit_rooms(array(
      select distinct unnest(l.buckets) from "${schema}".pgworker_limit_lanes l where l.id = any(job_lanes)), moment) r on r.id = n.bucket
    where b.id = n.bucket;
  update "${schema}".pgworker_limit_lanes l set
      due_at = coalesce(f.run_at, 'infinity'), due_id = coalesce(f.id, 0), blocked_by = null, used_at = moment,
      tries = case when f.started > 0 then 0 else least(l.tries + 1, 8) end,
      retry_at = case when f.started > 0 then '-infinity' else moment + interval '4 ms' * 2 ^ least(l.tries, 8) end,
      pass = case when l.share is null and f.started > 0 then greatest(l.pass, least_pass) + f.started / f.weight else l.pass end
    from (
      select g.lane, g.weight, j.run_at, j.id, cardinality(array_positions(job_lanes, g.lane)) as started
      from unnest(lanes, weights) g(lane, weight)
      join "${schema}".pgworker_limit_lanes o on o.id = g.lane
      left join lateral (
        select j.run_at, j.id from "${schema}"._private_jobs j
        where j.locked_at = '9999-01-01 00:00:00+00' and j.locked_by collate "C" = 'pgworker-limit:' || o.name and j.priority = o.priority
          and (j.run_at, j.id) >= (o.due_at, o.due_id)
        order by j.run_at, j.id limit 1) j on true) f
    where l.id = f.lane;
  update "${schema}".pgworker_limit_lanes l set pass = greatest(l.pass, least_pass) + s.started
    from (
      select o.share, sum(cardinality(array_positions(job_lanes, g.lane)) / g.weight) as started
      from unnest(lanes, weights) g(lane, weight)
      join "${schema}".pgworker_limit_lanes o on o.id = g.lane and o.share is not null
      group by o.share) s
    where l.share = s.share and s.started > 0;
  return jobs;
end
$$;
comment on function "${schema}".pgworker_start_limited("${schema}".pgworker_request, bigint[], bigint[], float8[], float8, timestamptz, boolean) is
  'Claims so many jobs of these lanes, notes them in their buckets, and takes the lanes to their next jobs and further back in the order of turns; for '
  'the caller that has the turn. Dry, it returns which job would be the first.';

create or replace function "${schema}".pgworker_claim_limited(request "${schema}".pgworker_request, wanted int, dry boolean default false)
returns setof "${schema}".pgworker_claimed
language plpgsql volatile rows 10
set max_parallel_workers_per_gather = 0 set jit = off set lock_timeout = '100ms' set search_path = pg_catalog, pg_temp as $$
declare
  moment timestamptz;
  chosen record;
  started "${schema}".pgworker_claimed[];
  left_over int := wanted;
begin
  if wanted is null or wanted not between 1 and 100000 then
    perform "${schema}".pgworker_wrong('wanted', 'must be between 1 and 100000', wanted::text);
  elsif current_setting('transaction_isolation') <> 'read committed' then
    raise exception 'Limited jobs are claimed at the isolation level read committed only' using errcode = '25001';
  end if;
  lock table "${schema}".pgworker_limit_turn in exclusive mode;
  moment := clock_timestamp();
  perform "${schema}".pgworker_take_arrivals(moment);
  for round in 1..20 loop
    chosen := "${schema}".pgworker_choose_lanes(request, left_over, moment);
    if chosen.lanes is not null then
      started := "${schema}".pgworker_start_limited(
        request, chosen.lanes, chosen.amounts, chosen.weights, chosen.least_pass, moment, dry);
      return query select * from unnest(started);
      exit when dry;
      left_over := left_over - coalesce(cardinality(started), 0);
    end if;
    exit when chosen.looked = 0 or left_over = 0;
  end loop;
  -- Others are notified of what waits for a bucket that has room and is not for this worker: once, as it waits no longer.
  update "${schema}".pgworker_limit_lanes l set blocked_by = null
    where l.blocked_by = any(array(
        select r.id from "${schema}".pgworker_limit_rooms(array(
          select b.id from "${schema}".pgworker_limit_buckets b where b.waited and b.next_at is null), moment) r
        where r.room > 0))
      and (l.task_id <> all(request.task_ids) or not "${schema}".pgworker_allowed(l.flags, request.forbidden));
  if found then
    perform pg_notify('pgworker:limits', '');
  end if;
  return next row(null, null, null, null, null, (left_over > 0 and chosen.looked > 0)::int, (
      select min(t.at) from (
        select greatest(l.due_at, l.retry_at) as at from "${schema}".pgworker_limit_lanes l
          where l.task_id = any(request.task_ids) and l.blocked_by is null and greatest(l.due_at, l.retry_at) > moment
        union all
        select b.next_at from "${schema}".pgworker_limit_buckets b where b.waited
        union all
        select r.next_at from "${schema}".pgworker_limit_rooms(array(
          select b.id from "${schema}".pgworker_limit_buckets b where b.waited and b.next_at is null and b.tokens is not null), moment) r) t
      where isfinite(t.at)),
    null, null, null, null, null, null, null, null, null, clock_timestamp())::"${schema}".pgworker_claimed;
end
$$;
comment on function "${schema}".pgworker_claim_limited("${schema}".pgworker_request, int, boolean) is
  'Claims jobs of limited tasks as pgworker_claim those of others, as far as their limits allow. The last row has no id; its priority is 1 if it is worth '
  'claiming again at once, its run_at is when the next job may start as far as time is in the way, and its locked_at the time. It waits for others '
  'that claim so, a tenth of a second at most, and fails with 55P03 then.';

revoke execute on function "${schema}".pgworker_take_arrivals, "${schema}".pgworker_limit_rooms, "${schema}".pgworker_choose_lanes,
  "${schema}".pgworker_start_limited, "${schema}".pgworker_claim_limited from public;
