-- Limits: what they are, and the jobs that wait for them.
--
-- A job of a limited task waits in a *lane*, with those that wait for the same: of one task, queue, priority, and with the same flags and
-- values. It is parked, that is locked from the year 9999 on, with the name of its lane in locked_by instead of a worker. So it is in no
-- index of ordinary claims, blocks no other job, and no worker of any kind can claim it there, while its other columns stay what they are.
-- A limit has a *bucket* for each value of its field. pgworker_claim_limited looks for lanes whose buckets have room, and locks their first
-- jobs for its worker: the claim is the permit. What runs is what is locked.
--
-- Parking a job leaves a note of its lane and time, an *arrival*, in the same transaction. Ordinary claims leave limited tasks out, so
-- a job that no trigger has parked does not run; pgworker_apply_limits finds it.

create or replace function "${schema}".pgworker_parked(locked_at timestamptz) returns boolean
language sql immutable parallel safe as $$
  select coalesce(locked_at operator(pg_catalog.=) '9999-01-01 00:00:00+00'::pg_catalog.timestamptz, false)
$$;
comment on function "${schema}".pgworker_parked(timestamptz) is 'Whether such a lock means that the job waits for a limit.';
grant execute on function "${schema}".pgworker_parked(timestamptz) to public;

-- The text of a field has been made by PostgreSQL from an array, and so is one. PostgreSQL stores texts in json that it cannot read: \u0000
-- and surrogates without their other half. Where there are some, they are read as if their backslash were a slash. A payload that is nested
-- so deeply that there is no stack left to read it has no value. The constant means the same where standard_conforming_strings is off.
create or replace function "${schema}".pgworker_limit_values(payload json, fields text[]) returns text[]
language plpgsql immutable
set search_path = pg_catalog, pg_temp as $$
declare
  unreadable constant text := E'\\\\u(0000|d[89ab][0-9a-f]{2}(?!\\\\ud[c-f])|(?<!\\\\ud[89ab][0-9a-f]{2}\\\\u)d[c-f][0-9a-f]{2})';
  bucket_values text[] := '{}';
  field text;
  value text;
begin
  foreach field in array fields loop
    begin
      value := payload #>> field::text[];
    exception when others then
      begin
        value := regexp_replace(payload::text, unreadable, E'/u\\1', 'gi')::json #>> field::text[];
      exception when others then
        value := '';
      end;
    end;
    bucket_values := bucket_values || case when length(value) > 100
      then left(value, 60) || '...' || left(encode(sha256(convert_to(value, 'UTF8')), 'hex'), 32) else coalesce(value, '') end;
  end loop;
  return bucket_values;
end
$$;
comment on function "${schema}".pgworker_limit_values(json, text[]) is
  'The value by which each limit counts a job with this payload: an empty one where there is none, a long one cut and made unmistakable.';

-- Parks a job of a limited task that no worker holds, when it is added, changed or given back. The name of a lane reveals nothing of the
-- values, not even to those who guess. Called for rows of all tasks, hence without settings of its own. Of jobs of one lane and time that a
-- transaction parks one after the other, the first leaves the arrival.
create or replace function "${schema}".pgworker_park() returns trigger
language plpgsql volatile security definer as $$
declare
  parked constant pg_catalog.timestamptz := '9999-01-01 00:00:00+00';
  limited record;
  bucket_values pg_catalog.text[];
  lane pg_catalog.text;
  arrival pg_catalog.text;
begin
  if tg_relid operator(pg_catalog.<>) '"${schema}"._private_jobs'::pg_catalog.regclass then
    raise exception 'Only jobs wait for limits' using errcode = '42501';
  end if;
  select k.limit_ids, k.fields into limited from "${schema}".pgworker_limited_tasks k where k.task_id operator(pg_catalog.=) new.task_id;
  if not found or new.attempts operator(pg_catalog.>=) new.max_attempts then
    if new.locked_at is not null then
      new.locked_at := null;
      new.locked_by := null;
    end if;
    return new;
  end if;
  bucket_values := "${schema}".pgworker_limit_values(new.payload, limited.fields);
  lane := pg_catalog.left(pg_catalog.encode(pg_catalog.sha256(pg_catalog.convert_to(pg_catalog.concat(
    (select s.salt from "${schema}".pgworker_limit_salt s), new.task_id, ':', new.job_queue_id, ':', new.priority, limited.limit_ids,
    bucket_values, new.flags), 'UTF8')), 'hex'), 32);
  new.locked_at := parked;
  new.locked_by := 'pgworker-limit:'::pg_catalog.text operator(pg_catalog.||) lane;
  arrival := pg_catalog.concat(lane, ' ', new.run_at);
  if coalesce(pg_catalog.current_setting('pgworker.arrived', true), '') operator(pg_catalog.<>) arrival then
    insert into "${schema}".pgworker_limit_arrivals (lane, task_id, queue_id, priority, flags, run_at, limit_ids, bucket_values)
      values (lane, new.task_id, new.job_queue_id, new.priority, new.flags, new.run_at, limited.limit_ids, bucket_values);
    perform pg_catalog.set_config('pgworker.arrived', arrival, true);
    perform pg_catalog.pg_notify('pgworker:limits', '');
  end if;
  return new;
end
$$;
comment on function "${schema}".pgworker_park() is 'Has a job of a limited task wait for its limits, and one of another task not.';

create or replace function "${schema}".pgworker_keep_task() returns trigger
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp as $$
begin
  if tg_relid <> '"${schema}"._private_tasks'::regclass then
    raise exception 'Only tasks are kept' using errcode = '42501';
  end if;
  return case when not exists (select from "${schema}".pgworker_limited_tasks k where k.task_id = old.id) then old end;
end
$$;
comment on function "${schema}".pgworker_keep_task() is 'Keeps the row of a limited task, by whose id its jobs are limited, from being cleaned up.';

-- The names are the last in their order, so that what others' triggers change counts. Claims and completions call none of them; a call that
-- adds many jobs of tasks without a limit sets that (pgworker_put_all), which spares a call for each. Setting it wrongly does not help: no
-- ordinary claim takes such a job.
do $triggers$
begin
  if not exists (
    select from pg_trigger t where t.tgrelid = '"${schema}"._private_jobs'::regclass and t.tgname = 'zz_pgworker_park_added')
  then
    create trigger zz_pgworker_park_added before insert on "${schema}"._private_jobs
      for each row when (
        (new.locked_at is null or new.locked_at = '9999-01-01 00:00:00+00') and current_setting('pgworker.adding', true) is distinct from 'unlimited')
      execute function "${schema}".pgworker_park();
  end if;
  if not exists (
    select from pg_trigger t where t.tgrelid = '"${schema}"._private_jobs'::regclass and t.tgname = 'zz_pgworker_park_changed')
  then
    create trigger zz_pgworker_park_changed
      before update of task_id, job_queue_id, payload, priority, flags, run_at, attempts, max_attempts, locked_at on "${schema}"._private_jobs
      for each row when (new.locked_at is null or new.locked_at = '9999-01-01 00:00:00+00')
      execute function "${schema}".pgworker_park();
  end if;
  if not exists (
    select from pg_trigger t where t.tgrelid = '"${schema}"._private_tasks'::regclass and t.tgname = 'pgworker_keep_task')
  then
    create trigger pgworker_keep_task before delete on "${schema}"._private_tasks
      for each row execute function "${schema}".pgworker_keep_task();
  end if;
end
$triggers$;

create or replace function "${schema}".pgworker_unlimited(task_ids int[]) returns int[]
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp as $$
declare
  limited constant int[] := array(select k.task_id from "${schema}".pgworker_limited_tasks k);
begin
  return case when limited = '{}' or task_ids is null then task_ids
    else array(select case when u.id = any(limited) then 0 else u.id end from unnest(task_ids) with ordinality u(id, n) order by u.n) end;
end
$$;
comment on function "${schema}".pgworker_unlimited(int[]) is 'The ids of tasks, with 0 in the place of those that have a limit.';
grant execute on function "${schema}".pgworker_unlimited(int[]) to public;

revoke execute on function "${schema}".pgworker_limit_values, "${schema}".pgworker_park, "${schema}".pgworker_keep_task from public;
