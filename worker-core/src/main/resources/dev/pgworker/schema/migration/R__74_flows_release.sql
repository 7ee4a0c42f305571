-- Flows: what happens when their jobs end, see R__72_flows.sql.
--
-- No call waits for a lock here. What another session holds, or a user's trigger refuses, is tried again later, and holds up nothing
-- else. Each call does a bounded piece.

-- An edge and the job that it leads to are locked both or neither, so what is noted of the one is noted of the other. Locked ones do not
-- count to the limit, so that they stand before no others.
create or replace function "${schema}".pgworker_note_ends() returns boolean
language plpgsql volatile
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off
set search_path = pg_catalog, pg_temp as $$
declare
  concerned bigint[];
begin
  with found as materialized (
    select e.ctid as tid, x.outcome from "${schema}".pgworker_ends x
    join "${schema}".pgworker_flow_edges e on e.predecessor = x.job_id
    join "${schema}".pgworker_flow_waits w on w.job_id = e.successor
    where x.news and e.outcome is distinct from x.outcome
    order by x.job_id limit 5000 for update of e, w skip locked),
  noted as (
    update "${schema}".pgworker_flow_edges e set outcome = f.outcome from found f where e.ctid = f.tid returning e.successor)
  select array_agg(n.successor) into concerned from noted n;
  update "${schema}".pgworker_flow_waits w set look = true, tries = 0, retry_at = '-infinity'
    where w.job_id = any(concerned) and w.released_at is null and (not w.look or w.tries > 0);
  update "${schema}".pgworker_ends x set news = false
    where x.ctid = any(array(
      select n.ctid from "${schema}".pgworker_ends n
      where n.news and not exists (
        select from "${schema}".pgworker_flow_edges e where e.predecessor = n.job_id and e.outcome is distinct from n.outcome)
      order by n.job_id limit 5000 for update skip locked));
  return found or concerned is not null;
end
$$;
comment on function "${schema}".pgworker_note_ends() is
  'Notes in the edges of some jobs how those have ended, or that one which had failed has been retried, and has the jobs looked at that wait for them. Returns '
  'whether it has done anything; for the caller that has the turn.';
revoke execute on function "${schema}".pgworker_note_ends() from public;

-- A group in which one row is refused is halved until that row is alone.
create or replace function "${schema}".pgworker_settle(ids bigint[], run_ats timestamptz[], errors text[], remove boolean) returns bigint[]
language plpgsql volatile
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off
set search_path = pg_catalog, pg_temp as $$
declare
  forever constant timestamptz := "${schema}".pgworker_forever();
  total constant int := coalesce(cardinality(ids), 0);
  half constant int := (total + 1) / 2;
  done record;
  context text;
begin
  if total = 0 then return '{}'; end if;
  begin
    if remove then
      perform set_config('pgworker.ending', 'removed', true), set_config('pgworker.run_ids', '', true);
      with gone as (
        delete from "${schema}"._private_jobs j
        where j.ctid = any(array(
          select h.ctid from "${schema}"._private_jobs h
          where h.id = any(pgworker_settle.ids) and h.run_at = forever and h.attempts < h.max_attempts
            and (h.locked_at is null or "${schema}".pgworker_parked(h.locked_at))
          order by h.id for update skip locked))
        returning j.id)
      select array_agg(g.id) as ids into done from gone g;
      perform set_config('pgworker.ending', '', true);
      return coalesce(done.ids, '{}');
    end if;
    with held as materialized (
      select h.ctid as tid, g.run_at, g.error from unnest(ids, run_ats, errors) g(id, run_at, error)
      join "${schema}"._private_jobs h on h.id = g.id
      where h.run_at = forever and h.attempts < h.max_attempts and (h.locked_at is null or "${schema}".pgworker_parked(h.locked_at))
      order by h.id for update of h skip locked),
    settled as (
      update "${schema}"._private_jobs j set
          run_at = greatest(h.run_at, now()),
          attempts = case when h.error is null then j.attempts else j.max_attempts end,
          last_error = coalesce(h.error, j.last_error),
          updated_at = now()
        from held h where j.ctid = h.tid
        returning j.id, j.run_at, j.priority, j.is_available)
    select array_agg(s.id) as ids, count(*) filter (where s.is_available) as ready, min(s.run_at) filter (where s.is_available) as earliest,
        case when count(distinct s.priority) <= 16 then coalesce(string_agg(distinct s.priority::text, ','), '') end as levels
      into done from settled s;
  exception when others or assert_failure or query_canceled then
    get stacked diagnostics context = pg_exception_context;
    if not "${schema}".pgworker_about_row(sqlstate, context) then raise; end if;
    if total = 1 then
      raise warning 'Job %, which waits for other jobs, cannot be changed: %', ids[1], sqlerrm;
      return '{}';
    end if;
    return "${schema}".pgworker_settle(ids[:half], run_ats[:half], errors[:half], remove)
      || "${schema}".pgworker_settle(ids[half + 1:], run_ats[half + 1:], errors[half + 1:], remove);
  end;
  perform "${schema}".pgworker_wake(done.ready, done.earliest, done.levels);
  return coalesce(done.ids, '{}');
end
$$;
comment on function "${schema}".pgworker_settle(bigint[], timestamptz[], text[], boolean) is
  'Has jobs that wait become due at these times, or fail with these errors, or removes them. Returns those that it has changed; for the caller that has the turn.';
revoke execute on function "${schema}".pgworker_settle(bigint[], timestamptz[], text[], boolean) from public;

create or replace function "${schema}".pgworker_flow_decisions() returns table (id bigint, decision text, run_at timestamptz, error text)
language plpgsql volatile
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off
set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
begin
  return query
    select w.job_id,
      case
        when w.on_failure = 'instead' then case when bad.predecessor is not null then 'release' when not open.found then 'remove' end
        when bad.predecessor is not null and w.on_failure in ('fail', 'remove') then w.on_failure
        when bad.predecessor is not null and w.on_failure = 'wait' or open.found then null
        else 'release'
      end,
      w.run_at,
      case when bad.predecessor is not null and w.on_failure = 'fail' then (
        select concat('Job ', bad.predecessor, ' (', coalesce(x.task_identifier, 'unknown task'), '), for which this one waited, ', case bad.outcome
            when 'failed' then 'has failed' when 'removed' then 'was removed' when 'cancelled' then 'was cancelled' else 'has ended unseen' end,
            ': ' || nullif(left(split_part(x.error, E'\n', 1), 1000), ''))
        from (values (1)) one left join "${schema}".pgworker_ends x on x.job_id = bad.predecessor) end
    from (
      select l.* from "${schema}".pgworker_flow_waits l
      where l.look and l.retry_at <= clock_timestamp() order by l.retry_at, l.job_id limit 5000 for update skip locked) w
    left join lateral (
      select e.predecessor, e.outcome from "${schema}".pgworker_flow_edges e
      where e.successor = w.job_id and e.outcome is distinct from 'succeeded' and e.outcome is not null
      order by e.outcome limit 1) bad on true
    cross join lateral (
      select exists (
        select from "${schema}".pgworker_flow_edges e
        where e.successor = w.job_id and e.outcome is distinct from 'succeeded' and e.outcome is null) as found) open;
end
$$;
comment on function "${schema}".pgworker_flow_decisions() is
  'What becomes of some of the jobs that are to be looked at: "release", "fail" with an error, "remove", or null if they continue to wait.';
revoke execute on function "${schema}".pgworker_flow_decisions() from public;

-- What is noted is done by the next call, so that rows that the triggers on the jobs write are locked for a moment only.
create or replace function "${schema}".pgworker_release_successors(out more boolean, out held boolean)
language plpgsql volatile security definer
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off
set search_path = pg_catalog, pg_temp as $$
declare
  decided record;
  done bigint[];
begin
  begin
    lock table "${schema}".pgworker_flow_waits, "${schema}".pgworker_flow_edges, "${schema}".pgworker_ends in row exclusive mode nowait;
    more := exists (select from "${schema}".pgworker_ends x where x.news);
    held := exists (select from "${schema}".pgworker_flow_waits w where w.look);
    if not more and not held then return; end if;
    lock table "${schema}".pgworker_flow_turn in exclusive mode nowait;
  exception when lock_not_available then
    more := false;
    held := true;
    return;
  end;
  select array_agg(d.id) filter (where d.decision is null) as waiting,
      array_agg(d.id order by d.id) filter (where d.decision in ('release', 'fail')) as settled,
      array_agg(d.run_at order by d.id) filter (where d.decision in ('release', 'fail')) as run_ats,
      array_agg(d.error order by d.id) filter (where d.decision in ('release', 'fail')) as errors,
      array_agg(d.id) filter (where d.decision = 'remove') as removed
    into decided from "${schema}".pgworker_flow_decisions() d;
  update "${schema}".pgworker_flow_waits w set look = false where w.job_id = any(decided.waiting);
  done := "${schema}".pgworker_settle(decided.settled, decided.run_ats, decided.errors, false)
    || "${schema}".pgworker_settle(decided.removed, null, null, true);
  -- A job that has been given another time, has been failed by hand, or is gone, no longer waits. The others that have not been changed are
  -- locked, or a trigger refuses them.
  with kept as materialized (
    select j.id from (select unnest(decided.settled || decided.removed) except select unnest(done)) u(id)
    join "${schema}"._private_jobs j on j.id = u.id and j.run_at = "${schema}".pgworker_forever() and j.attempts < j.max_attempts),
  later as (
    update "${schema}".pgworker_flow_waits w set
        tries = w.tries + 1, retry_at = clock_timestamp() + least(60, 0.05 * 2 ^ least(w.tries, 12)) * interval '1 second'
      where w.job_id = any(array(select k.id from kept k)))
  update "${schema}".pgworker_flow_waits w set look = false, released_at = clock_timestamp()
    where w.job_id = any(array(select unnest(decided.settled || decided.removed) except select k.id from kept k));
  more := "${schema}".pgworker_note_ends() or done <> '{}' or coalesce(cardinality(decided.waiting), 0) >= 5000;
  held := not more and (
    exists (select from "${schema}".pgworker_ends x where x.news) or exists (select from "${schema}".pgworker_flow_waits w where w.look));
end
$$;
comment on function "${schema}".pgworker_release_successors() is
  'Releases jobs whose predecessors have ended, or does what was asked for if one of those has not succeeded: whether there may be more to be done at once, '
  'and whether another session holds a row, so that it is worth calling again soon. Never waits.';
revoke execute on function "${schema}".pgworker_release_successors() from public;

-- What is known of a job of a flow stays for a while after its end, for those who ask, and as long as a job is there that may read its result. Of
-- that it is looked at again ten minutes later, so that much of it does not stand before the rest.
create or replace function "${schema}".pgworker_tend_flows() returns void
language plpgsql volatile security definer
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off
set lock_timeout = '500ms'
set search_path = pg_catalog, pg_temp as $$
declare
  expired record;
begin
  with old as materialized (
    select x.job_id, x.news from "${schema}".pgworker_ends x
    where x.flow and x.outcome is not null and x.expires_at < clock_timestamp() order by x.expires_at limit 5000 for update skip locked)
  select array_agg(o.job_id) filter (where n.needed) as needed, array_agg(o.job_id) filter (where not n.needed) as over into expired
    from old o
    cross join lateral (
      select o.news or exists (select from "${schema}"._private_jobs j where j.id = o.job_id) or exists (
        select from "${schema}".pgworker_flow_edges e join "${schema}"._private_jobs j on j.id = e.successor
        where e.predecessor = o.job_id) as needed) n;
  update "${schema}".pgworker_ends x set expires_at = clock_timestamp() + interval '10 minutes' where x.job_id = any(expired.needed);
  delete from "${schema}".pgworker_flow_edges e where e.successor = any(expired.over);
  delete from "${schema}".pgworker_flow_edges e where e.predecessor = any(expired.over);
  delete from "${schema}".pgworker_flow_waits w where w.job_id = any(expired.over);
  update "${schema}".pgworker_ends x set flow = false where x.job_id = any(expired.over);
exception when lock_not_available or deadlock_detected then
  null;
end
$$;
comment on function "${schema}".pgworker_tend_flows() is
  'Forgets jobs of flows that have ended a while ago, and that no job needs to know of any more; 5000 at most.';
revoke execute on function "${schema}".pgworker_tend_flows() from public;

create or replace function "${schema}".pgworker_predecessors(successor bigint)
returns table (id bigint, task_identifier text, outcome text, result text, error text)
language sql stable security definer
set search_path = pg_catalog, pg_temp as $$
  select e.predecessor, x.task_identifier, coalesce(x.outcome, e.outcome), x.result::text, x.error
  from "${schema}".pgworker_flow_edges e
  left join "${schema}".pgworker_ends x on x.job_id = e.predecessor
  where e.successor = pgworker_predecessors.successor
  order by e.predecessor
$$;
comment on function "${schema}".pgworker_predecessors(bigint) is 'The jobs that a job waits for, or has waited for, with their results as far as they have ended.';
revoke execute on function "${schema}".pgworker_predecessors(bigint) from public;

create or replace function "${schema}".pgworker_waits_for(waiting bigint) returns table (open bigint, failed bigint, first_ids bigint[])
language sql stable security definer
set search_path = pg_catalog, pg_temp as $$
  select count(*) filter (where e.predecessor is not null and e.outcome is null), count(e.outcome), (array_agg(e.predecessor order by e.outcome, e.predecessor))[:10]
  from "${schema}".pgworker_flow_waits w
  left join "${schema}".pgworker_flow_edges e on e.successor = w.job_id and e.outcome is distinct from 'succeeded'
  where w.job_id = waiting and w.released_at is null
  group by w.job_id
$$;
comment on function "${schema}".pgworker_waits_for(bigint) is
  'For how many jobs a job waits that have not ended, and that have not succeeded; and the first ten of those. No row if it waits for none.';
revoke execute on function "${schema}".pgworker_waits_for(bigint) from public;

create or replace function "${schema}".pgworker_flow_of(member bigint, most int default 1000)
returns table (id bigint, task_identifier text, state text, ended_at timestamptz, on_failure text, predecessors bigint[])
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
  members bigint[] := array[member];
  border bigint[] := array[member];
begin
  loop
    border := array(
      select n.id from (
        select e.predecessor as id from "${schema}".pgworker_flow_edges e where e.successor = any(border)
        union select e.successor from "${schema}".pgworker_flow_edges e where e.predecessor = any(border)
        except select unnest(members)) n
      order by n.id limit most - cardinality(members));
    exit when border = '{}';
    members := members || border;
  end loop;
  return query
    select m.id, coalesce(t.identifier, x.task_identifier),
      case
        when j.id is null then coalesce(x.outcome, 'unknown')
        when j.locked_at is not null and not "${schema}".pgworker_parked(j.locked_at) then 'running'
        when j.attempts >= j.max_attempts then 'failed'
        when j.run_at = "${schema}".pgworker_forever() then 'waiting'
        when j.run_at > now() then 'scheduled'
        else 'ready'
      end,
      x.ended_at, w.on_failure,
      array(select e.predecessor from "${schema}".pgworker_flow_edges e where e.successor = m.id and e.predecessor = any(members) order by 1)
    from unnest(members) m(id)
    left join "${schema}"._private_jobs j on j.id = m.id
    left join "${schema}"._private_tasks t on t.id = j.task_id
    left join "${schema}".pgworker_ends x on x.job_id = m.id
    left join "${schema}".pgworker_flow_waits w on w.job_id = m.id
    where j.id is not null or x.job_id is not null
    order by m.id;
end
$$;
comment on function "${schema}".pgworker_flow_of(bigint, int) is
  'The jobs that are tied to a job by waiting for each other, the nearest first found, as many as asked for at most.';
revoke execute on function "${schema}".pgworker_flow_of(bigint, int) from public;
