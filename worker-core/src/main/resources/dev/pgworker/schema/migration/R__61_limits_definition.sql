-- Limits: adding, changing and deleting them.

create or replace function "${schema}".pgworker_note_limited(tasks text[]) returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp as $$
begin
  delete from "${schema}".pgworker_limited_tasks k where k.task_identifier = any(tasks);
  insert into "${schema}"._private_tasks (identifier)
    select distinct n.name from "${schema}".pgworker_limits l cross join lateral unnest(l.task_identifiers) n(name)
    where l.state <> 'removing' and n.name = any(tasks) and not exists (select from "${schema}"._private_tasks t where t.identifier = n.name)
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
comment on function "${schema}".pgworker_note_limited(text[]) is 'Notes the limits of these tasks, for those who add and claim jobs.';
revoke execute on function "${schema}".pgworker_note_limited(text[]) from public;

-- What a limit counts by is not changed in place: jobs have to be looked at anew, as for a new limit. One that stays as it is writes and locks nothing.
create or replace function "${schema}".pgworker_define_limit(given "${schema}".pgworker_limits) returns "${schema}".pgworker_limits
language plpgsql volatile
set search_path = pg_catalog, pg_temp as $$
declare
  before "${schema}".pgworker_limits;
  put "${schema}".pgworker_limits;
begin
  if given.name is null or length(given.name) not between 1 and 128 then
    perform "${schema}".pgworker_wrong('name', 'must have 1 to 128 characters', given.name);
  elsif coalesce(cardinality(given.task_identifiers), 0) not between 1 and 1000 then
    perform "${schema}".pgworker_wrong('task_identifiers', 'must name 1 to 1000 tasks', coalesce(cardinality(given.task_identifiers), 0)::text);
  elsif exists (select from unnest(given.task_identifiers) t(name) where t.name is null or length(t.name) not between 1 and 128) then
    perform "${schema}".pgworker_wrong('task_identifiers', 'must each have 1 to 128 characters', given.task_identifiers::text);
  elsif cardinality(given.field) > 20 or exists (select from unnest(given.field) f(name) where f.name is null or length(f.name) > 1000) then
    perform "${schema}".pgworker_wrong('field', 'must be null or 1 to 20 names of at most 1000 characters', given.field::text);
  end if;
  given.task_identifiers := array(select distinct t.name collate "C" as name from unnest(given.task_identifiers) t(name) order by 1);
  -- However many dimensions the array has: clients expect one.
  given.field := (select array_agg(f.name order by f.place) from unnest(given.field) with ordinality f(name, place));
  for attempt in 1..2 loop
    select * into before from "${schema}".pgworker_limits l where l.name = given.name;
    if before.state <> 'removing' and (before.task_identifiers, before.field, before.max_running, before.max_starts, before.period, before.burst,
        before.weights, before.declared) is not distinct from (given.task_identifiers, given.field, given.max_running, given.max_starts,
        given.period, given.burst, given.weights, coalesce(given.declared, before.declared)) then
      return before;
    end if;
    if attempt = 1 then
      lock table "${schema}".pgworker_limited_tasks in share row exclusive mode;
    end if;
  end loop;
  if before.state <> 'removing' and (before.task_identifiers, before.field, before.max_running is null, before.max_starts is null)
      is not distinct from (given.task_identifiers, given.field, given.max_running is null, given.max_starts is null) then
    update "${schema}".pgworker_limits l set
        max_running = given.max_running, max_starts = given.max_starts, period = given.period, burst = given.burst, weights = given.weights,
        declared = coalesce(given.declared, l.declared), updated_at = clock_timestamp()
      where l.id = before.id
      returning * into put;
  else
    delete from "${schema}".pgworker_limits l where l.id = before.id;
    insert into "${schema}".pgworker_limits as l (name, task_identifiers, field, max_running, max_starts, period, burst, weights, declared)
      values (given.name, given.task_identifiers, given.field, given.max_running, given.max_starts, given.period, given.burst, given.weights,
        coalesce(given.declared, false))
      returning * into put;
    perform "${schema}".pgworker_note_limited(put.task_identifiers || before.task_identifiers);
  end if;
  perform pg_notify('pgworker:limits', 's');
  return put;
end
$$;
comment on function "${schema}".pgworker_define_limit("${schema}".pgworker_limits) is 'Puts a limit in the place of the one of its name.';
revoke execute on function "${schema}".pgworker_define_limit("${schema}".pgworker_limits) from public;

create or replace function "${schema}".pgworker_put_limit(
  name text, task_identifiers text[], field text[] default null, max_running int default null, max_starts int default null,
  period interval default null, burst int default null, declared boolean default null
) returns "${schema}".pgworker_limits
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp as $$
declare
  most constant int := 1000000000;
  seconds float8;
  least_burst bigint;
  given "${schema}".pgworker_limits;
begin
  if (max_running is null) = (max_starts is null) then
    raise exception 'Exactly one of max_running and max_starts must be given' using errcode = '22023';
  elsif max_running not between 1 and 1000000 then
    perform "${schema}".pgworker_wrong('max_running', 'must be between 1 and 1000000', max_running::text);
  elsif max_starts not between 1 and most then
    perform "${schema}".pgworker_wrong('max_starts', 'must be between 1 and 1000000000', max_starts::text);
  elsif max_running is not null and (period is not null or burst is not null) then
    raise exception 'period and burst belong to max_starts' using errcode = '22023';
  elsif max_starts is not null then
    if period is null or period not between interval '1 millisecond' and interval '3650 days' or extract(epoch from period) < 0.001 then
      perform "${schema}".pgworker_wrong('period', 'must be between 1 millisecond and 3650 days', period::text);
    end if;
    seconds := extract(epoch from period);
    -- With less, what falls between two looks would be lost.
    least_burst := greatest(1, ceil(max_starts / seconds / 10))::bigint;
    if least_burst > most then
      perform "${schema}".pgworker_wrong('period', 'must be longer for so many starts', period::text);
    elsif burst not between least_burst and most then
      perform "${schema}".pgworker_wrong('burst', format(
        'must be between %s, which is what a tenth of a second allows, and 1000000000', least_burst), burst::text);
    end if;
    given.burst := coalesce(burst, least(most, greatest(1, ceil(max_starts / seconds / 2)))::int);
  end if;
  given.name := name;
  given.task_identifiers := task_identifiers;
  given.field := field;
  given.max_running := max_running;
  given.max_starts := max_starts;
  given.period := period;
  given.declared := declared;
  return "${schema}".pgworker_define_limit(given);
end
$$;
comment on function "${schema}".pgworker_put_limit(text, text[], text[], int, int, interval, int, boolean) is
  'Makes a limit or changes the one of that name: of jobs of these tasks at most max_running at once, or max_starts in each period and burst at once, '
  'for each value at this place of the payload if one is given. Without burst it is what half a second allows.';
revoke execute on function "${schema}".pgworker_put_limit(text, text[], text[], int, int, interval, int, boolean) from public;

create or replace function "${schema}".pgworker_put_fair_share(
  name text, task_identifiers text[], field text[], weights jsonb default null, declared boolean default null
) returns "${schema}".pgworker_limits
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp as $$
declare
  wrong text;
  given "${schema}".pgworker_limits;
begin
  if coalesce(cardinality(field), 0) = 0 then
    perform "${schema}".pgworker_wrong('field', 'must be 1 to 20 names of at most 1000 characters', field::text);
  elsif weights is not null and jsonb_typeof(weights) <> 'object' then
    perform "${schema}".pgworker_wrong('weights', 'must be an object with a number for each value', weights::text);
  end if;
  given.weights := coalesce(weights, '{}');
  select w.value::text into wrong from jsonb_each(given.weights) w
    where case when jsonb_typeof(w.value) = 'number' then w.value::numeric not between 0.01 and 100 else true end limit 1;
  if found then
    perform "${schema}".pgworker_wrong('weights', 'must each be a number between 0.01 and 100', wrong);
  end if;
  given.name := name;
  given.task_identifiers := task_identifiers;
  given.field := field;
  given.declared := declared;
  return "${schema}".pgworker_define_limit(given);
end
$$;
comment on function "${schema}".pgworker_put_fair_share(text, text[], text[], jsonb, boolean) is
  'Has jobs of these tasks start in turn over the values at this place of the payload, by weight, which is 1 where none is given; as one of the limits '
  'it has a name, and is deleted as such.';
revoke execute on function "${schema}".pgworker_put_fair_share(text, text[], text[], jsonb, boolean) from public;

create or replace function "${schema}".pgworker_delete_limit(name text) returns boolean
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp as $$
declare
  tasks text[];
begin
  if not exists (select from "${schema}".pgworker_limits l where l.name = pgworker_delete_limit.name and l.state <> 'removing') then
    return false;
  end if;
  lock table "${schema}".pgworker_limited_tasks in share row exclusive mode;
  update "${schema}".pgworker_limits l set state = 'removing', updated_at = clock_timestamp()
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
  'Deletes a limit: jobs are no longer subject to it, and workers let those go that wait for it alone. Returns whether there was one.';
revoke execute on function "${schema}".pgworker_delete_limit(text) from public;

-- All together or, where that is refused, because of a trigger of somebody's for instance, one by one: a job that cannot be changed stays as it is.
create or replace function "${schema}".pgworker_show(tids tid[]) returns bigint
language plpgsql volatile
set search_path = pg_catalog, pg_temp as $$
declare
  freed record;
  shown bigint := 0;
  context text;
begin
  with shown as (
    update "${schema}"._private_jobs j set locked_at = '9999-01-01 00:00:00+00', locked_by = '' where j.ctid = any(tids)
    returning j.is_available, j.run_at)
  select count(*) as shown, count(*) filter (where s.is_available) as jobs, min(s.run_at) filter (where s.is_available) as earliest into freed from shown s;
  perform "${schema}".pgworker_wake(freed.jobs, freed.earliest);
  return freed.shown;
exception when others or assert_failure then
  get stacked diagnostics context = pg_exception_context;
  if not "${schema}".pgworker_about_row(sqlstate, context) then raise; end if;
  if cardinality(tids) > 1 then
    for at in 1..cardinality(tids) loop
      shown := shown + "${schema}".pgworker_show(tids[at:at]);
    end loop;
  else
    raise warning 'A job cannot be made to wait for limits, or not to: %', sqlerrm;
  end if;
  return shown;
end
$$;
comment on function "${schema}".pgworker_show(tid[]) is 'Shows jobs that nobody holds, at these addresses, to the trigger that parks them or lets them go; returns how many.';
revoke execute on function "${schema}".pgworker_show(tid[]) from public;
