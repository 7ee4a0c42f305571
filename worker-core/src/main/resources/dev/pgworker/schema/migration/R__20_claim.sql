-- The claim.

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
      null; -- an open transaction is creating it, with the first job
    end;
  end loop;
  return query
    select t.identifier, t.id from "${schema}"._private_tasks t where t.identifier = any(identifiers);
end
$$;
comment on function "${schema}".pgworker_task_ids(text[]) is
  'Ids of the given task identifiers; missing ones are created, in name order, and nothing is written when all exist. One that an open '
  'transaction is creating is left out: no other transaction can have a job of it.';
revoke execute on function "${schema}".pgworker_task_ids(text[]) from public;

-- The claim: which due jobs a worker locks next.
--
-- Queues are locked before jobs, and no claim waits for a row: what others hold is passed over. Of the claims of many jobs one is
-- under way at a time in a schema, so that each sees what the one before it has taken, and workers do not meet at the same rows.

create or replace function "${schema}".pgworker_allowed(flags jsonb, forbidden text[]) returns boolean
language sql immutable parallel safe as $$
  select forbidden is null or flags is null or not flags operator(pg_catalog.?|) forbidden
$$;
comment on function "${schema}".pgworker_allowed(jsonb, text[]) is 'Whether none of the flags of a job is forbidden.';
revoke execute on function "${schema}".pgworker_allowed(jsonb, text[]) from public;

create or replace function "${schema}".pgworker_short(payload json) returns json
language sql stable parallel safe as $$
  select case when pg_catalog.pg_column_size(payload) operator(pg_catalog.<=) 2000
    and pg_catalog.octet_length(payload::pg_catalog.text) operator(pg_catalog.<=) 8000 then payload end
$$;
comment on function "${schema}".pgworker_short(json) is
  'The payload if it is small; others are read just before their jobs run, so that a claim takes little memory.';
revoke execute on function "${schema}".pgworker_short(json) from public;

-- The row of a queue is changed all the time, and while a snapshot is held its former versions stay. The newest one has the last
-- index entry: an equality read forwards would meet all the others first.
create or replace function "${schema}".pgworker_queue_row(queue_id int)
returns table (tid tid, locked_at timestamptz, locked_by text, queue_name text)
language sql stable rows 1 as $$
  select q.ctid, q.locked_at, q.locked_by, q.queue_name from "${schema}"._private_job_queues q
  where q.id operator(pg_catalog.>=) $1 and q.id operator(pg_catalog.<=) $1 order by q.id desc limit 1
$$;
comment on function "${schema}".pgworker_queue_row(int) is 'The address of a queue''s row, whose lock it has, and its name.';
revoke execute on function "${schema}".pgworker_queue_row(int) from public;

-- The queues of due jobs in order, from the place "after" or the floors on, their rows locked, and the first jobs of each. A row that was
-- changed since it was found is no longer at the address that was found, so what is locked is free. Queues whose row, or that of the first
-- job, is locked take the place of no others.
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
      select j.job_queue_id as queue, j.priority, j.run_at, j.id, j.task_id, j.ctid as job_tid from "${schema}"._private_jobs j
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
        select j.priority, j.run_at, j.id, j.task_id, j.ctid as job_tid from "${schema}"._private_jobs j
        where l.queued and j.is_available and j.job_queue_id is not null and j.job_queue_id = s.queue and j.priority = l.priority
          and j.run_at <= now() and (j.run_at, j.id) >= (l.run_at, l.id)
          and j.task_id = any(task_ids) and "${schema}".pgworker_allowed(j.flags, forbidden)
        order by j.run_at, j.id limit 1) f limit 1) f
    where s.n > 0 and s.queue <> all(tried) and s.queue <> all(passed)),
  free_queue as materialized (
    select f.*, q.tid from first_job f cross join lateral "${schema}".pgworker_queue_row(f.queue) q
    where q.locked_at is null),
  held as (
    select f.*, q.ctid as row_tid, q.queue_name from free_queue f
    join "${schema}"._private_job_queues q on q.ctid = f.tid and q.locked_at is null
    join "${schema}"._private_jobs j on j.ctid = f.job_tid and j.is_available
    order by f.place limit most_queues for no key update of q skip locked for update of j skip locked),
  last_one as (
    select w.* from walk w
    where w.place = (select case when (select count(*) from held) < most_queues then max(w.place) else (select max(h.place) from held h) end from walk w))
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
        -- What was just given back may be of a better priority than what the floors let see.
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
revoke execute on function "${schema}".pgworker_take_queues( "${schema}".pgworker_request, "${schema}".pgworker_floor[], "${schema}".pgworker_floor, int, int, int[], boolean) from public;

-- Walk the due jobs of queues in order; of each free queue met, lock its row, then find its first jobs, as many as its run; continue until
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
  taken_here int;
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
    taken_here := coalesce(cardinality(found.queues), 0);
    again := again or anywhere or taken_here < least(found.free, most_queues);
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
    exit when anywhere or found.walked < most_rows and taken_here < most_queues or found.free = 0 and run_tids <> '{}';
    depth := depth - found.walked;
    walked := walked + found.walked;
    anywhere := depth <= 0 and run_tids = '{}';
    exit when depth <= 0 and not anywhere;
    most_queues := least(wanted, 2 + (wanted - cardinality(run_tids)) * (1 + cardinality(queues)) / (1 + cardinality(run_tids)));
  end loop;
  if run_tids = '{}' then
    -- The jobs that were found first have been changed.
    queues := null;
    queue_tids := null;
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
  'to look again soon, since another session held a row for the moment or there may be more. If there are jobs without a queue, it leaves them their places.';
revoke execute on function "${schema}".pgworker_claim_queued("${schema}".pgworker_request, int, "${schema}".pgworker_floor[], boolean) from public;

create or replace function "${schema}".pgworker_claim(
  request "${schema}".pgworker_request, wanted int, floors "${schema}".pgworker_floor[], dry boolean default false
) returns setof "${schema}".pgworker_claimed
language plpgsql volatile rows 100
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off
set enable_hashjoin = off set enable_mergejoin = off set jit = off set lock_timeout = '500ms'
set search_path = pg_catalog, pg_temp as $$
declare
  many constant int := 50;
  unqueued constant int[] := "${schema}".pgworker_unlimited(coalesce(request.unqueued_task_ids, request.task_ids));
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
  request.task_ids := "${schema}".pgworker_unlimited(request.task_ids);
  request.unqueued_task_ids := unqueued;
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
  -- The triggers that write ends have nothing to do.
  perform set_config('pgworker.ending', 'claimed', true);
  return query
    update "${schema}"._private_jobs j set attempts = j.attempts + 1, locked_at = claimed_at, locked_by = request.worker_id
      where j.ctid = any(taken)
      returning j.id, j.job_queue_id, names[array_position(queues, j.job_queue_id)], j.task_id,
        "${schema}".pgworker_short(j.payload), j.priority, j.run_at, j.attempts, j.max_attempts, j.last_error,
        case when j.created_at <> j.run_at then j.created_at end, case when j.updated_at <> j.created_at then j.updated_at end,
        j.key, j.revision, j.flags, j.ctid, j.locked_at;
  get diagnostics claimed = row_count;
  perform set_config('pgworker.ending', '', true);
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
  'first jobs, while it is not locked. The claim is known by its jobs'' ids and locked_at, which is the same for all. If fewer are returned than '
  'wanted, there is a last row without id, with the time as of which it has looked as locked_at, and 1 as priority if it is worth looking again soon. A '
  'claim of 50 jobs or more waits for its turn, for half a second, and fails with 55P03 then: ask for less. If it fails, ask for half as '
  'many; of one job "dry" tells which it would be, to be passed over.';
revoke execute on function "${schema}".pgworker_claim("${schema}".pgworker_request, int, "${schema}".pgworker_floor[], boolean) from public;

-- For jobs known by their ids: a single one that has just been announced, for example. What comes before them
-- in the order is not looked at.
create or replace function "${schema}".pgworker_claim_ids(request "${schema}".pgworker_request, job_ids bigint[])
returns setof "${schema}".pgworker_claimed
language plpgsql volatile rows 10
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off
set enable_hashjoin = off set enable_mergejoin = off set jit = off set lock_timeout = '20ms'
set search_path = pg_catalog, pg_temp as $$
declare
  claimed_at constant timestamptz := clock_timestamp();
  tasks constant int[] := "${schema}".pgworker_unlimited(request.task_ids);
  taken constant tid[] := array(
    select j.ctid from "${schema}"._private_jobs j
    where j.id = any(job_ids) and j.is_available and j.job_queue_id is null and j.run_at <= now()
      and j.task_id = any(tasks) and "${schema}".pgworker_allowed(j.flags, request.forbidden)
    for update skip locked);
  claimed int;
begin
  perform set_config('pgworker.ending', 'claimed', true);
  return query
    update "${schema}"._private_jobs j set attempts = j.attempts + 1, locked_at = claimed_at, locked_by = request.worker_id
      where j.ctid = any(taken)
      returning j.id, null::int, null::text, j.task_id, "${schema}".pgworker_short(j.payload),
        j.priority, j.run_at, j.attempts, j.max_attempts, j.last_error, j.created_at, j.updated_at, j.key, j.revision, j.flags, j.ctid, j.locked_at;
  get diagnostics claimed = row_count;
  perform set_config('pgworker.ending', '', true);
  if claimed < cardinality(taken) then
    raise exception 'a trigger keeps a job from being claimed' using errcode = '27000';
  end if;
end
$$;
comment on function "${schema}".pgworker_claim_ids("${schema}".pgworker_request, bigint[]) is
  'As pgworker_claim, of those of these jobs that are due, have no queue and are held by no session.';
revoke execute on function "${schema}".pgworker_claim_ids("${schema}".pgworker_request, bigint[]) from public;
