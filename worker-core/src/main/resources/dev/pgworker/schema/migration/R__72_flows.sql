-- Flows: jobs that wait for jobs.
--
-- A job that waits for others, a *successor*, is an ordinary job whose run_at is in the year 9999. An *edge* stands for each job that it
-- waits for, a *predecessor*. All jobs of flows have a row in pgworker_ends, where the trigger on the jobs writes what has become of them,
-- however they end. Only pgworker_release_successors continues from there, one session at a time, and never in a statement that ends a job.
-- So statements that end jobs never wait for each other, and a successor is released exactly once.
--
-- A successor is changed only while its run_at is still that of a job that waits. One that gets another time leaves its flow.

create or replace function "${schema}".pgworker_forever() returns timestamptz
language sql immutable parallel safe as $$ select '9999-01-01 00:00:00+00'::pg_catalog.timestamptz $$;
comment on function "${schema}".pgworker_forever() is 'The run_at of a job that waits for other jobs.';
grant execute on function "${schema}".pgworker_forever() to public;

-- The transaction under way that has written a row that can be seen is this one, or a subtransaction of it. An xmin is the lower half of an id. That of
-- a row which was frozen long ago may look like one of the future.
create or replace function "${schema}".pgworker_written_here(written xid) returns boolean
language plpgsql volatile
set search_path = pg_catalog, pg_temp as $$
declare
  own constant bigint := txid_current();
  ahead constant bigint := (written::text::bigint - own) & 4294967295;
begin
  return coalesce(txid_status(own + case when ahead < 2147483648 then ahead else ahead - 4294967296 end) = 'in progress', false);
exception when invalid_parameter_value then
  return false;
end
$$;
comment on function "${schema}".pgworker_written_here(xid) is 'Whether a row that can be seen and has this xmin was written by this transaction.';
revoke execute on function "${schema}".pgworker_written_here(xid) from public;

-- Keeps those that are there from ending before this transaction does, and makes sure that something is known of the others. A worker of Node.js
-- may change the row of a running job that pgworker_keep_ends has locked, hence the second lock, after which its end is looked for again.
create or replace function "${schema}".pgworker_hold_predecessors(predecessors bigint[]) returns void
language plpgsql volatile
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off
set search_path = pg_catalog, pg_temp as $$
declare
  gone bigint[] := "${schema}".pgworker_keep_ends(predecessors, null, true);
  failed constant bigint[] := array(
    select j.id from (select distinct u.id from unnest(predecessors) u(id) order by u.id) g
    cross join lateral (select h.* from "${schema}"._private_jobs h where h.id = g.id for share offset 0) j
    where j.attempts >= j.max_attempts and j.locked_at is null);
begin
  update "${schema}".pgworker_ends x set
      outcome = 'failed', error = (select j.last_error from "${schema}"._private_jobs j where j.id = x.job_id),
      ended_at = now(), expires_at = now() + x.keep_for, news = true
    where x.job_id = any(failed) and x.outcome is null;
  if gone <> '{}' then
    insert into "${schema}".pgworker_ends (job_id, task_identifier, outcome, result, error, ended_at, expires_at)
      select distinct on (h.job_id) h.job_id, h.task_identifier, h.outcome, h.result, h.error, h.ended_at, now() + interval '1 hour'
      from "${schema}".pgworker_history h
      where h.job_id = any(gone) and h.outcome in ('succeeded', 'failed', 'removed', 'cancelled')
      order by h.job_id, h.ended_at desc
      on conflict (job_id) do nothing;
    update "${schema}".pgworker_ends x set flow = true, news = x.outcome is not null where x.job_id = any(gone);
    gone := array(select unnest(gone) except select x.job_id from "${schema}".pgworker_ends x where x.job_id = any(gone));
    if gone <> '{}' then
      raise exception 'No job can wait for job %, which does not exist, or has ended and nothing is known of how', gone[1] using errcode = '23503';
    end if;
  end if;
end
$$;
comment on function "${schema}".pgworker_hold_predecessors(bigint[]) is
  'Keeps jobs that others are going to wait for from ending before the transaction is over.';
revoke execute on function "${schema}".pgworker_hold_predecessors(bigint[]) from public;

-- Two transactions that each add a part of a circle have locked what their own edges lead to, and wait for each other: one of them fails.
create or replace function "${schema}".pgworker_refuse_circles(suspects bigint[]) returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp as $$
declare
  circle bigint;
begin
  with recursive way(start, id) as (
    select s.id, s.id from unnest(suspects) s(id)
    union
    select w.start, e.successor from way w join "${schema}".pgworker_flow_edges e on e.predecessor = w.id)
  select w.start into circle from way w join "${schema}".pgworker_flow_edges e on e.predecessor = w.id and e.successor = w.start limit 1;
  if circle is not null then
    raise exception 'Job % would wait for itself', circle using errcode = '23514';
  end if;
end
$$;
comment on function "${schema}".pgworker_refuse_circles(bigint[]) is 'Fails if one of the jobs waits, through others, for itself.';
revoke execute on function "${schema}".pgworker_refuse_circles(bigint[]) from public;

-- A job that waits is this transaction's own: so no worker can have started it, and a role that adds jobs can hold up only those. Edges of
-- a job that has been given another time since belong to a wait that is over, for example of a job that was added again by its key. A job
-- whose id is greater than those of its predecessors, and for which no job waits yet, closes no circle.
create or replace function "${schema}".pgworker_run_all_after(
  successors bigint[], predecessors bigint[], waiting bigint[], on_failures text[]
) returns void
language plpgsql volatile security definer
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off
set search_path = pg_catalog, pg_temp as $$
declare
  forever constant timestamptz := "${schema}".pgworker_forever();
  own constant bigint[] := array(select distinct u.id from unnest(waiting) u(id) order by 1);
  others bigint[];
  suspects bigint[];
begin
  if array_position(predecessors, null) is not null or cardinality(successors) is distinct from cardinality(predecessors)
    or exists (select unnest(successors) except select unnest(waiting))
  then
    perform "${schema}".pgworker_wrong('predecessors', 'must be ids of jobs, one for each successor', null);
  elsif exists (
    select from unnest(waiting, on_failures) u(id, choice) where coalesce(u.choice, '') not in ('wait', 'fail', 'run', 'remove', 'instead'))
  then
    perform "${schema}".pgworker_wrong('on_failure', 'must be wait, fail, run, remove or instead', on_failures::text);
  end if;
  perform from "${schema}"._private_jobs j where j.id = any(own) order by j.id for update;
  others := array(
    select unnest(own) except
    select j.id from "${schema}"._private_jobs j
    where j.id = any(own) and j.attempts < j.max_attempts and (j.locked_at is null or "${schema}".pgworker_parked(j.locked_at))
      and "${schema}".pgworker_written_here(j.xmin)
      and not exists (select from "${schema}".pgworker_ends e where e.job_id = j.id and e.marked_by = txid_current()));
  if others <> '{}' then
    raise exception 'Job % cannot wait for others: this transaction has not added it', others[1] using errcode = '55000';
  end if;
  perform "${schema}".pgworker_hold_predecessors(array(select unnest(predecessors) except select unnest(own)));
  perform "${schema}".pgworker_keep_ends(own, null, true);
  delete from "${schema}".pgworker_flow_edges e
    using "${schema}"._private_jobs j where j.id = any(own) and j.run_at <> forever and e.successor = j.id;
  insert into "${schema}".pgworker_flow_waits as w (job_id, on_failure, run_at)
    select u.id, u.choice, j.run_at from unnest(waiting, on_failures) u(id, choice)
    join "${schema}"._private_jobs j on j.id = u.id
    order by u.id
    on conflict (job_id) do update set
      on_failure = excluded.on_failure, look = true, tries = 0, retry_at = '-infinity', released_at = null,
      run_at = case when excluded.run_at = "${schema}".pgworker_forever() then w.run_at else excluded.run_at end;
  with added as (
    insert into "${schema}".pgworker_flow_edges (successor, predecessor)
      select distinct u.successor, u.predecessor from unnest(successors, predecessors) u(successor, predecessor) order by 1, 2
      on conflict (successor, predecessor) do nothing
      returning successor, predecessor)
  select array_agg(distinct a.successor) into suspects from added a
    where a.predecessor >= a.successor or exists (select from "${schema}".pgworker_flow_edges e where e.predecessor = a.successor);
  if suspects is not null then
    perform "${schema}".pgworker_refuse_circles(suspects);
  end if;
  update "${schema}"._private_jobs j set run_at = forever where j.id = any(own) and j.run_at <> forever;
  if exists (select from "${schema}"._private_jobs j where j.id = any(own) and j.run_at <> forever) then
    raise exception 'A trigger keeps jobs from waiting for others' using errcode = '27000';
  end if;
  perform pg_notify('pgworker:continue', '');
end
$$;
comment on function "${schema}".pgworker_run_all_after(bigint[], bigint[], bigint[], text[]) is
  'As pgworker_run_after, for many jobs: successors[i] waits for predecessors[i]; waiting are the successors, each once, and on_failures '
  'has for each what the other function calls on_failure.';
revoke execute on function "${schema}".pgworker_run_all_after(bigint[], bigint[], bigint[], text[]) from public;

create or replace function "${schema}".pgworker_run_after(successor bigint, predecessors bigint[], on_failure text default 'wait')
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp as $$
begin
  if coalesce(cardinality(predecessors), 0) = 0 then
    perform "${schema}".pgworker_wrong('predecessors', 'must be the ids of one job or more', predecessors::text);
  end if;
  perform "${schema}".pgworker_run_all_after(
    array_fill(successor, array[cardinality(predecessors)]), predecessors, array[successor], array[on_failure]);
end
$$;
comment on function "${schema}".pgworker_run_after(bigint, bigint[], text) is
  'Has a job that this transaction has added start when all the given jobs have succeeded. on_failure says what happens if one of them fails for good, or '
  'is removed or cancelled: "wait" until it has been run again and succeeds, "fail" too, "remove" the job, or "run" it all the same when all have ended. '
  'With "instead" it runs only then, and is removed if all succeed.';
revoke execute on function "${schema}".pgworker_run_after(bigint, bigint[], text) from public;
