-- Recovery: gives back what dead workers hold.

-- The one pass over the tables that a recovery makes, whatever it frees: no index knows who holds what, as one would cost every claim a
-- fifth. The callers continue by ids. One snapshot shows a claim as a whole, so a queue whose job has just been claimed is not mistaken for
-- an idle one. The settings of the callers, which keep them from reading whole tables, do not hold here.
-- The first condition, which almost no row meets, halves the time.
create or replace function "${schema}".pgworker_locks(worker_ids text[])
returns table (job_id bigint, queue_id int, worker_id text, locked_at timestamptz, flags jsonb)
language sql stable rows 1000
set enable_seqscan = on set jit = off
set search_path = pg_catalog, pg_temp as $$
  select j.id, j.job_queue_id, j.locked_by, j.locked_at, j.flags from "${schema}"._private_jobs j
  where (j.locked_by is not null or j.locked_at is not null) and j.locked_at is distinct from '9999-01-01 00:00:00+00'
    and case when worker_ids is null then j.locked_at is not null else j.locked_by = any(worker_ids) end
  union all
  select null, q.id, q.locked_by, q.locked_at, null from "${schema}"._private_job_queues q
  where (q.locked_by is not null or q.locked_at is not null)
    and case when worker_ids is null then q.locked_at is not null else q.locked_by = any(worker_ids) end
    and q.locked_by is distinct from 'pgworker-paused'
$$;
comment on function "${schema}".pgworker_locks(text[]) is
  'The jobs and queues (job_id is null) that the given workers hold, or any worker: one snapshot, one pass over each table. Jobs that wait for '
  'a limit and paused queues are held by none.';
revoke execute on function "${schema}".pgworker_locks(text[]) from public;

create or replace function "${schema}".pgworker_held_by(worker_ids text[], out job_ids bigint[], out idle_queues int[])
language sql stable
set search_path = pg_catalog, pg_temp as $$
  with held as materialized (select l.job_id, l.queue_id, l.worker_id from "${schema}".pgworker_locks(pgworker_held_by.worker_ids) l)
  select
    (select array_agg(h.job_id order by h.job_id) from held h where h.job_id is not null),
    (select array_agg(i.queue_id) from (
      select h.queue_id from held h where h.queue_id is not null group by h.queue_id, h.worker_id having bool_and(h.job_id is null)) i)
$$;
comment on function "${schema}".pgworker_held_by(text[]) is
  'The jobs that the given workers hold, and the queues that they hold without a job of them.';
revoke execute on function "${schema}".pgworker_held_by(text[]) from public;

-- Rows known by id are looked up, and changed, one by one here and below: a join over many ids becomes one over the whole table where
-- the statistics mislead. So do the settings of these functions keep each look-up at an index.
--
-- A queue is freed with the last job of it that its worker held. The jobs are changed already, so those that the workers hold still are
-- the ones that were passed over.
create or replace function "${schema}".pgworker_free_queues_of(
  queue_ids int[], idle_queues int[], job_ids bigint[], worker_ids text[]
) returns void
language plpgsql volatile
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off
set search_path = pg_catalog, pg_temp as $$
begin
  perform "${schema}".pgworker_free_queues(
    array(
      select unnest(queue_ids)
      union
      select unnest(idle_queues)
      except
      select j.job_queue_id
      from unnest(job_ids) g(id)
      cross join lateral (
        select h.job_queue_id from "${schema}"._private_jobs h where h.id = g.id and h.locked_by = any(worker_ids) offset 0) j
      where j.job_queue_id is not null),
    worker_ids);
end
$$;
comment on function "${schema}".pgworker_free_queues_of(int[], int[], bigint[], text[]) is
  'Frees the queues of jobs that were taken from the given workers, and idle ones, except those of the given jobs that these workers '
  'hold still, and wakes workers.';
revoke execute on function "${schema}".pgworker_free_queues_of(int[], int[], bigint[], text[]) from public;

-- All together in one subtransaction; where that is refused, because of a user's trigger for example, each half by itself, so that
-- a row that cannot be changed costs little and affects no other row. A job that has no attempts left would stay behind without a word, so
-- it gets one. As in the peers, updated_at stays.
create or replace function "${schema}".pgworker_unlock(job_ids bigint[], out queue_ids int[], out released bigint, out ready bigint)
language plpgsql volatile
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off
set search_path = pg_catalog, pg_temp as $$
declare
  total constant int := cardinality(job_ids);
  half record;
  context text;
begin
  released := 0;
  ready := 0;
  if coalesce(total, 0) = 0 then return; end if;
  begin
    perform set_config('pgworker.ending', 'recovered', true);
    with unlocked as (
      update "${schema}"._private_jobs j set
          locked_at = null,
          locked_by = null,
          last_error = case
            when j.attempts >= j.max_attempts then coalesce(
              case when j.key is null then "${schema}".pgworker_retirement(j.id, j.last_error) || '; its worker died' end,
              j.last_error,
              'Job unlocked during its last attempt')
            else j.last_error
          end
        from unnest(job_ids) g(id)
        cross join lateral (select h.ctid as tid from "${schema}"._private_jobs h where h.id = g.id offset 0) p
        where j.ctid = p.tid
        returning j.job_queue_id, j.is_available)
    select array_agg(distinct u.job_queue_id), count(*), count(*) filter (where u.is_available)
      into queue_ids, released, ready
      from unlocked u;
    perform set_config('pgworker.ending', '', true);
    if released < total then
      raise exception 'a trigger keeps the row' using errcode = '27000';
    end if;
    set constraints all immediate;
    if exists (select from "${schema}".pgworker_cancellations c where c.job_id = any(job_ids)) then
      perform "${schema}".pgworker_end_cancelled(job_ids);
    end if;
    return;
  exception when others or assert_failure or query_canceled then
    get stacked diagnostics context = pg_exception_context;
    if not "${schema}".pgworker_about_row(sqlstate, context) then raise; end if;
    queue_ids := null;
    released := 0;
    ready := 0;
    if total = 1 then
      raise warning 'Job % stays locked: %', job_ids[1], sqlerrm;
      return;
    end if;
  end;
  for at in 1..total by (total + 1) / 2 loop
    select * into half from "${schema}".pgworker_unlock(job_ids[at:at + (total + 1) / 2 - 1]);
    queue_ids := queue_ids || half.queue_ids;
    released := released + half.released;
    ready := ready + half.ready;
  end loop;
end
$$;
comment on function "${schema}".pgworker_unlock(bigint[]) is
  'Unlocks the given jobs, whose rows the caller has locked, as far as they let themselves be changed, their attempts counted; returns '
  'their queues, how many jobs it has unlocked and how many of these have attempts left.';
revoke execute on function "${schema}".pgworker_unlock(bigint[]) from public;

create or replace function "${schema}".pgworker_force_unlock(worker_ids text[]) returns boolean
language plpgsql volatile
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off
set search_path = pg_catalog, pg_temp as $$
declare
  held record;
  unlocked record;
begin
  select * into held from "${schema}".pgworker_held_by(pgworker_force_unlock.worker_ids);
  select * into unlocked from "${schema}".pgworker_unlock(array(
    select g.id from (select given.id from unnest(held.job_ids) given(id) order by given.id) g
    cross join lateral (
      select from "${schema}"._private_jobs h where h.id = g.id and h.locked_by = any(worker_ids) for update) j));
  perform "${schema}".pgworker_free_queues_of(unlocked.queue_ids, held.idle_queues, held.job_ids, worker_ids);
  perform "${schema}".pgworker_wake(unlocked.ready);
  return unlocked.released > 0;
end
$$;
comment on function "${schema}".pgworker_force_unlock(text[]) is
  'Releases all jobs and queues of the given workers; returns whether there was a job.';
revoke execute on function "${schema}".pgworker_force_unlock(text[]) from public;

-- Of the functions that the peers know, those without a result are in SQL, as theirs are: PL/pgSQL would return an empty text instead of null.
create or replace function "${schema}".force_unlock_workers(worker_ids text[]) returns void
language sql volatile
set search_path = pg_catalog, pg_temp as $$
  select "${schema}".pgworker_force_unlock(worker_ids)
$$;
comment on function "${schema}".force_unlock_workers(text[]) is
  'Releases all jobs and queues of the given workers; only for workers that are known to be dead.';

-- All together or, where that is refused, each half by itself, as in pgworker_unlock. Of a retired job the attempts are kept: giving one
-- back would run it again. A job that has lost its worker too often pays with an attempt and waits the usual back-off. Jobs that are
-- delayed alike keep their order by microseconds.
create or replace function "${schema}".pgworker_take_back(
  job_ids bigint[], actions text[], run_ats timestamptz[], attempts int[], marked boolean[], before int, recovery_delay interval,
  max_recoveries int
) returns table (id bigint, outcome text, queue_id int, available boolean)
language plpgsql volatile
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off
set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
  total constant int := cardinality(job_ids);
  half constant int := (total + 1) / 2;
  done record;
  context text;
begin
  if coalesce(total, 0) = 0 then return; end if;
  begin
    perform set_config('pgworker.ending', 'recovered', true);
    with held as materialized (
      select j.tid, j.id, j.attempts, j.max_attempts, j.revision, g.action, g.at, g.new_attempts, before + g.place as place,
        least(coalesce((
          select r.recoveries from "${schema}".pgworker_recoveries r where r.job_id = j.id and r.revision = j.revision), 0), 1000000) + 1
          as times,
        case when j.key is null and j.attempts >= j.max_attempts then coalesce(
          "${schema}".pgworker_retirement(j.id, j.last_error),
          case when g.marked then 'Superseded or removed by its key while running' end) end as retired
      from unnest(job_ids, actions, run_ats, attempts, marked) with ordinality g(id, action, at, new_attempts, marked, place)
      cross join lateral (select h.ctid as tid, h.* from "${schema}"._private_jobs h where h.id = g.id offset 0) j),
    decided as materialized (
      select h.*,
        case
          when h.retired = 'Cancelled while running' then 'cancelled'
          when h.retired is not null then 'superseded'
          when h.action = 'reschedule' then 'rescheduled'
          when h.action = 'fail' or h.times > max_recoveries then
            case when h.attempts >= h.max_attempts then 'exhausted' else 'failed' end
          else 'returned'
        end as outcome
      from held h),
    changed as (
      update "${schema}"._private_jobs j set
          attempts = case d.outcome
            when 'returned' then greatest(0, j.attempts - 1)
            when 'rescheduled' then coalesce(d.new_attempts, greatest(0, j.attempts - 1))
            else j.attempts
          end,
          run_at = case d.outcome
            when 'returned' then greatest(now(), j.run_at) + recovery_delay + d.place * interval '1 microsecond'
            when 'rescheduled' then d.at
            when 'failed' then greatest(now(), j.run_at) + "${schema}".pgworker_backoff(j.attempts)
            else j.run_at
          end,
          last_error = case
            when d.retired is not null then d.retired || '; its worker died'
            when d.outcome in ('failed', 'exhausted') then format(
              'WorkerCrashed: worker %s died during attempt %s of %s; the job has lost its worker %s times',
              j.locked_by, j.attempts, j.max_attempts, d.times)
            else 'Job recovered after worker interruption'
          end,
          locked_at = null,
          locked_by = null,
          updated_at = now()
        from decided d
        where j.ctid = d.tid
        returning j.id, d.outcome, j.job_queue_id, j.is_available, d.retired, d.revision, d.times),
    noted as (
      insert into "${schema}".pgworker_recoveries as r (job_id, revision, recoveries)
        select c.id, c.revision, c.times from changed c where c.retired is null
        on conflict (job_id) do update set revision = excluded.revision, recoveries = excluded.recoveries)
    select array_agg(c.id) as ids, array_agg(c.outcome) as outcomes, array_agg(c.job_queue_id) as queues,
        array_agg(c.is_available) as available
      into done
      from changed c;
    perform set_config('pgworker.ending', '', true);
    if coalesce(cardinality(done.ids), 0) < total then
      raise exception 'a trigger keeps the row' using errcode = '27000';
    end if;
    set constraints all immediate;
    return query select * from unnest(done.ids, done.outcomes, done.queues, done.available);
    return;
  exception when others or assert_failure or query_canceled then
    get stacked diagnostics context = pg_exception_context;
    if not "${schema}".pgworker_about_row(sqlstate, context) then raise; end if;
    if total = 1 then
      id := job_ids[1];
      outcome := 'refused: ' || sqlerrm;
      return next;
      return;
    end if;
  end;
  for at in 1..total by half loop
    return query
      select *
      from "${schema}".pgworker_take_back(
        job_ids[at:at + half - 1], actions[at:at + half - 1], run_ats[at:at + half - 1],
        attempts[at:at + half - 1], marked[at:at + half - 1], before + at - 1, recovery_delay, max_recoveries);
  end loop;
end
$$;
comment on function "${schema}".pgworker_take_back(bigint[], text[], timestamptz[], int[], boolean[], int, interval, int) is
  'Does what pgworker_recover says with jobs, whose rows it has locked, in the order in which they are to start again, after so many '
  'before them. Tells of each whether it has attempts left, and its queue, unless it was refused.';
revoke execute on function "${schema}".pgworker_take_back(bigint[], text[], timestamptz[], int[], boolean[], int, interval, int) from public;

-- A locked row is left for the next sweep. What a Rust worker has retired is read when the rows are locked, so that it cannot
-- retire another one meanwhile.
create or replace function "${schema}".pgworker_recover(
  worker_ids text[], job_ids bigint[], idle_queues int[], recovery_delay interval, max_recoveries int, actions text[] default null,
  run_ats timestamptz[] default null, attempts int[] default null
) returns table (id bigint, outcome text)
language plpgsql volatile
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off
set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
  given record;
  marked boolean[];
  taken record;
begin
  if exists (select from unnest(actions) a where a not in ('default', 'reschedule', 'fail', 'skip')) then
    raise exception 'Unknown action in %: expected default, reschedule, fail or skip', actions using errcode = '22023';
  end if;
  select array_agg(l.id) as ids, array_agg(l.action) as actions, array_agg(l.at) as ats, array_agg(l.new_attempts) as new_attempts
    into given
    from (
      select g.id, g.action, g.at, g.new_attempts
      from (
        select distinct on (u.id) u.* from unnest(job_ids, actions, run_ats, attempts) u(id, action, at, new_attempts)
        order by u.id) g
      cross join lateral (
        select h.priority, h.run_at from "${schema}"._private_jobs h
        where h.id = g.id and h.locked_by = any(worker_ids) for update skip locked) j
      where g.action is distinct from 'skip'
      order by j.priority, j.run_at, g.id) l;
  if to_regclass('"${schema}"._private_job_retirements') is not null then
    execute 'select array_agg(exists (select from "${schema}"._private_job_retirements r where r.id = g.id) order by g.place) '
      'from unnest($1) with ordinality g(id, place)' into marked using given.ids;
  end if;
  select array_agg(t.id) as ids, array_agg(t.outcome) as outcomes, array_agg(t.queue_id) as queues,
      count(*) filter (where t.available) as ready
    into taken
    from "${schema}".pgworker_take_back(
      given.ids, given.actions, given.ats, given.new_attempts, marked, 0, recovery_delay, max_recoveries) t;
  return query select * from unnest(taken.ids, taken.outcomes);
  if 'cancelled' = any(taken.outcomes) then
    perform "${schema}".pgworker_end_cancelled(taken.ids);
  end if;
  if given.ids is not null then
    perform "${schema}".pgworker_sweep_up();
  end if;
  perform "${schema}".pgworker_free_queues_of(taken.queues, idle_queues, job_ids, worker_ids);
  perform "${schema}".pgworker_wake(taken.ready);
end
$$;
comment on function "${schema}".pgworker_recover(text[], bigint[], int[], interval, int, text[], timestamptz[], int[]) is
  'Takes jobs from dead workers and frees their queues. Give all the jobs, and idle queues, that these workers hold, as '
  'pgworker_held_by tells them. Action "default", or null: up to max_recoveries times a job '
  'runs again after the delay, its attempt not counted (outcome "returned"); later, and with action "fail", the attempt counts '
  '("failed", or "exhausted" if it was the last). "reschedule": it runs at the given time; null attempts leave the attempt uncounted '
  '("rescheduled"). "skip": it stays locked. A job that lost its key while running is never run again ("superseded"), and one that was cancelled is deleted ("cancelled"). One that cannot be '
  'changed, for example because of a trigger of the application, stays locked as well ("refused: " and the reason).';
revoke execute on function "${schema}".pgworker_recover(text[], bigint[], int[], interval, int, text[], timestamptz[], int[]) from public;

create or replace function "${schema}".recover_dead_worker_jobs(worker_ids text[], recovery_delay interval default '0') returns int
language plpgsql volatile
set search_path = pg_catalog, pg_temp as $$
declare
  held record;
  decided record;
  unlocked int := 0;
begin
  if recovery_delay is null or recovery_delay not between interval '0' and interval '36500 days' then
    raise exception 'recovery_delay must be between 0 and 36500 days, but is %', recovery_delay using errcode = '22023';
  end if;
  select * into held from "${schema}".pgworker_held_by(recover_dead_worker_jobs.worker_ids);
  for decided in
    select * from "${schema}".pgworker_recover(worker_ids, held.job_ids, held.idle_queues, recovery_delay, 3)
  loop
    if decided.outcome like 'refused: %' then
      raise warning 'Job % stays locked: %', decided.id, substr(decided.outcome, length('refused: ') + 1);
    else
      unlocked := unlocked + 1;
    end if;
  end loop;
  return unlocked;
end
$$;
comment on function "${schema}".recover_dead_worker_jobs(text[], interval) is
  'Releases the jobs of dead workers, up to three times without counting an attempt, and their queues, and returns how many jobs it '
  'unlocked. Raises a warning for each job that could not be unlocked.';

-- Rows that are gone, or another worker's, are left out.
create or replace function "${schema}".pgworker_held_jobs(worker_ids text[], job_ids bigint[])
returns table (job "${schema}"._private_jobs, task text, queue text, recoveries int, retired boolean)
language sql volatile
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off
set search_path = pg_catalog, pg_temp as $$
  select j.whole, coalesce(t.identifier, 'task ' || j.task_id), q.queue_name,
    coalesce((select r.recoveries from "${schema}".pgworker_recoveries r where r.job_id = j.id and r.revision = j.revision), 0),
    j.key is null and j.attempts >= j.max_attempts and "${schema}".pgworker_retirement(j.id, j.last_error) is not null
  from unnest(job_ids) g(id)
  cross join lateral (
    select h as whole, h.* from "${schema}"._private_jobs h where h.id = g.id and h.locked_by = any(worker_ids) offset 0) j
  left join lateral (select n.identifier from "${schema}"._private_tasks n where n.id = j.task_id offset 0) t on true
  left join lateral (select n.queue_name from "${schema}"._private_job_queues n where n.id = j.job_queue_id offset 0) q on true
  order by j.id
$$;
comment on function "${schema}".pgworker_held_jobs(text[], bigint[]) is
  'The given jobs that are held by the given workers, with the names of their tasks and queues.';
revoke execute on function "${schema}".pgworker_held_jobs(text[], bigint[]) from public;

create or replace function "${schema}".pgworker_flagged(flags jsonb, names text[]) returns boolean
language sql immutable parallel safe as $$
  select exists (
    select from pg_catalog.unnest(names) name
    where (flags operator(pg_catalog.->) name) operator(pg_catalog.<>) all (array['false', 'null', '0', '""']::pg_catalog.jsonb[]))
$$;
comment on function "${schema}".pgworker_flagged(jsonb, text[]) is 'Whether one of the named flags is present and true.';
revoke execute on function "${schema}".pgworker_flagged(jsonb, text[]) from public;
