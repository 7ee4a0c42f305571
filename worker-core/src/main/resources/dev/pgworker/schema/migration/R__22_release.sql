-- Release: the outcomes of jobs that stay, and locks that are renewed.

-- A job whose key is gone was superseded, removed or cancelled while it ran: whatever the action is, it must not run again. The exception
-- is a superseded batch of which some items failed: they are in no other job, so it continues without its key.
create or replace function "${schema}".pgworker_release(worker_id text, outcomes "${schema}".pgworker_outcome[])
returns table (id bigint, outcome text)
language plpgsql volatile rows 10
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off
set enable_hashjoin = off set enable_mergejoin = off set jit = off set lock_timeout = '2s'
set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
  contents constant json[] := "${schema}".pgworker_json('payloads', array(select o.payload from unnest(outcomes) o));
  total constant int := cardinality(outcomes);
  put record;
  held bigint;
  written bigint[] := '{}';
  results text[] := '{}';
  revived bigint[];
  ready bigint := 0;
  earliest timestamptz;
  levels text[] := '{}';
begin
  if exists (select from unnest(outcomes) o where o.action is null or o.action not in ('retry', 'fail', 'back')) then
    raise exception 'Unknown action: expected retry, fail or back' using errcode = '22023';
  end if;
  perform "${schema}".pgworker_note_runs(array_agg(o.job_id), array_agg(o.micros), array_agg(o.result), array_agg(o.trace),
      attempts => array_agg(o.attempts), keys => array_agg(o.key))
    from unnest(outcomes) o having count(o.micros) > 0;
  perform set_config('pgworker.ending', 'released', true);
  -- A row that was changed between the statement's snapshot and its lock, by a cancellation for example, only the next one sees.
  for attempt in 1..2 loop
    with mine as materialized (
      select h.ctid as tid, g.action, g.delay, g.run_at as at, g.error, coalesce(g.attempts, h.attempts) as attempts, contents[g.n] as payload,
        case when h.key is null and h.attempts >= h.max_attempts then "${schema}".pgworker_retirement(h.id, h.last_error) end as told,
        g.key is not null and h.key is distinct from g.key as key_gone
      from unnest(outcomes) with ordinality
        g(job_id, claim, action, delay, run_at, error, key, attempts, payload, micros, result, trace, n)
      join "${schema}"._private_jobs h on h.id = g.job_id and h.locked_by = worker_id and h.locked_at = g.claim
      for update of h skip locked),
    decided as (
      select m.*,
        (m.told is not null or m.key_gone)
          and (m.payload is null or coalesce(m.told in ('Removed by its key while running', 'Cancelled while running'), false)) as ended
      from mine m),
    put as (
      update "${schema}"._private_jobs j set
        attempts = case
          when m.ended then j.max_attempts
          when m.action = 'back' then least(m.attempts, greatest(0, m.attempts - 1))
          when m.action = 'fail' then greatest(1, m.attempts)
          else m.attempts
        end,
        -- What the worker's own limit ends reads "3 of 3": attempts are counted, never made up.
        max_attempts = case when m.action = 'fail' and not m.ended then greatest(1, m.attempts) else j.max_attempts end,
        run_at = case
          when m.ended or m.action = 'fail' then j.run_at
          when m.at is not null then m.at
          when m.delay is not null then clock_timestamp() + m.delay * interval '1 second'
          when m.action = 'retry' then greatest(now(), j.run_at) + "${schema}".pgworker_backoff(m.attempts)
          else j.run_at
        end,
        last_error = case
          when m.error is not null then m.error
          when m.ended then coalesce(m.told, 'Superseded or removed by its key while running')
          else j.last_error
        end,
        payload = coalesce(m.payload, j.payload),
        locked_at = null,
        locked_by = null,
        updated_at = now()
      from decided m
      where j.ctid = m.tid
      returning j.id, j.is_available and j.run_at <= clock_timestamp() as due,
        case
          when m.ended and m.told = 'Cancelled while running' then 'cancelled'
          when m.ended then 'superseded'
          when j.attempts >= j.max_attempts then 'failed'
          when m.action = 'back' then 'back'
          else 'retried'
        end as outcome,
        m.told is not null and not m.ended as revived, j.is_available as available, j.priority, j.run_at)
    select array_agg(p.id) as ids, array_agg(p.outcome) as outcomes, count(*) filter (where p.due) as ready, (select count(*) from mine) as held,
        array_agg(p.id) filter (where p.revived) as revived, min(p.run_at) filter (where p.available) as earliest,
        array_agg(distinct p.priority::text) filter (where p.available) as levels
      into put
      from put p;
    written := written || put.ids;
    results := results || put.outcomes;
    revived := revived || put.revived;
    ready := ready + put.ready;
    earliest := least(earliest, put.earliest);
    levels := levels || put.levels;
    exit when coalesce(cardinality(put.ids), 0) = put.held;
  end loop;
  perform set_config('pgworker.ending', '', true), set_config('pgworker.run_ids', '', true);
  if coalesce(cardinality(put.ids), 0) < put.held then
    raise exception 'A trigger keeps jobs from being changed' using errcode = '27000';
  end if;
  if 'cancelled' = any(results) then
    perform "${schema}".pgworker_end_cancelled(written);
  end if;
  if revived is not null then
    delete from "${schema}".pgworker_retirements r where r.job_id = any(revived);
  end if;
  perform "${schema}".pgworker_wake(
    ready, earliest, case when cardinality(levels) <= 16 then array_to_string(levels, ',') end);
  return query
    select w.id, w.outcome from unnest(written, results) w(id, outcome)
    union all
    select m.id, m.outcome
      from "${schema}".pgworker_missed(worker_id, array(select o.job_id from unnest(outcomes) o), array(select o.claim from unnest(outcomes) o)) m
      where cardinality(written) < total and m.id <> all(written);
end
$$;
comment on function "${schema}".pgworker_release(text, "${schema}".pgworker_outcome[]) is
  'Unlocks jobs that did not succeed, as far as the worker still holds them by their claims, each a locked_at, and wakes workers for what is '
  'due then; their queues stay locked. Actions: "retry" at the given time, after the delay in seconds or after the usual back-off, '
  '"fail" for good, with the attempts made as their limit, "back" without having cost an attempt. Keys and attempts are those the jobs had '
  'when claimed; errors and payloads replace the stored ones where not null; micros, result and trace are for the history. Returns what became of each: '
  '"retried", "failed", "back", "superseded" (it lost its key while it ran and never runs again), "cancelled" (it was cancelled while it '
  'ran, and is deleted); where nothing was written, what pgworker_missed tells.';
revoke execute on function "${schema}".pgworker_release(text, "${schema}".pgworker_outcome[]) from public;

-- The worker names the time beforehand: if the answer is lost, it knows that the lock has either the one time or the other.
create or replace function "${schema}".pgworker_renew(
  worker_id text, job_ids bigint[], claims timestamptz[], renewals timestamptz[]
) returns setof bigint
language plpgsql volatile
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off
set enable_hashjoin = off set enable_mergejoin = off set jit = off
set search_path = pg_catalog, pg_temp as $$
begin
  return query
    with held as materialized (
      select h.ctid as tid, h.job_queue_id, g.renewal
      from unnest(job_ids, claims, renewals) g(id, claim, renewal)
      join "${schema}"._private_jobs h on h.id = g.id and h.locked_by = worker_id and h.locked_at in (g.claim, g.renewal)
      for update of h skip locked),
    renewed as (
      update "${schema}"._private_jobs j set locked_at = h.renewal
      from held h
      where j.ctid = h.tid
      returning j.id),
    queue as materialized (
      select q.ctid as tid, h.renewal from held h
      join "${schema}"._private_job_queues q on q.id = h.job_queue_id and q.locked_by = worker_id and q.locked_at < h.renewal
      for no key update of q skip locked),
    renewed_queue as (
      update "${schema}"._private_job_queues q set locked_at = k.renewal from queue k where q.ctid = k.tid)
    select r.id from renewed r;
end
$$;
comment on function "${schema}".pgworker_renew(text, bigint[], timestamptz[], timestamptz[]) is
  'Renews the locks by which the worker holds these jobs, and those of their queues: other workers release locks of four hours. Returns '
  'the ids of the jobs whose locks have the given time then.';
revoke execute on function "${schema}".pgworker_renew(text, bigint[], timestamptz[], timestamptz[]) from public;
