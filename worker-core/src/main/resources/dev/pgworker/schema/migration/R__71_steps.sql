-- Steps: what a job has done already, what it waits for, and the signals that continue it.
--
-- A record is written only by the claim that holds the job: its row is locked in share mode until the record is committed, so that no recovery,
-- which changes that row, comes between. Records have the job's revision: a job that is added again by its key does other work, and begins anew.
--
-- A signal and a wait of its name find each other though neither waits for the other: both are fresh when they are written. A look at a
-- fresh one sees all of the other kind that were committed before; so of two that were written at the same time the one that is looked at
-- later finds the other. A row that is locked is passed over and stays fresh.

create or replace function "${schema}".pgworker_end_step(
  worker_id text, job_id bigint, claims timestamptz[], name text, kind text, micros bigint, result_type text, result text
) returns text
language plpgsql volatile
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set jit = off
set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
declare
  held record;
begin
  select j.revision, j.attempts into held from "${schema}"._private_jobs j
    where j.id = job_id and j.locked_by = worker_id and j.locked_at = any(claims) for share;
  if not found then
    return 'lost';
  end if;
  insert into "${schema}".pgworker_steps (job_id, revision, name, kind, claim, attempt, started_at, ended_at, result_type, result)
    values (job_id, held.revision, name, kind, claims[1], held.attempts, clock_timestamp() - micros * interval '1 microsecond',
      clock_timestamp(), result_type, result::json)
    on conflict on constraint pgworker_steps_pkey do nothing;
  return case when found or exists (
      select from "${schema}".pgworker_steps s
      where s.job_id = pgworker_end_step.job_id and s.revision = held.revision and s.name = pgworker_end_step.name
        and s.claim = claims[1] and s.ended_at is not null)
    then 'written' else 'taken' end;
end
$$;
comment on function "${schema}".pgworker_end_step(text, bigint, timestamptz[], text, text, bigint, text, text) is
  'Records a step that has taken so many microseconds, in the transaction of the caller: "written", also if this claim has done so before; "lost" if '
  'the worker does not hold the job by its claim, the first of these times, or one of the others that its lock may have got since; "taken" if there '
  'is a step of this name by another claim.';
revoke execute on function "${schema}".pgworker_end_step(text, bigint, timestamptz[], text, text, bigint, text, text) from public;

-- A job that runs still waits, as it is about to give itself back; one that has failed for good does not.
create or replace function "${schema}".pgworker_waits(wait "${schema}".pgworker_steps) returns boolean
language sql stable
set search_path = pg_catalog, pg_temp as $$
  select exists (
    select from "${schema}"._private_jobs j
    where j.id = wait.job_id and j.revision = wait.revision
      and (j.attempts < j.max_attempts or j.locked_at is not null and not "${schema}".pgworker_parked(j.locked_at)))
$$;
comment on function "${schema}".pgworker_waits("${schema}".pgworker_steps) is 'Whether a job waits at this step.';
revoke execute on function "${schema}".pgworker_waits("${schema}".pgworker_steps) from public;

create or replace function "${schema}".pgworker_take_signal(signal text) returns "${schema}".pgworker_signals
language plpgsql volatile
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off set jit = off
set search_path = pg_catalog, pg_temp as $$
declare
  taken "${schema}".pgworker_signals;
begin
  delete from "${schema}".pgworker_signals d where d.id = (
      select g.id from "${schema}".pgworker_signals g
      where g.name = pgworker_take_signal.signal and g.expires_at > clock_timestamp()
      order by g.id limit 1 for update skip locked)
    returning d.* into taken;
  return taken;
end
$$;
comment on function "${schema}".pgworker_take_signal(text) is
  'Deletes the oldest signal of this name that no session holds, and returns it; null if there is none.';
revoke execute on function "${schema}".pgworker_take_signal(text) from public;

create or replace function "${schema}".pgworker_wait(
  worker_id text, job_id bigint, claims timestamptz[], name text, signal text, seconds float8, until timestamptz
) returns "${schema}".pgworker_steps
language plpgsql volatile
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set jit = off
set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
declare
  held record;
  step "${schema}".pgworker_steps;
  taken "${schema}".pgworker_signals;
begin
  select j.revision, j.attempts into held from "${schema}"._private_jobs j
    where j.id = job_id and j.locked_by = worker_id and j.locked_at = any(claims) for share;
  if not found then
    return null;
  end if;
  insert into "${schema}".pgworker_steps (job_id, revision, name, kind, signal, claim, attempt, started_at, due_at, fresh)
    values (job_id, held.revision, name, case when signal is null then 'sleep' else 'wait' end, signal, claims[1], held.attempts,
      clock_timestamp(), coalesce(until, clock_timestamp() + seconds * interval '1 second'), signal is not null)
    on conflict on constraint pgworker_steps_pkey do nothing;
  select * into step from "${schema}".pgworker_steps s
    where s.job_id = pgworker_wait.job_id and s.revision = held.revision and s.name = pgworker_wait.name for update;
  if step.ended_at is not null or step.kind not in ('wait', 'sleep') then
    return step;
  end if;
  if step.signal is not null and not exists (
    select from "${schema}".pgworker_steps o
    where o.signal = step.signal and o.started_at < step.started_at and o.ended_at is null and "${schema}".pgworker_waits(o))
  then
    taken := "${schema}".pgworker_take_signal(step.signal);
  end if;
  if taken.id is not null or step.due_at <= clock_timestamp() then
    update "${schema}".pgworker_steps s
      set ended_at = clock_timestamp(), result = taken.payload, timed_out = s.signal is not null and taken.id is null, fresh = false
      where s.job_id = step.job_id and s.revision = step.revision and s.name = step.name
      returning * into step;
  elsif step.fresh then
    perform pg_notify('pgworker:continue', '');
  end if;
  return step;
end
$$;
comment on function "${schema}".pgworker_wait(text, bigint, timestamptz[], text, text, float8, timestamptz) is
  'Has a job wait for a signal, or for a time if that is null: so many seconds at most, or until the time; of one that waits already only ends the wait '
  'if there is a signal or the time has come. Returns the step, which has ended or is still to end; null if the worker does not hold the job by one of '
  'these times of its lock.';
revoke execute on function "${schema}".pgworker_wait(text, bigint, timestamptz[], text, text, float8, timestamptz) from public;

create or replace function "${schema}".pgworker_signal(name text, payload json default null, keep_for interval default '7 days') returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp as $$
begin
  perform "${schema}".pgworker_check_length('name', coalesce(name, ''), 128);
  if keep_for is null or keep_for not between interval '1 second' and interval '3650 days' then
    perform "${schema}".pgworker_wrong('keep_for', 'must be between 1 second and 3650 days', keep_for::text);
  elsif octet_length(payload::text) > 1048576 then
    raise exception 'The payload of signal "%" has % bytes, of which 1048576 are allowed', name, octet_length(payload::text)
      using errcode = '22023';
  end if;
  insert into "${schema}".pgworker_signals (name, payload, expires_at) values (name, payload, clock_timestamp() + keep_for);
  perform pg_notify('pgworker:continue', '');
end
$$;
comment on function "${schema}".pgworker_signal(text, json, interval) is
  'Sends a signal, which the job receives that has waited longest for this name, or if none waits the first that does so before keep_for is over. '
  'Joins the caller''s transaction, and waits for nothing.';
grant execute on function "${schema}".pgworker_signal(text, json, interval) to public;

-- What stops being fresh does so by the snapshot of the statement that has seen it.
create or replace function "${schema}".pgworker_known(sent text, anyway boolean) returns boolean
language plpgsql volatile
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set jit = off
set search_path = pg_catalog, pg_temp as $$
declare
  most constant int := 5000;
  signals bigint;
  waits bigint;
begin
  update "${schema}".pgworker_signals g set fresh = false
    where g.id = any(array(
      select o.id from "${schema}".pgworker_signals o where o.name = sent and o.fresh and (anyway or not exists (
        select from "${schema}".pgworker_steps w where w.signal = sent and w.ended_at is null and "${schema}".pgworker_waits(w)))
      limit most for update skip locked));
  get diagnostics signals = row_count;
  update "${schema}".pgworker_steps s set fresh = false
    where s.ctid = any(array(
      select w.ctid from "${schema}".pgworker_steps w
      where w.signal = sent and w.ended_at is null and w.fresh and (anyway or not "${schema}".pgworker_waits(w) or not exists (
        select from "${schema}".pgworker_signals g where g.name = sent and g.expires_at > clock_timestamp()))
      limit most for update skip locked));
  get diagnostics waits = row_count;
  return greatest(signals, waits) >= most;
end
$$;
comment on function "${schema}".pgworker_known(text, boolean) is
  'Has signals of this name, and waits for it, be fresh no more, as far as there is none of the other kind, or anyway: 5000 of each at most. Returns '
  'whether there may be more.';
revoke execute on function "${schema}".pgworker_known(text, boolean) from public;

-- Locks the job, then the step, then the signal, and waits for none.
create or replace function "${schema}".pgworker_deliver_signal(sent text) returns bigint
language plpgsql volatile
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off
set enable_hashjoin = off set enable_mergejoin = off set jit = off
set search_path = pg_catalog, pg_temp as $$
declare
  wait "${schema}".pgworker_steps;
  taken "${schema}".pgworker_signals;
  level smallint;
  context text;
begin
  if not exists (select from "${schema}".pgworker_signals g where g.name = sent and g.expires_at > clock_timestamp()) then
    return null;
  end if;
  select w.* into wait
    from "${schema}".pgworker_steps w
    cross join lateral (
      select from "${schema}"._private_jobs h
      where h.id = w.job_id and h.revision = w.revision and h.attempts < h.max_attempts
        and (h.locked_at is null or "${schema}".pgworker_parked(h.locked_at))
      for update skip locked) j
    where w.signal = sent and w.ended_at is null
    order by w.signal, w.started_at, w.job_id, w.name limit 1 for update of w skip locked;
  if not found then
    return null;
  end if;
  taken := "${schema}".pgworker_take_signal(sent);
  if taken.id is null then
    return null;
  end if;
  update "${schema}".pgworker_steps s set ended_at = clock_timestamp(), result = taken.payload, fresh = false
    where s.job_id = wait.job_id and s.revision = wait.revision and s.name = wait.name;
  update "${schema}"._private_jobs j set run_at = now(), locked_at = null, locked_by = null, updated_at = now()
    where j.id = wait.job_id returning j.priority into level;
  if not found then
    raise exception 'A trigger keeps job % from being changed', wait.job_id using errcode = '27000';
  end if;
  set constraints all immediate;
  perform "${schema}".pgworker_wake(1, now(), level::text);
  return wait.job_id;
exception when others or assert_failure or query_canceled then
  get stacked diagnostics context = pg_exception_context;
  if not "${schema}".pgworker_about_row(sqlstate, context) then raise; end if;
  raise warning 'Job % does not receive signal "%" before its time: %', wait.job_id, sent, sqlerrm;
  perform "${schema}".pgworker_known(sent, true);
  return null;
end
$$;
comment on function "${schema}".pgworker_deliver_signal(text) is
  'Gives the oldest signal of this name to the job that has waited longest for it, which is due then, and returns its id; null if there is none of both that '
  'no session holds.';
revoke execute on function "${schema}".pgworker_deliver_signal(text) from public;

-- Goes from name to name, so that many signals of one that is held up stand before no others.
create or replace function "${schema}".pgworker_deliver_signals(out more boolean, out held boolean)
language plpgsql volatile
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set jit = off
set search_path = pg_catalog, pg_temp as $$
declare
  most constant int := 500;
  delivered int := 0;
  sent text;
begin
  more := false;
  held := false;
  for sent in
    with recursive names as (
      (select g.name from "${schema}".pgworker_signals g where g.fresh order by g.name limit 1)
      union all
      select (select g.name from "${schema}".pgworker_signals g where g.fresh and g.name > n.name order by g.name limit 1)
      from names n where n.name is not null)
    select distinct u.name from (
      (select n.name from names n where n.name is not null limit most)
      union all
      (select w.signal from "${schema}".pgworker_steps w where w.fresh order by w.started_at limit most)) u
  loop
    while "${schema}".pgworker_deliver_signal(sent) is not null loop
      delivered := delivered + 1;
      more := true;
      if delivered = most then
        return;
      end if;
    end loop;
    if "${schema}".pgworker_known(sent, false) then
      more := true;
      return;
    end if;
    held := held or exists (select from "${schema}".pgworker_signals g where g.name = sent and g.fresh)
      or exists (select from "${schema}".pgworker_steps w where w.signal = sent and w.ended_at is null and w.fresh);
  end loop;
end
$$;
comment on function "${schema}".pgworker_deliver_signals() is
  'Gives signals to the jobs that wait for them, 500 at most: whether there may be more, and whether another session holds one or its job, so that it is worth '
  'looking again soon. Never waits.';
revoke execute on function "${schema}".pgworker_deliver_signals() from public;

create or replace function "${schema}".pgworker_tend_steps(inout after bigint, out more boolean)
language plpgsql volatile
set lock_timeout = '500ms' set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off
set enable_mergejoin = off set jit = off
set search_path = pg_catalog, pg_temp as $$
declare
  job_ids constant bigint[] := array(
    select distinct s.job_id from "${schema}".pgworker_steps s where s.job_id > after order by s.job_id limit 2000);
  deleted bigint;
begin
  delete from "${schema}".pgworker_signals d where d.id = any(array(
    select g.id from "${schema}".pgworker_signals g
    where g.expires_at < clock_timestamp() order by g.expires_at limit 5000 for update skip locked));
  get diagnostics deleted = row_count;
  more := deleted = 5000;
  delete from "${schema}".pgworker_steps d where d.ctid = any(array(
    select s.ctid from unnest(job_ids) g(id)
    join "${schema}".pgworker_steps s on s.job_id = g.id
    left join lateral (select h.revision from "${schema}"._private_jobs h where h.id = g.id offset 0) j on true
    where case
      when j.revision is not null then j.revision <> s.revision
      else not exists (select from "${schema}".pgworker_history h where h.job_id = g.id) end
    for update of s skip locked));
  get diagnostics deleted = row_count;
  -- A signal that came while the job had failed for good is received after its retry.
  update "${schema}".pgworker_steps w set fresh = true
    where w.job_id = any(job_ids) and w.ended_at is null and w.signal is not null and not w.fresh and "${schema}".pgworker_waits(w)
      and exists (select from "${schema}".pgworker_signals g where g.name = w.signal and g.expires_at > clock_timestamp());
  after := job_ids[2000];
  more := more or after is not null and deleted >= 2000;
end
$$;
comment on function "${schema}".pgworker_tend_steps(bigint) is
  'Deletes signals that have expired, and steps of 2000 jobs after the one with this id that are gone, also from the history, or do other work now. '
  'Returns the id of the last of these jobs, null if there are no more, and whether there was so much that it is worth going on at once.';
revoke execute on function "${schema}".pgworker_tend_steps(bigint) from public;

-- unsafe_dedupe, which raises the revision of a job and leaves its work what it is, reports that by a setting of the transaction.
create or replace function "${schema}".pgworker_keep_steps() returns trigger
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp as $$
begin
  if tg_relid <> '"${schema}"._private_jobs'::regclass then
    raise exception 'Only jobs keep their steps' using errcode = '42501';
  end if;
  update "${schema}".pgworker_steps s set revision = new.revision where s.job_id = old.id and s.revision = old.revision;
  return null;
end
$$;
comment on function "${schema}".pgworker_keep_steps() is 'Has the steps of a job follow its revision.';
revoke execute on function "${schema}".pgworker_keep_steps() from public;

do $trigger$
begin
  if not exists (
    select from pg_trigger t where t.tgrelid = '"${schema}"._private_jobs'::regclass and t.tgname = 'pgworker_same_work')
  then
    create trigger pgworker_same_work after update of revision on "${schema}"._private_jobs
      for each row when (current_setting('pgworker.same_work', true) = 'on') execute function "${schema}".pgworker_keep_steps();
  end if;
end
$trigger$;
