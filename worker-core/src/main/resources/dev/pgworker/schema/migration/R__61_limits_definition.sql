-- Limits: adding, changing and deleting them.

create or replace function "${schema}".pgworker_keep_task() returns trigger
language plpgsql volatile as $$
begin
  return null;
end
$$;
comment on function "${schema}".pgworker_keep_task() is 'Keeps the row of a limited task, whose id triggers know, from being cleaned up.';
revoke execute on function "${schema}".pgworker_keep_task() from public;

create or replace function "${schema}".pgworker_switched_limits() returns int[]
language sql stable
set search_path = pg_catalog, pg_temp as $$
  select case when count(*) = 4 and min(t.args) = max(t.args) then min(t.args)::int[] else '{}' end
  from (
    select replace(encode(t.tgargs, 'escape'), E'\\000', '') as args from pg_trigger t
    where t.tgrelid = '"${schema}"._private_jobs'::regclass
        and t.tgname in ('zz_pgworker_limits_added', 'zz_pgworker_limits_changed', 'zz_pgworker_limits_deleted')
      or t.tgrelid = '"${schema}"._private_tasks'::regclass and t.tgname = 'zz_pgworker_limits_kept') t
$$;
comment on function "${schema}".pgworker_switched_limits() is 'The ids of the tasks whose jobs go through the triggers of the limits.';
revoke execute on function "${schema}".pgworker_switched_limits() from public;

create or replace function "${schema}".pgworker_limited_ids() returns int[]
language sql stable
set search_path = pg_catalog, pg_temp as $$
  select array(
    select distinct t.id from "${schema}".pgworker_limits l cross join lateral unnest(l.task_identifiers) n(name)
    join "${schema}"._private_tasks t on t.identifier = n.name
    order by t.id)
$$;
comment on function "${schema}".pgworker_limited_ids() is 'The ids of the tasks that have limits.';
revoke execute on function "${schema}".pgworker_limited_ids() from public;

-- The names are the last in their order, so that what others' triggers change counts. Making and dropping triggers waits for who
-- writes jobs no longer than others may be made to wait behind it. Where PostgreSQL can replace a trigger, it does not wait for who only reads.
-- The row of a limited task is kept because a task that is made anew gets another id.
create or replace function "${schema}".pgworker_switch_limits(task_ids int[]) returns boolean
language plpgsql volatile
set lock_timeout = '50ms' set client_min_messages = warning
set search_path = pg_catalog, pg_temp as $$
declare
  replaces constant boolean := current_setting('server_version_num')::int >= 140000;
  make constant text := case when replaces then 'create or replace trigger ' else 'create trigger ' end;
  waits constant text := '(new.locked_at is null or new.locked_at = ''9999-01-01 00:00:00+00'')';
begin
  if not replaces or task_ids = '{}' then
    drop trigger if exists zz_pgworker_limits_added on "${schema}"._private_jobs;
    drop trigger if exists zz_pgworker_limits_changed on "${schema}"._private_jobs;
    drop trigger if exists zz_pgworker_limits_deleted on "${schema}"._private_jobs;
    drop trigger if exists zz_pgworker_limits_kept on "${schema}"._private_tasks;
  end if;
  if task_ids <> '{}' then
    execute make || format('zz_pgworker_limits_added before insert on "${schema}"._private_jobs for each row
      when ((new.task_id = any (%1$L::int[]) or new.locked_at = ''9999-01-01 00:00:00+00'') and new.attempts < new.max_attempts and %2$s)
      execute function "${schema}".pgworker_park_added(%1$L)', task_ids, waits);
    execute make || format('zz_pgworker_limits_changed
      before update of task_id, job_queue_id, payload, flags, run_at, attempts, max_attempts, locked_at on "${schema}"._private_jobs for each row
      when (%2$s and (new.task_id = any (%1$L::int[]) or old.task_id = any (%1$L::int[]) or new.locked_at = ''9999-01-01 00:00:00+00'')
        and current_setting(''pgworker.limits'', true) is distinct from ''admit'')
      execute function "${schema}".pgworker_park_changed(%1$L)', task_ids, waits);
    execute make || format('zz_pgworker_limits_deleted after delete on "${schema}"._private_jobs for each row
      when (old.task_id = any (%1$L::int[]) and (old.locked_at <> ''9999-01-01 00:00:00+00'' or old.is_available))
      execute function "${schema}".pgworker_tell_deleted(%1$L)', task_ids);
    execute make || format('zz_pgworker_limits_kept before delete on "${schema}"._private_tasks for each row
      when (old.id = any (%1$L::int[])) execute function "${schema}".pgworker_keep_task(%1$L)', task_ids);
  end if;
  return true;
exception when lock_not_available or deadlock_detected then
  return false;
end
$$;
comment on function "${schema}".pgworker_switch_limits(int[]) is
  'Makes the triggers that keep the limits of these tasks, or drops them if there are none; returns false if locks of others are in the way.';
revoke execute on function "${schema}".pgworker_switch_limits(int[]) from public;

create or replace function "${schema}".pgworker_note_limited(tasks text[]) returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp as $$
begin
  delete from "${schema}".pgworker_limited_tasks k where k.task_identifier = any(tasks);
  insert into "${schema}"._private_tasks (identifier)
    select distinct n.name from "${schema}".pgworker_limits l cross join lateral unnest(l.task_identifiers) n(name)
    where n.name = any(tasks) and not exists (select from "${schema}"._private_tasks t where t.identifier = n.name)
    order by n.name
    on conflict do nothing;
  insert into "${schema}".pgworker_limited_tasks (task_identifier, task_id, limit_ids, fields)
    select t.identifier, t.id, array_agg(l.id order by l.id), array_agg(l.field::text order by l.id)
    from (select distinct u.name from unnest(tasks) u(name)) n
    join "${schema}"._private_tasks t on t.identifier = n.name
    join "${schema}".pgworker_limits l on l.state <> 'removing' and n.name = any(l.task_identifiers)
    group by t.identifier, t.id;
end
$$;
comment on function "${schema}".pgworker_note_limited(text[]) is 'Notes the limits of these tasks, for those who add jobs.';
revoke execute on function "${schema}".pgworker_note_limited(text[]) from public;

-- What a limit counts by is not changed in place: jobs that wait, and those that run, have to be looked at anew, as for a limit that is made.
create or replace function "${schema}".pgworker_put_limit(
  name text, task_identifiers text[], field text[] default null, max_running int default null, max_starts int default null,
  period interval default null, burst int default null, declared boolean default null
) returns "${schema}".pgworker_limits
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
  most constant int := 1000000000;
  tasks text[];
  -- However many dimensions the array has: clients expect one.
  keys constant text[] := (select array_agg(f.name order by f.place) from unnest(field) with ordinality f(name, place));
  seconds float8;
  least_burst bigint;
  usual_burst bigint;
  before "${schema}".pgworker_limits;
  put "${schema}".pgworker_limits;
begin
  if pgworker_put_limit.name is null or length(pgworker_put_limit.name) not between 1 and 128 then
    perform "${schema}".pgworker_wrong('name', 'must have 1 to 128 characters', pgworker_put_limit.name);
  end if;
  tasks := array(select distinct t.name collate "C" as name from unnest(pgworker_put_limit.task_identifiers) t(name) order by 1);
  if cardinality(tasks) not between 1 and 1000 then
    perform "${schema}".pgworker_wrong('task_identifiers', 'must name 1 to 1000 tasks', cardinality(tasks)::text);
  elsif exists (select from unnest(tasks) t(name) where t.name is null or length(t.name) not between 1 and 128) then
    perform "${schema}".pgworker_wrong('task_identifiers', 'must each have 1 to 128 characters', tasks::text);
  elsif cardinality(pgworker_put_limit.field) > 20
    or exists (select from unnest(pgworker_put_limit.field) f(name) where f.name is null or length(f.name) > 1000)
  then
    perform "${schema}".pgworker_wrong('field', 'must be null or 1 to 20 names of at most 1000 characters', pgworker_put_limit.field::text);
  elsif (pgworker_put_limit.max_running is null) = (pgworker_put_limit.max_starts is null) then
    raise exception 'Exactly one of max_running and max_starts must be given' using errcode = '22023';
  elsif pgworker_put_limit.max_running not between 1 and 1000000 then
    perform "${schema}".pgworker_wrong('max_running', 'must be between 1 and 1000000', pgworker_put_limit.max_running::text);
  elsif pgworker_put_limit.max_starts not between 1 and most then
    perform "${schema}".pgworker_wrong('max_starts', 'must be between 1 and 1000000000', pgworker_put_limit.max_starts::text);
  elsif pgworker_put_limit.max_running is not null and (pgworker_put_limit.period is not null or pgworker_put_limit.burst is not null) then
    raise exception 'period and burst belong to max_starts' using errcode = '22023';
  elsif pgworker_put_limit.max_starts is not null then
    if pgworker_put_limit.period is null
      or pgworker_put_limit.period not between interval '1 millisecond' and interval '3650 days'
      or extract(epoch from pgworker_put_limit.period) < 0.001
    then
      perform "${schema}".pgworker_wrong('period', 'must be between 1 millisecond and 3650 days', pgworker_put_limit.period::text);
    end if;
    seconds := extract(epoch from pgworker_put_limit.period);
    -- Gates look in steps: with less, what falls between two of them would be lost.
    least_burst := greatest(1, ceil(pgworker_put_limit.max_starts / seconds / 10))::bigint;
    usual_burst := least(most, greatest(1, ceil(pgworker_put_limit.max_starts / seconds / 2)))::bigint;
    if least_burst > most then
      perform "${schema}".pgworker_wrong('period', 'must be longer for so many starts', pgworker_put_limit.period::text);
    elsif pgworker_put_limit.burst not between least_burst and most then
      perform "${schema}".pgworker_wrong('burst', format(
        'must be between %s, which is what a tenth of a second allows, and 1000000000', least_burst), pgworker_put_limit.burst::text);
    end if;
  end if;

  update "${schema}".pgworker_limit_state s set number = s.number + 1 where s.name = 'changes';
  select * into before from "${schema}".pgworker_limits l where l.name = pgworker_put_limit.name for update;
  if found then
    update "${schema}".pgworker_limits l set
        task_identifiers = tasks,
        field = keys,
        max_running = pgworker_put_limit.max_running,
        max_starts = pgworker_put_limit.max_starts,
        period = pgworker_put_limit.period,
        burst = case when pgworker_put_limit.max_starts is not null then coalesce(pgworker_put_limit.burst, usual_burst::int) end,
        declared = coalesce(pgworker_put_limit.declared, l.declared),
        updated_at = clock_timestamp()
      where l.id = before.id
      returning * into put;
    if before.state = 'removing' or before.task_identifiers <> put.task_identifiers or before.field is distinct from put.field
      or before.max_running is null and put.max_running is not null
    then
      update "${schema}".pgworker_limits l set
          state = 'applying', unaware = null, looked_at = null, place = null, passed = false, sure = false, settled = false
        where l.id = before.id
        returning * into put;
    end if;
  else
    insert into "${schema}".pgworker_limits as l (name, task_identifiers, field, max_running, max_starts, period, burst, declared)
      values (pgworker_put_limit.name, tasks, keys, pgworker_put_limit.max_running,
        pgworker_put_limit.max_starts, pgworker_put_limit.period,
        case when pgworker_put_limit.max_starts is not null then coalesce(pgworker_put_limit.burst, usual_burst::int) end,
        coalesce(pgworker_put_limit.declared, false))
      returning * into put;
  end if;
  perform "${schema}".pgworker_note_limited(tasks || before.task_identifiers);
  perform pg_notify('pgworker:limits', 's');
  return put;
end
$$;
comment on function "${schema}".pgworker_put_limit(text, text[], text[], int, int, interval, int, boolean) is
  'Makes a limit or changes the one of that name: of jobs of these tasks at most max_running at once, or max_starts in each period and burst at once, '
  'for each value at this place of the payload if one is given. Without burst it is what half a second allows. It holds as soon as its '
  'state is active, which workers see to.';
revoke execute on function "${schema}".pgworker_put_limit(text, text[], text[], int, int, interval, int, boolean) from public;

create or replace function "${schema}".pgworker_delete_limit(name text) returns boolean
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp as $$
declare
  tasks text[];
begin
  update "${schema}".pgworker_limit_state s set number = s.number + 1 where s.name = 'changes';
  update "${schema}".pgworker_limits l set
      state = 'removing', unaware = null, looked_at = null, place = null, passed = false, sure = false, settled = false, updated_at = clock_timestamp()
    where l.name = pgworker_delete_limit.name and l.state <> 'removing'
    returning l.task_identifiers into tasks;
  if not found then
    return false;
  end if;
  perform "${schema}".pgworker_note_limited(tasks);
  perform pg_notify('pgworker:limits', 's');
  return true;
end
$$;
comment on function "${schema}".pgworker_delete_limit(text) is
  'Deletes a limit: new jobs are no longer subject to it, and workers let those go that wait for it. Returns whether there was one.';
revoke execute on function "${schema}".pgworker_delete_limit(text) from public;
