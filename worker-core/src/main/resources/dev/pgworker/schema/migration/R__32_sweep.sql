-- The sweep: finds dead workers and old locks.

-- Any role may have written the metadata.
create or replace function "${schema}".pgworker_published(metadata jsonb, name text, most numeric) returns interval
language sql immutable parallel safe as $$
  select case
    when coalesce(pg_catalog.jsonb_typeof(metadata operator(pg_catalog.->) name) operator(pg_catalog.<>) 'number', true) then null
    when (metadata operator(pg_catalog.->>) name)::numeric operator(pg_catalog.>=) 1
        and (metadata operator(pg_catalog.->>) name)::numeric operator(pg_catalog.<=) most
      then (metadata operator(pg_catalog.->>) name)::float operator(pg_catalog.*) interval '1 millisecond'
  end
$$;
comment on function "${schema}".pgworker_published(jsonb, text, numeric) is
  'The milliseconds that a worker has published under the name, as an interval; null if they are none, or not from 1 to most.';
revoke execute on function "${schema}".pgworker_published(jsonb, text, numeric) from public;

-- The limits are those of pgworker.recovery.sweep-threshold and its multiplier.
create or replace function "${schema}".pgworker_thresholds(
  metadata jsonb, threshold interval, peer_threshold interval, multiplier int, out usual interval, out resilient interval
)
language plpgsql immutable
set search_path = pg_catalog, pg_temp as $$
declare
  beat constant interval := "${schema}".pgworker_published(metadata, 'heartbeatIntervalMillis', 1.8e6);
begin
  if peer_threshold is null then
    usual := threshold;
    resilient := least(threshold * multiplier, interval '36500 days');
    return;
  end if;
  usual := "${schema}".pgworker_published(metadata, 'sweepThresholdMillis', 2.592e9);
  resilient := "${schema}".pgworker_published(metadata, 'resilientSweepThresholdMillis', 2.592e12);
  if usual is null or resilient is null or beat is null or usual < 2 * beat or resilient < usual then
    usual := greatest(threshold, peer_threshold);
    resilient := least(usual * multiplier, interval '36500 days');
  end if;
end
$$;
comment on function "${schema}".pgworker_thresholds(jsonb, interval, interval, int) is
  'How old the last heartbeat of a dead worker with such metadata is, and the same where it holds a resilient job: what it has published '
  'if that makes sense, or else the greater of the two thresholds, times the multiplier. Without a peer threshold the other counts for '
  'everybody.';
revoke execute on function "${schema}".pgworker_thresholds(jsonb, interval, interval, int) from public;

-- Heartbeats do not wait for this lock, a vacuum of the table does, and this waits for one. The advisory lock is that of Rust workers, which
-- do not sweep while they cannot have it. Its holder is not waited for: any role may take it, and the rows that a sweep changes are locked.
create or replace function "${schema}".pgworker_sweeps_alone() returns boolean
language plpgsql volatile
set lock_timeout = '100ms'
set search_path = pg_catalog, pg_temp as $$
begin
  lock table "${schema}"._private_workers in share update exclusive mode;
  perform pg_try_advisory_xact_lock(1196905043, 1398228304);
  return true;
exception when lock_not_available then
  return false;
end
$$;
comment on function "${schema}".pgworker_sweeps_alone() is
  'Keeps other sweeps away until the transaction ends; returns false if there is one already.';
revoke execute on function "${schema}".pgworker_sweeps_alone() from public;

-- Reads the jobs once, and only if a worker is stale, or for orphans. Registrations stay locked until the transaction ends, so that a
-- worker that comes back meanwhile learns in its heartbeat what became of it. The text of list_orphan_locked_workers may be that of
-- a Rust worker, which takes Node.js workers for orphans.
create or replace function "${schema}".pgworker_dead_workers(
  threshold interval, peer_threshold interval, multiplier int, resilient_flags text[], with_orphans boolean, again boolean
) returns table (worker_id text, registered boolean, known boolean, job_ids bigint[], idle_queues int[])
language plpgsql volatile
set enable_nestloop = off set jit = off
set search_path = pg_catalog, pg_temp as $$
declare
  orphan_threshold constant interval := greatest(threshold, peer_threshold);
  resilient_orphan_threshold constant interval := least(orphan_threshold * multiplier, interval '36500 days');
  stale text[];
  spared text[];
  found_before text[];
begin
  with old as materialized (
    select w.id, w.last_heartbeat_at, w.metadata from "${schema}"._private_workers w
    where w.last_heartbeat_at < now() - (
        select t.usual from "${schema}".pgworker_thresholds(w.metadata, threshold, peer_threshold, multiplier) t)
      and (again or not coalesce(w.metadata ? 'foundDeadAt', false))
    order by w.id for update skip locked)
  select array_agg(o.id),
      array_agg(o.id) filter (where o.last_heartbeat_at >= now() - (
        select t.resilient from "${schema}".pgworker_thresholds(o.metadata, threshold, peer_threshold, multiplier) t)),
      array_agg(o.id) filter (where o.metadata ? 'foundDeadAt')
    into stale, spared, found_before
    from old o;
  if stale is null and not with_orphans then
    return;
  end if;
  return query
    with held as materialized (
      select l.job_id, l.queue_id, l.worker_id, l.locked_at,
        l.job_id is not null and "${schema}".pgworker_flagged(l.flags, resilient_flags) as resilient
      from "${schema}".pgworker_locks(case when not with_orphans then stale end) l),
    idle as (
      select h.worker_id, h.queue_id from held h where h.queue_id is not null
      group by h.worker_id, h.queue_id having bool_and(h.job_id is null)),
    holders as materialized (
      select h.worker_id, array_agg(h.job_id order by h.job_id) filter (where h.job_id is not null) as job_ids,
        bool_or(h.resilient) as resilient,
        bool_or(h.locked_at < now() - orphan_threshold) as old,
        bool_or(h.resilient and h.locked_at < now() - orphan_threshold and h.locked_at >= now() - resilient_orphan_threshold) as young
      from held h group by h.worker_id),
    idlers as materialized (
      select i.worker_id, array_agg(i.queue_id order by i.queue_id) as idle_queues from idle i group by i.worker_id),
    dead as (
      select s.id, true as registered, coalesce(s.id = any(found_before), false) as known
      from unnest(stale) s(id) left join holders h on h.worker_id = s.id
      where not (coalesce(h.resilient, false) and coalesce(s.id = any(spared), false))
      union all
      select h.worker_id, false, false from holders h
      where with_orphans and h.old and not coalesce(h.young, false)
        and h.worker_id not like 'pool-%'
        and h.worker_id not like 'otpool-%'
        and not exists (select from "${schema}"._private_workers w where w.id = h.worker_id))
    select d.id, d.registered, d.known, h.job_ids, i.idle_queues
    from dead d left join holders h on h.worker_id = d.id left join idlers i on i.worker_id = d.id
    order by d.registered desc, d.id;
end
$$;
comment on function "${schema}".pgworker_dead_workers(interval, interval, int, text[], boolean, boolean) is
  'Registered workers without a heartbeat for longer than their threshold (see pgworker_thresholds), and, if asked for, unregistered '
  'ones that have held a lock for longer; never those of Node.js. Workers that hold a job with one of the flags are waited for longer. '
  'With the jobs that each holds, and the queues that it holds without a job of them. Workers that were found dead before but kept '
  'jobs (known) are looked for only if asked for again.';
revoke execute on function "${schema}".pgworker_dead_workers(interval, interval, int, text[], boolean, boolean) from public;

-- A worker of which a job was passed over stays registered, so that the next sweep finds the job, but is notified that it is dead.
create or replace function "${schema}".pgworker_bury(worker_ids text[], job_ids bigint[]) returns void
language plpgsql volatile
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off
set search_path = pg_catalog, pg_temp as $$
declare
  keeping text[];
begin
  keeping := array(
    select distinct j.locked_by
    from unnest(job_ids) g(id)
    cross join lateral (
      select h.locked_by from "${schema}"._private_jobs h where h.id = g.id and h.locked_by = any(worker_ids) offset 0) j);
  if exists (select from "${schema}".pgworker_batches b where b.worker_id = any(worker_ids)) then
    perform "${schema}".pgworker_bury_batches(worker_ids);
  end if;
  delete from "${schema}"._private_workers w where w.id = any(worker_ids) and w.id <> all(keeping);
  update "${schema}"._private_workers w set
      metadata = case when jsonb_typeof(w.metadata) = 'object' then w.metadata else '{}' end || jsonb_build_object('foundDeadAt', now())
    where w.id = any(keeping) and not coalesce(w.metadata ? 'foundDeadAt', false);
end
$$;
comment on function "${schema}".pgworker_bury(text[], bigint[]) is
  'Forgets workers that a sweep has found dead, but for those that hold one of the given jobs still, which it marks as dead, and the '
  'direct batches of all of them.';
revoke execute on function "${schema}".pgworker_bury(text[], bigint[]) from public;

-- A lock without a holder, which was written by hand, belongs to no worker.
create or replace function "${schema}".pgworker_old_locks(
  out worker_ids text[], out job_ids bigint[], out old_job_ids bigint[], out idle_queues int[], out peer text
)
language sql stable
set enable_nestloop = off set jit = off
set search_path = pg_catalog, pg_temp as $$
  with held as materialized (
    select l.job_id, l.queue_id, coalesce(l.worker_id, '') as worker_id, l.locked_at < now() - interval '4 hours' as old
    from "${schema}".pgworker_locks(null) l),
  silent as materialized (
    select h.worker_id from held h group by h.worker_id
    having bool_or(h.old) and not "${schema}".pgworker_lives(h.worker_id)),
  theirs as materialized (
    select h.* from held h where h.worker_id in (select s.worker_id from silent s))
  select
    (select array_agg(s.worker_id) from silent s),
    (select array_agg(t.job_id order by t.job_id) from theirs t where t.job_id is not null),
    (select array_agg(t.job_id order by t.job_id) from theirs t where t.job_id is not null and t.old),
    (select array_agg(i.queue_id) from (
      select t.queue_id from theirs t where t.queue_id is not null
      group by t.queue_id, t.worker_id having bool_and(t.job_id is null and t.old)) i),
    (select min(h.worker_id) from held h
      where h.worker_id like 'pool-%' or h.worker_id like 'otpool-%'
        or h.worker_id in (
          select w.id from "${schema}"._private_workers w where not coalesce(w.metadata ? 'heartbeatIntervalMillis', false)))
$$;
comment on function "${schema}".pgworker_old_locks() is
  'Workers that hold a lock of four hours or more and give no sign of life, all their jobs, those locked so long ago, and the queues '
  'that they have held for so long without a job of them. Besides that, one worker of Node.js or Rust that holds a lock, however old.';
revoke execute on function "${schema}".pgworker_old_locks() from public;

-- Attempts stay counted, as Node.js does it.
create or replace function "${schema}".pgworker_release_old_locks(out released bigint, out unindexed_peer text)
language plpgsql volatile
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off
set search_path = pg_catalog, pg_temp as $$
declare
  gone record;
  unlocked record;
  silent text[];
begin
  select * into gone from "${schema}".pgworker_old_locks();
  if to_regclass('"${schema}".jobs_main_index') is null then
    unindexed_peer := gone.peer;
  end if;
  select * into unlocked from "${schema}".pgworker_unlock(array(
    select g.id from (select given.id from unnest(gone.old_job_ids) given(id) order by given.id) g
    cross join lateral (
      select from "${schema}"._private_jobs h
      where h.id = g.id and h.locked_at < now() - interval '4 hours' and coalesce(h.locked_by, '') = any(gone.worker_ids)
      for update skip locked) j));
  released := unlocked.released;
  silent := array(
    select distinct b.worker_id from "${schema}".pgworker_batches b
    where b.started_at < now() - interval '4 hours' and not "${schema}".pgworker_lives(b.worker_id));
  if silent <> '{}' then
    perform "${schema}".pgworker_bury_batches(silent);
  end if;
  perform "${schema}".pgworker_free_queues_of(unlocked.queue_ids, gone.idle_queues, gone.job_ids, gone.worker_ids);
  perform "${schema}".pgworker_wake(unlocked.ready);
end
$$;
comment on function "${schema}".pgworker_release_old_locks() is
  'Releases locks of four hours or more, except those of workers that prove their life; returns how many jobs it unlocked. Where the '
  'index that Node.js and Rust workers fetch with is missing, it names one of these that it has met, or null.';
revoke execute on function "${schema}".pgworker_release_old_locks() from public;
