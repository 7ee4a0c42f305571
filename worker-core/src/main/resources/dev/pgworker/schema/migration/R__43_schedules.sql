-- Schedules. Applications call these as well, so whatever is refused is refused to all in the same words. Only Java knows the grammars of
-- the expressions in full: a worker writes what is wrong with one given here into the column problem, within a second. Each call locks one
-- row, so what it has changed holds from its return on, and an edit that may change when something is due wakes the workers, once a
-- transaction.

create or replace function "${schema}".pgworker_wrong(argument text, allowed text, given text) returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp as $$
begin
  raise exception '%', concat(argument, ' ', allowed, ', but is ', coalesce(quote_literal(left(given, 200)), 'null')) using errcode = '22023';
end
$$;
comment on function "${schema}".pgworker_wrong(text, text, text) is
  'Raises an exception that names an argument, what it must be and what it is.';
grant execute on function "${schema}".pgworker_wrong(text, text, text) to public;

create or replace function "${schema}".pgworker_check_length(argument text, given text, most int) returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp as $$
begin
  if length(given) not between 1 and most then
    raise exception '%', format('%s must have 1 to %s characters, but has %s', argument, most, length(given)) using errcode = '22023';
  end if;
end
$$;
comment on function "${schema}".pgworker_check_length(text, text, int) is
  'Raises an exception that names the argument unless the text is null or has 1 to so many characters.';
grant execute on function "${schema}".pgworker_check_length(text, text, int) to public;

create or replace function "${schema}".pgworker_span(argument text, given interval, lowest interval) returns interval
language plpgsql stable
set search_path = pg_catalog, pg_temp as $$
begin
  if given < lowest or given > interval '3650 days' then
    perform "${schema}".pgworker_wrong(argument, format('must be between %s and 3650 days', lowest), given::text);
  elsif date_part('month', given) <> 0 or date_part('year', given) <> 0 then
    perform "${schema}".pgworker_wrong(argument, 'must be given in days, hours, minutes and seconds, as months differ in length', given::text);
  end if;
  return make_interval(secs => date_part('epoch', given));
end
$$;
comment on function "${schema}".pgworker_span(text, interval, interval) is
  'Returns the interval in hours, a day of 24, or raises an exception that names the argument, unless it is at least as given and at most ten years.';
grant execute on function "${schema}".pgworker_span(text, interval, interval) to public;

create or replace function "${schema}".pgworker_check_schedule(given "${schema}".pgworker_schedules) returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp as $$
begin
  if given.kind = 'crontab' and given.expression !~ '^[-0-9*/,]+( [-0-9*/,]+){4}$' then
    perform "${schema}".pgworker_wrong('crontab',
      'must be minute, hour, day of month, month and day of week, each a number, a range a-b, * or */n, or several joined by commas', given.expression);
  elsif given.kind = 'cron' and given.expression !~ '^(@[A-Za-z]+|[-A-Za-z0-9*/,?#]+( [-A-Za-z0-9*/,?#]+){5})$' then
    perform "${schema}".pgworker_wrong('cron',
      'must be second, minute, hour, day of month, month and day of week, or a macro such as @daily', given.expression);
  elsif given.zone !~ '^([A-Za-z][A-Za-z0-9~/._+:-]+|Z|[+-][0-9:]+)$' then
    perform "${schema}".pgworker_wrong('zone', 'must be the name of a time zone, such as Europe/Berlin', given.zone);
  elsif not isfinite(given.origin) then
    perform "${schema}".pgworker_wrong('origin', 'must be finite', given.origin::text);
  elsif not isfinite(given.starts_at) then
    perform "${schema}".pgworker_wrong('starts_at', 'must be finite, or null for no limit', given.starts_at::text);
  elsif not isfinite(given.ends_at) then
    perform "${schema}".pgworker_wrong('ends_at', 'must be finite, or null for no limit', given.ends_at::text);
  elsif given.ends_at <= given.starts_at then
    perform "${schema}".pgworker_wrong('ends_at', format('must be after starts_at, %s', given.starts_at), given.ends_at::text);
  elsif given.kind = 'rate' and given.jitter >= given.every then
    perform "${schema}".pgworker_wrong('jitter', format('must be less than fixed_rate, %s', given.every), given.jitter::text);
  elsif json_typeof(given.payload) <> 'object' then
    perform "${schema}".pgworker_wrong('payload', 'must be a JSON object, to which _cron is added', json_typeof(given.payload));
  elsif length(given.payload::text) > 100000 then
    raise exception 'payload must have at most 100000 characters, but has %', length(given.payload::text) using errcode = '22023';
  elsif given.job_key_mode not in ('replace', 'preserve_run_at', 'unsafe_dedupe', 'replace_and_cancel') then
    perform "${schema}".pgworker_wrong('job_key_mode', 'must be replace, preserve_run_at, unsafe_dedupe or replace_and_cancel', given.job_key_mode);
  elsif given.overlap not in ('allow', 'queue', 'skip') then
    perform "${schema}".pgworker_wrong('overlap', 'must be allow, queue or skip', given.overlap);
  elsif given.misfire not in ('skip', 'run_once', 'run_all') then
    perform "${schema}".pgworker_wrong('misfire', 'must be skip, run_once or run_all', given.misfire);
  elsif array_position(given.flags, null) is not null or array_position(given.flags, '') is not null
      or cardinality(given.flags) > (select count(distinct f.name) from unnest(given.flags) f(name)) then
    perform "${schema}".pgworker_wrong('flags', 'must be different texts, none null and none empty', given.flags::text);
  end if;
end
$$;
comment on function "${schema}".pgworker_check_schedule("${schema}".pgworker_schedules) is
  'Raises an exception that names an argument of pgworker_put_schedule and what is allowed, if there is something wrong with it.';
grant execute on function "${schema}".pgworker_check_schedule("${schema}".pgworker_schedules) to public;

-- Made of the arguments, most of which have the names that they have in add_job.
create or replace function "${schema}".pgworker_schedule_row(
  name text, identifier text, payload json, crontab text, cron text, fixed_rate interval, fixed_delay interval, zone text, origin timestamptz,
  starts_at timestamptz, ends_at timestamptz, jitter interval, queue_name text, max_attempts int, job_key text, priority int, flags text[],
  job_key_mode text, overlap text, misfire text, backfill interval
) returns "${schema}".pgworker_schedules
language plpgsql stable
set search_path = pg_catalog, pg_temp as $$
declare
  given "${schema}".pgworker_schedules;
begin
  if name is null then
    perform "${schema}".pgworker_wrong('name', 'must have 1 to 128 characters', null);
  elsif identifier is null then
    perform "${schema}".pgworker_wrong('identifier', 'must have 1 to 128 characters', null);
  elsif num_nonnulls(crontab, cron, fixed_rate, fixed_delay) <> 1 then
    raise exception 'exactly one of crontab, cron, fixed_rate and fixed_delay must be given, but % are',
      num_nonnulls(crontab, cron, fixed_rate, fixed_delay) using errcode = '22023';
  elsif zone is not null and coalesce(crontab, cron) is null then
    perform "${schema}".pgworker_wrong('zone', 'must be null without crontab or cron', zone);
  elsif (origin is null) = (fixed_rate is not null) then
    perform "${schema}".pgworker_wrong('origin', 'must be given with fixed_rate, a time at which it is due, and else be null', origin::text);
  elsif max_attempts not between 1 and 32767 then
    perform "${schema}".pgworker_wrong('max_attempts', 'must be between 1 and 32767', max_attempts::text);
  elsif priority not between -32768 and 32767 then
    perform "${schema}".pgworker_wrong('priority', 'must be between -32768 and 32767', priority::text);
  elsif jitter < interval '0' or jitter > interval '7 days' then
    perform "${schema}".pgworker_wrong('jitter', 'must be between 0 and 7 days', jitter::text);
  end if;
  perform "${schema}".pgworker_check_length('name', name, 128), "${schema}".pgworker_check_length('identifier', identifier, 128),
    "${schema}".pgworker_check_length('crontab', crontab, 1000), "${schema}".pgworker_check_length('cron', cron, 1000),
    "${schema}".pgworker_check_length('zone', zone, 128), "${schema}".pgworker_check_length('queue_name', queue_name, 128),
    "${schema}".pgworker_check_length('job_key', job_key, 512);
  given.name := name;
  given.kind := case
    when crontab is not null then 'crontab' when cron is not null then 'cron' when fixed_rate is not null then 'rate' else 'delay' end;
  given.expression := regexp_replace(btrim(coalesce(crontab, cron), E' \t'), E'[ \t]+', ' ', 'g');
  given.zone := case when given.expression is not null then coalesce(zone, 'UTC') end;
  given.every := coalesce("${schema}".pgworker_span('fixed_rate', fixed_rate, interval '1 second'),
    "${schema}".pgworker_span('fixed_delay', fixed_delay, interval '1 second'));
  given.origin := origin;
  given.starts_at := starts_at;
  given.ends_at := ends_at;
  given.jitter := coalesce("${schema}".pgworker_span('jitter', jitter, interval '0'), interval '0');
  given.task_identifier := identifier;
  given.payload := coalesce(payload, '{}');
  given.queue_name := queue_name;
  given.priority := coalesce(priority, 0);
  given.max_attempts := coalesce(max_attempts, 25);
  given.job_key := job_key;
  given.job_key_mode := coalesce(job_key_mode, 'replace');
  given.flags := case when cardinality(flags) > 0 then array(select unnest(flags)) end;
  given.misfire := coalesce(misfire, 'skip');
  -- Executions that all take place wait for each other.
  given.overlap := coalesce(overlap, case given.misfire when 'run_all' then 'queue' else 'skip' end);
  given.backfill := "${schema}".pgworker_span('backfill', backfill, interval '1 second');
  perform "${schema}".pgworker_check_schedule(given);
  return given;
end
$$;
comment on function "${schema}".pgworker_schedule_row(text, text, json, text, text, interval, interval, text, timestamptz, timestamptz, timestamptz,
  interval, text, int, text, int, text[], text, text, text, interval) is
  'The row of a schedule that is described by the arguments of pgworker_put_schedule; raises an exception that names one that is invalid.';
grant execute on function "${schema}".pgworker_schedule_row(text, text, json, text, text, interval, interval, text, timestamptz, timestamptz, timestamptz, interval, text, int, text, int, text[], text, text, text, interval) to public;

-- What executions have written stays. A delay whose job runs still waits for its end; one whose job has ended counts from then.
create or replace function "${schema}".pgworker_changed_schedule(
  old "${schema}".pgworker_schedules, given "${schema}".pgworker_schedules, declared boolean
) returns "${schema}".pgworker_schedules
language plpgsql stable
set search_path = pg_catalog, pg_temp as $$
declare
  both_delays constant boolean := old.kind = 'delay' and given.kind = 'delay';
begin
  given.declared := coalesce(declared, old.declared);
  given.paused_at := old.paused_at;
  given.paused_by := old.paused_by;
  given.last_at := old.last_at;
  given.last_job_id := old.last_job_id;
  given.created_at := old.created_at;
  given.updated_at := old.updated_at;
  given.retry_at := null;
  given.awaits_end := both_delays and old.awaits_end;
  given.next_at := case
    when given.awaits_end then null
    when old.next_at is null and old.problem is not null then '-infinity'
    when row(old.starts_at, old.ends_at) is distinct from row(given.starts_at, given.ends_at) then '-infinity'
    when row(old.kind, old.expression, old.zone, old.every, old.origin)
      is not distinct from row(given.kind, given.expression, given.zone, given.every, given.origin) then old.next_at
    when both_delays and old.last_at is not null and isfinite(old.next_at)
      then greatest(old.next_at - old.every + given.every, given.starts_at)
    else '-infinity'
  end;
  if given.kind = 'delay' and given.next_at >= given.ends_at then
    given.next_at := null;
  end if;
  return given;
end
$$;
comment on function "${schema}".pgworker_changed_schedule("${schema}".pgworker_schedules, "${schema}".pgworker_schedules, boolean) is
  'The row of a schedule that has been given other values: when it is due stays if the recurrence does, and a problem counts as mended.';
grant execute on function "${schema}".pgworker_changed_schedule("${schema}".pgworker_schedules, "${schema}".pgworker_schedules, boolean) to public;

create or replace function "${schema}".pgworker_put_schedule(
  name text,
  identifier text,
  payload json default null,
  crontab text default null,
  cron text default null,
  fixed_rate interval default null,
  fixed_delay interval default null,
  zone text default null,
  origin timestamptz default null,
  starts_at timestamptz default null,
  ends_at timestamptz default null,
  jitter interval default null,
  queue_name text default null,
  max_attempts int default null,
  job_key text default null,
  priority int default null,
  flags text[] default null,
  job_key_mode text default null,
  overlap text default null,
  misfire text default null,
  backfill interval default null,
  only_new boolean default false,
  declared boolean default null
) returns "${schema}".pgworker_schedules
language plpgsql volatile
set search_path = pg_catalog, pg_temp as $$
declare
  given "${schema}".pgworker_schedules := "${schema}".pgworker_schedule_row(name, identifier, payload, crontab, cron, fixed_rate, fixed_delay,
    zone, origin, starts_at, ends_at, jitter, queue_name, max_attempts, job_key, priority, flags, job_key_mode, overlap, misfire, backfill);
  old "${schema}".pgworker_schedules;
  put "${schema}".pgworker_schedules;
begin
  -- Between the look and the insert others may create one, and delete it again before the next look.
  for attempt in 1..1000 loop
    select * into old from "${schema}".pgworker_schedules s where s.name = given.name for update;
    if not found then
      insert into "${schema}".pgworker_schedules as s (name, kind, expression, zone, every, origin, starts_at, ends_at, jitter, task_identifier,
          payload, queue_name, priority, max_attempts, job_key, job_key_mode, flags, overlap, misfire, backfill, declared)
        values (given.name, given.kind, given.expression, given.zone, given.every, given.origin, given.starts_at, given.ends_at, given.jitter,
          given.task_identifier, given.payload, given.queue_name, given.priority, given.max_attempts, given.job_key, given.job_key_mode,
          given.flags, given.overlap, given.misfire, given.backfill, coalesce(pgworker_put_schedule.declared, false))
        on conflict on constraint pgworker_schedules_pkey do nothing
        returning * into put;
      continue when not found;
    elsif only_new then
      raise exception 'There is a schedule % already.', quote_literal(given.name) using errcode = '23505';
    else
      given := "${schema}".pgworker_changed_schedule(old, given, pgworker_put_schedule.declared);
      if given::text = old::text then
        return old;
      end if;
      update "${schema}".pgworker_schedules s set
          kind = given.kind, expression = given.expression, zone = given.zone, every = given.every, origin = given.origin,
          starts_at = given.starts_at, ends_at = given.ends_at, jitter = given.jitter, task_identifier = given.task_identifier,
          payload = given.payload, queue_name = given.queue_name, priority = given.priority, max_attempts = given.max_attempts,
          job_key = given.job_key, job_key_mode = given.job_key_mode, flags = given.flags, overlap = given.overlap, misfire = given.misfire,
          backfill = given.backfill, declared = given.declared, next_at = given.next_at, awaits_end = given.awaits_end,
          retry_at = null, problem = null, updated_at = clock_timestamp()
        where s.name = given.name
        returning * into put;
      exit when not found;
    end if;
    perform pg_notify('pgworker:schedules', '');
    return put;
  end loop;
  raise exception 'A trigger on the table "${schema}".pgworker_schedules keeps the schedule % out.', quote_literal(given.name)
    using errcode = '27000';
end
$$;
comment on function "${schema}".pgworker_put_schedule(text, text, json, text, text, interval, interval, text, timestamptz, timestamptz, timestamptz,
  interval, text, int, text, int, text[], text, text, text, interval, boolean, boolean) is
  'Creates a recurring job or changes the one of that name, which stays paused if it is, and due when it is if the recurrence is the same. Exactly one '
  'of crontab (five fields), cron (six, as Spring reads them), fixed_rate and fixed_delay says when. only_new refuses to change one with SQLSTATE 23505.';
grant execute on function "${schema}".pgworker_put_schedule(text, text, json, text, text, interval, interval, text, timestamptz, timestamptz, timestamptz, interval, text, int, text, int, text[], text, text, text, interval, boolean, boolean) to public;

create or replace function "${schema}".pgworker_delete_schedule(name text) returns boolean
language plpgsql volatile
set search_path = pg_catalog, pg_temp as $$
begin
  delete from "${schema}".pgworker_schedules s where s.name = pgworker_delete_schedule.name;
  return found;
end
$$;
comment on function "${schema}".pgworker_delete_schedule(text) is
  'Deletes a recurring job; the jobs that it has added remain. Returns whether there was one.';
grant execute on function "${schema}".pgworker_delete_schedule(text) to public;

create or replace function "${schema}".pgworker_pause_schedule(name text, by text default null) returns boolean
language plpgsql volatile
set search_path = pg_catalog, pg_temp as $$
begin
  perform "${schema}".pgworker_check_length('by', by, 255);
  update "${schema}".pgworker_schedules s set paused_at = clock_timestamp(), paused_by = by, updated_at = clock_timestamp()
    where s.name = pgworker_pause_schedule.name and s.paused_at is null;
  return found;
end
$$;
comment on function "${schema}".pgworker_pause_schedule(text, text) is
  'Keeps a recurring job from being executed until it is resumed, and records who paused it. Returns whether it was not paused before.';
grant execute on function "${schema}".pgworker_pause_schedule(text, text) to public;

-- Only a time that has passed is passed over, a delay counts from now.
create or replace function "${schema}".pgworker_resume_schedule(name text) returns boolean
language plpgsql volatile
set search_path = pg_catalog, pg_temp as $$
begin
  update "${schema}".pgworker_schedules s set
      paused_at = null, paused_by = null, retry_at = null, updated_at = clock_timestamp(),
      next_at = case
        when s.next_at is null or s.next_at = '-infinity' or s.next_at > clock_timestamp() then s.next_at
        when s.kind = 'delay' then case when clock_timestamp() + s.every >= s.ends_at then null else clock_timestamp() + s.every end
        else '-infinity'
      end
    where s.name = pgworker_resume_schedule.name and s.paused_at is not null;
  if found then
    perform pg_notify('pgworker:schedules', '');
    return true;
  end if;
  return false;
end
$$;
comment on function "${schema}".pgworker_resume_schedule(text) is
  'Has a paused recurring job executed again; what was due meanwhile is not made up for. Returns whether it was paused.';
grant execute on function "${schema}".pgworker_resume_schedule(text) to public;

create or replace function "${schema}".pgworker_trigger_schedule(name text, payload json default null)
returns "${schema}"._private_jobs
language plpgsql volatile
set search_path = pg_catalog, pg_temp as $$
declare
  given "${schema}".pgworker_schedules;
  cron text;
begin
  select * into given from "${schema}".pgworker_schedules s where s.name = pgworker_trigger_schedule.name;
  if not found then
    raise exception 'There is no schedule %.', coalesce(quote_literal(left(name, 200)), 'null') using errcode = '22023';
  elsif json_typeof(payload) <> 'object' then
    perform "${schema}".pgworker_wrong('payload', 'must be a JSON object, to which _cron is added', json_typeof(payload));
  end if;
  given.payload := coalesce(payload, given.payload);
  cron := format('"_cron":{"ts":"%s","backfilled":false,"schedule":%s}}',
    to_char(clock_timestamp() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), to_json(given.name));
  return "${schema}".add_job(given.task_identifier,
    (case when exists (select from json_object_keys(given.payload))
      then left(rtrim(given.payload::text, E' \t\n\r'), -1) || ',' || cron else '{' || cron end)::json,
    coalesce(given.queue_name, case given.overlap when 'queue' then given.name end), null, given.max_attempts, given.job_key, given.priority,
    given.flags, given.job_key_mode);
end
$$;
comment on function "${schema}".pgworker_trigger_schedule(text, json) is
  'Adds a job of a recurring job that runs at once, with its payload or another one, even if it is paused; when it is due does not change.';
grant execute on function "${schema}".pgworker_trigger_schedule(text, json) to public;
