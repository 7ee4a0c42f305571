-- Completion: deletes jobs that have succeeded, and frees their queues.

-- Each write names its claims, and changes nothing that they no longer hold. None waits for a row for longer than 20 ms; what others hold
-- for longer is reported as busy.

create or replace function "${schema}".pgworker_missed(worker_id text, job_ids bigint[], claims timestamptz[])
returns table (id bigint, outcome text)
language sql stable as $$
  select g.id,
    case
      when h.id is null then 'gone'
      when h.locked_by operator(pg_catalog.=) $1 and h.locked_at operator(pg_catalog.=) g.claim then 'busy'
      else 'lost'
    end
  from rows from (pg_catalog.unnest(job_ids), pg_catalog.unnest(claims)) g(id, claim)
  left join lateral (select j.* from "${schema}"._private_jobs j where j.id operator(pg_catalog.=) g.id offset 0) h on true
$$;
comment on function "${schema}".pgworker_missed(text, bigint[], timestamptz[]) is
  'Why nothing was written of these jobs: "busy" (another session holds the row for a moment: call again), "lost" (no longer this claim''s) or '
  '"gone" (there is no such job).';
revoke execute on function "${schema}".pgworker_missed(text, bigint[], timestamptz[]) from public;

create or replace function "${schema}".pgworker_complete(
  worker_id text, job_ids bigint[], claims timestamptz[], claim_numbers int[], addresses tid[] default null,
  free_queues int[] default null, free_numbers int[] default null, wake boolean default false
) returns table (id bigint, outcome text)
language plpgsql volatile rows 1
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off
set enable_hashjoin = off set enable_mergejoin = off set jit = off set lock_timeout = '20ms'
set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
  gone bigint[];
  gone_claims timestamptz[];
  held bigint[];
  freed bigint;
begin
  if addresses is not null then
    with done as (
      delete from "${schema}"._private_jobs j
      where j.ctid = any(addresses) and j.locked_by = worker_id and j.locked_at = any(claims) returning j.id, j.locked_at)
    select array_agg(d.id), array_agg(d.locked_at) into gone, gone_claims from (select * from done d order by d.id) d;
    if gone is distinct from job_ids
        or cardinality(claims) > 1 and gone_claims is distinct from array(select claims[n.number] from unnest(claim_numbers) n(number)) then
      raise exception 'not all jobs are where their claims left them' using errcode = 'lock_not_available';
    end if;
  else
    with held as materialized (
      select h.ctid as tid, h.id from unnest(job_ids, claim_numbers) g(id, number)
      join "${schema}"._private_jobs h on h.id = g.id and h.locked_by = worker_id and h.locked_at = claims[g.number]
      for update of h skip locked),
    done as (delete from "${schema}"._private_jobs j where j.ctid = any(array(select h.tid from held h)) returning j.id)
    select array(select d.id from done d), array(select h.id from held h) into gone, held;
    -- A row that was changed between the statement's snapshot and its lock, by a cancellation for example, only the next one sees.
    if cardinality(gone) < cardinality(held) then
      with done as (delete from "${schema}"._private_jobs j where j.id = any(held) and j.id <> all(gone) returning j.id)
      select gone || array_agg(d.id) into gone from done d;
      if cardinality(gone) < cardinality(held) then
        raise exception 'A trigger keeps jobs from being deleted' using errcode = '27000';
      end if;
    end if;
  end if;
  if free_queues <> '{}' then
    update "${schema}"._private_job_queues q set locked_at = null, locked_by = null
      from (
        select claims[f.number] as claim, r.tid from unnest(free_queues, free_numbers) f(id, number)
        cross join lateral "${schema}".pgworker_queue_row(f.id) r offset 0) f
      where q.ctid = f.tid and q.locked_by = worker_id and q.locked_at = f.claim;
    get diagnostics freed = row_count;
    if freed < cardinality(free_queues) then
      raise exception 'not all queues could be freed' using errcode = 'lock_not_available';
    end if;
    if wake then
      perform "${schema}".pgworker_wake(1, null, '');
    end if;
  end if;
  if coalesce(cardinality(gone), 0) < cardinality(job_ids) then
    return query
      select m.id, m.outcome from "${schema}".pgworker_missed(
        worker_id, job_ids, array(select claims[n.number] from unnest(claim_numbers) n(number))) m
      where gone is null or m.id <> all(gone);
  end if;
end
$$;
comment on function "${schema}".pgworker_complete(text, bigint[], timestamptz[], int[], tid[], int[], int[], boolean) is
  'Deletes jobs as far as the worker holds them by their claims, and frees queues of which it has no more; returns those that it has not deleted, as '
  'pgworker_missed tells them. Claims are the times of locked_at, each once, and the numbers say which of them is whose. With '
  'the addresses of the claims, and ids in ascending order, it is faster, and all or nothing. It fails with 55P03 if not all queues could be freed, '
  'or not all jobs were at their addresses: call without both, and pgworker_free_queues.';
revoke execute on function "${schema}".pgworker_complete(text, bigint[], timestamptz[], int[], tid[], int[], int[], boolean) from public;

create or replace function "${schema}".pgworker_free_queues(queue_ids int[], worker_ids text[], claims timestamptz[] default null)
returns int[]
language plpgsql volatile
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off
set enable_hashjoin = off set enable_mergejoin = off set jit = off set lock_timeout = '100ms'
set search_path = pg_catalog, pg_temp as $$
declare
  total constant int := cardinality(queue_ids);
  freed int[];
  kept int[] := '{}';
  context text;
begin
  if coalesce(total, 0) = 0 then return kept; end if;
  begin
    with free as (
      update "${schema}"._private_job_queues q set locked_at = null, locked_by = null
      where q.ctid = any(array(
        select h.ctid from unnest(queue_ids, claims) g(id, claim)
        cross join lateral "${schema}".pgworker_queue_row(g.id) r
        join "${schema}"._private_job_queues h on h.ctid = r.tid
        where h.locked_by = any(worker_ids) and (g.claim is null or h.locked_at = g.claim)
        for no key update of h skip locked))
      returning q.id)
    select array_agg(f.id) into freed from free f;
    set constraints all immediate;
  exception when others or assert_failure or query_canceled then
    get stacked diagnostics context = pg_exception_context;
    if not "${schema}".pgworker_about_row(sqlstate, context) then raise; end if;
    if total = 1 then
      raise warning 'Queue % stays locked: %', queue_ids[1], sqlerrm;
      return queue_ids;
    end if;
    for at in 1..total by (total + 1) / 2 loop
      kept := kept || "${schema}".pgworker_free_queues(
        queue_ids[at:at + (total + 1) / 2 - 1], worker_ids, claims[at:at + (total + 1) / 2 - 1]);
    end loop;
    return kept;
  end;
  if freed <> '{}' then
    perform "${schema}".pgworker_wake(1, null, '');
  end if;
  return array(
    select distinct g.id from unnest(queue_ids, claims) g(id, claim)
    cross join lateral "${schema}".pgworker_queue_row(g.id) r
    where r.locked_by = any(worker_ids) and (g.claim is null or r.locked_at = g.claim));
end
$$;
comment on function "${schema}".pgworker_free_queues(int[], text[], timestamptz[]) is
  'Unlocks those of the queues that the workers hold, by these claims if any are given, and wakes workers; returns those that they hold still, because '
  'another session holds the row or a trigger of the application refuses it.';
revoke execute on function "${schema}".pgworker_free_queues(int[], text[], timestamptz[]) from public;
