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

-- What a limit counts by is not changed in place: jobs have to be looked at anew, as for a new limit. One that stays as it is writes and locks nothing.
create or replace function "${schema}".pgworker_define_limit(given "${schema}".pgworker_limits) returns "${schema}".pgworker_limits
language plpgsql volatile
set search_path = pg_catalog, pg_temp as $$
declare
  before "${schema}".pgworker_limits;
  put "${schema}".pgworker_limits;
begin
  perform "${schema}".pgworker_wrong(c.argument, c.rule, c.value) from (values
      ('name', 'must have 1 to 128 characters', given.name, coalesce(length(given.name) between 1 and 128, false)),
      ('task_identifiers', 'must name 1 to 1000 tasks', cardinality(given.task_identifiers)::text,
        coalesce(cardinality(given.task_identifiers) between 1 and 1000, false)),
      ('task_identifiers', 'must each have 1 to 128 characters', given.task_identifiers::text,
        not exists (select from unnest(given.task_identifiers) t(name) where coalesce(length(t.name) between 1 and 128, false) = false)),
      ('field', 'must be null or 1 to 20 names of at most 1000 characters', given.field::text, cardinality(given.field) between 0 and 20
        and not exists (select from unnest(given.field) f(name) where f.name is null or length(f.name) > 1000)),
      ('max_running', 'must be between 1 and 1000000', given.max_running::text, given.max_running between 1 and 1000000),
      ('max_starts', 'must be between 1 and 1000000000', given.max_starts::text, given.max_starts between 1 and 1000000000),
      ('period', 'must be given with max_starts, and only then', given.period::text, (given.period is null) = (given.max_starts is null)),
      ('period', 'must be between 1 millisecond and 3650 days', given.period::text,
        given.period between interval '1 millisecond' and interval '3650 days'),
      ('burst', 'must be between 1 and 1000000000, and only be given with max_starts', given.burst::text,
        given.burst is null or given.max_starts is not null and given.burst between 1 and 1000000000)
    ) c(argument, rule, value, fits)
    where not c.fits;
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

create or replace function "${schema}".pgworker_put_limit(
  name text, task_identifiers text[], field text[] default null, max_running int default null, max_starts int default null,
  period interval default null, burst int default null, declared boolean default null
) returns "${schema}".pgworker_limits
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp as $$
declare
  per_second constant numeric := max_starts / nullif(extract(epoch from period)::numeric, 0);
  given "${schema}".pgworker_limits;
begin
  if (max_running is null) = (max_starts is null) then
    raise exception 'Exactly one of max_running and max_starts must be given' using errcode = '22023';
  elsif max_starts is not null then
    -- With less than that, what falls between two looks would be lost.
    if burst < ceil(per_second / 10) then
      perform "${schema}".pgworker_wrong(
        'burst', format('must be at least %s, which is what a tenth of a second allows', ceil(per_second / 10)), burst::text);
    end if;
    burst := coalesce(burst, least(1000000000, greatest(1, ceil(per_second / 2))));
  end if;
  given.burst := burst;
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

create or replace function "${schema}".pgworker_put_fair_share(
  name text, task_identifiers text[], field text[], weights jsonb default null, declared boolean default null
) returns "${schema}".pgworker_limits
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp as $$
declare
  given "${schema}".pgworker_limits;
begin
  if coalesce(cardinality(field), 0) = 0 then
    perform "${schema}".pgworker_wrong('field', 'must be 1 to 20 names', field::text);
  elsif jsonb_typeof(weights) <> 'object' or jsonb_path_exists(weights, '$.* ? (@.type() != "number" || @ < 0.01 || @ > 100)') then
    perform "${schema}".pgworker_wrong('weights', 'must be an object with a number between 0.01 and 100 for each value', weights::text);
  end if;
  given.weights := coalesce(weights, '{}');
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

create or replace function "${schema}".pgworker_delete_limit(name text) returns boolean
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp as $$
declare
  tasks text[];
begin
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

-- All together or, where that is refused, because of a user's trigger for example, one by one: a job that cannot be changed stays as it is.
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
comment on function "${schema}".pgworker_show(tid[]) is 'Shows jobs that no worker holds, at these addresses, to the trigger that parks them or lets them go; returns how many.';

revoke execute on function "${schema}".pgworker_note_limited, "${schema}".pgworker_define_limit, "${schema}".pgworker_put_limit,
  "${schema}".pgworker_put_fair_share, "${schema}".pgworker_delete_limit, "${schema}".pgworker_show from public;
