-- Limits: lanes, and the triggers that park jobs in them.

-- A job of a limited task waits in a *lane*: it is parked, that is locked from the year 9999 on by nobody, with the name of the lane in
-- locked_by. So it is in no index of claims, in nobody's way, and no worker of any kind can claim it, while its other columns stay what they are.
-- The *gate*, pgworker_admit, notes it as a holder in each of the buckets of its lane that have room, and takes the lock off: then any
-- worker claims it as it claims others. The job itself is the permit: a gate strikes those off that have ended.
--
-- Exact, because jobs are admitted by one gate at a time only, which sees all that were admitted before, and nothing else makes a limited job
-- available: triggers park what is added, given back or changed, whoever does it. They exist only while there are limits, and name the tasks
-- that have one, so that jobs of others do not enter a function. What they do writes no row but that of the job; which lane a job waits in is a function of
-- the job. So those who add and end jobs do not wait for one another. A gate waits for other gates, and passes over jobs that somebody holds.
--
-- Admitted jobs leave dead entries at the beginning of their lane. Where reading past them takes long, because a snapshot is held, the lane
-- gets a *floor*, below which gates do not look. Who parks a job tells its place, which lowers the floor; what was not heard is
-- found by looks from the first entry, which pgworker_check_permits makes beside the gates and for a small share of the time. Rows that gates
-- change often are looked up from the end of the index, where the latest version is.
--
-- Order of locks: rows of jobs, the lock of the gates, rows of limits. The gate itself waits for no row of a job.

create or replace function "${schema}".pgworker_parked(locked_at timestamptz) returns boolean
language sql immutable parallel safe as $$
  select coalesce(locked_at operator(pg_catalog.=) '9999-01-01 00:00:00+00'::pg_catalog.timestamptz, false)
$$;
comment on function "${schema}".pgworker_parked(timestamptz) is 'Whether such a lock means that the job waits for a limit.';
grant execute on function "${schema}".pgworker_parked(timestamptz) to public;

-- PostgreSQL stores texts in json that it does not let anybody read: \u0000 and surrogates without their other half. Where there are some
-- they are read as if their backslash were one. Raw control characters cannot be in JSON, so one of them can stand for a pair of backslashes, and
-- another for the backslashes of two halves that belong together: such a character is the same value beside others. Strings are written so that
-- they mean the same where standard_conforming_strings is off.
-- One that is nested so deeply that there is no stack left to read it here, which needs some length, has no value.
create or replace function "${schema}".pgworker_limit_text(payload json, field text[]) returns text
language plpgsql immutable
set search_path = pg_catalog, pg_temp as $$
begin
  return payload #>> field;
exception when others then
  begin
    return replace(replace(
      regexp_replace(
        regexp_replace(replace(payload::text, E'\\\\', E'\x01'),
          E'\\\\u(d[89ab][0-9a-f]{2})\\\\u(d[c-f][0-9a-f]{2})', E'\x02u\\1\x02u\\2', 'gi'),
        E'\\\\u(0000|d[89a-f][0-9a-f]{2})', E'\x01u\\1', 'gi'), E'\x01', E'\\\\'), E'\x02', E'\\')::json
      #>> field;
  exception when others then
    return '';
  end;
end
$$;
comment on function "${schema}".pgworker_limit_text(json, text[]) is 'The text at this place of the payload, whatever the payload holds.';
revoke execute on function "${schema}".pgworker_limit_text(json, text[]) from public;

create or replace function "${schema}".pgworker_limit_value(payload json, field text[]) returns text
language sql immutable as $$
  select case
      when pg_catalog.length(t.value) operator(pg_catalog.<=) 100 then t.value
      else pg_catalog.left(t.value, 60) operator(pg_catalog.||) '...'::pg_catalog.text operator(pg_catalog.||)
        pg_catalog.left(pg_catalog.encode(pg_catalog.sha256(pg_catalog.convert_to(t.value, 'UTF8')), 'hex'), 32)
    end
  from (
    select coalesce(case
        when pg_catalog.strpos(payload::pg_catalog.text, E'\\u') operator(pg_catalog.=) 0
          and pg_catalog.octet_length(payload::pg_catalog.text) operator(pg_catalog.<=) 500
        then payload operator(pg_catalog.#>>) field
        else "${schema}".pgworker_limit_text(payload, field)
      end, '') as value offset 0) t
$$;
comment on function "${schema}".pgworker_limit_value(json, text[]) is
  'The value at this place of the payload that a limit counts by: an empty one where there is none, a long one cut and made unmistakable.';
revoke execute on function "${schema}".pgworker_limit_value(json, text[]) from public;

-- The text of a field has been made by PostgreSQL from an array, and so is one.
create or replace function "${schema}".pgworker_limit_values(payload json, fields text[]) returns text[]
language plpgsql immutable as $$
declare
  bucket_values pg_catalog.text[] := '{}';
  field pg_catalog.text;
begin
  foreach field in array fields loop
    bucket_values := bucket_values operator(pg_catalog.||)
      case when field is null then '' else "${schema}".pgworker_limit_value(payload, field::pg_catalog.text[]) end;
  end loop;
  return bucket_values;
end
$$;
comment on function "${schema}".pgworker_limit_values(json, text[]) is 'The value by which each limit counts a job with this payload.';
revoke execute on function "${schema}".pgworker_limit_values(json, text[]) from public;

-- With the flags, because of those with a forbidden one workers pass over each other's jobs: others are not to wait behind it. The values
-- can be read from the name unless they are very long, so that a gate need not read a payload of many megabytes while it keeps all others waiting.
-- Spaces and bars separate what is told of lanes.
create or replace function "${schema}".pgworker_lane_name(
  task_id int, queue_id int, flags jsonb, limit_ids int[], fields text[], bucket_values text[]
) returns text
language sql immutable as $$
  select pg_catalog.concat(task_id, ':', coalesce(queue_id, 0), ':', pg_catalog.left(pg_catalog.encode(pg_catalog.sha256(
      pg_catalog.convert_to(pg_catalog.concat(limit_ids, fields, bucket_values, flags), 'UTF8')), 'hex'), 32),
    case when pg_catalog.octet_length(v.escaped) operator(pg_catalog.<=) 600 then ':'::pg_catalog.text operator(pg_catalog.||) v.escaped end)
  from (
    select pg_catalog.replace(pg_catalog.replace(pg_catalog.replace(bucket_values::pg_catalog.text, '%', '%25'), ' ', '%20'), '|', '%7C')
      as escaped offset 0) v
$$;
comment on function "${schema}".pgworker_lane_name(int, int, jsonb, int[], text[], text[]) is
  'The lane of a job with these values of these fields for these limits.';
revoke execute on function "${schema}".pgworker_lane_name(int, int, jsonb, int[], text[], text[]) from public;

-- Only who switches triggers off can have written another name.
create or replace function "${schema}".pgworker_lane_values(lane text) returns text[]
language plpgsql immutable
set array_nulls = on
set search_path = pg_catalog, pg_temp as $$
begin
  return replace(replace(replace(
    substring(lane from '^[0-9]+:[0-9]+:[0-9a-f]{32}:(.*)$'), '%7C', '|'), '%20', ' '), '%25', '%')::text[];
exception when others then
  return null;
end
$$;
comment on function "${schema}".pgworker_lane_values(text) is 'The values that the name of a lane says; null if it says none.';
revoke execute on function "${schema}".pgworker_lane_values(text) from public;

-- Jobs that one transaction adds have the same time, and so the same place: in tenths of a second, as it need not be exact.
create or replace function "${schema}".pgworker_place(lane text, priority smallint, run_at timestamptz) returns text
language sql immutable as $$
  select pg_catalog.concat(lane, ' ', priority, ' ', pg_catalog.floor(
    pg_catalog.date_part('epoch', run_at) operator(pg_catalog.*) 10))
$$;
comment on function "${schema}".pgworker_place(text, smallint, timestamptz) is 'A lane and a place in it that is not after that of such a job.';
revoke execute on function "${schema}".pgworker_place(text, smallint, timestamptz) from public;

create or replace function "${schema}".pgworker_lane(
  task_id int, queue_id int, payload json, flags jsonb, known text[] default null,
  out lane text, out limit_ids int[], out bucket_values text[]
)
language plpgsql stable
set search_path = pg_catalog, pg_temp as $$
declare
  fields text[];
begin
  select k.limit_ids, k.fields into limit_ids, fields from "${schema}".pgworker_limited_tasks k where k.task_id = pgworker_lane.task_id;
  if found then
    bucket_values := coalesce(known, "${schema}".pgworker_limit_values(payload, fields));
    lane := "${schema}".pgworker_lane_name(task_id, queue_id, flags, limit_ids, fields, bucket_values);
  end if;
end
$$;
comment on function "${schema}".pgworker_lane(int, int, json, jsonb, text[]) is
  'The lane of such a job, its limits, and the value by which each counts it; nulls if it is subject to none. The payload is not read if the values are known.';
revoke execute on function "${schema}".pgworker_lane(int, int, json, jsonb, text[]) from public;

-- One transaction may park jobs in many lanes, and every text that is sent is compared with those before. The setting holds how many have been
-- told, and which, so that those who call this for every row can see for themselves that it has been told.
create or replace function "${schema}".pgworker_tell_limits(kind text, name text) returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp as $$
declare
  most constant int := 64;
  told constant text := coalesce(nullif(current_setting('pgworker.limits_told', true), ''), '0|');
  number constant int := split_part(told, '|', 1)::int;
begin
  if number > most or strpos(told, '|' || kind || name || '|') > 0 then
    return;
  end if;
  perform set_config('pgworker.limits_told', (number + 1) || substr(told, strpos(told, '|')) || kind || name || '|', true);
  perform pg_notify('pgworker:limits', case when number = most then 'e' else kind || name end);
end
$$;
comment on function "${schema}".pgworker_tell_limits(text, text) is
  'Tells gates that a job waits in a lane ("l") or that a bucket may have room ("b"), or, after many of these, to look at everything ("e").';
revoke execute on function "${schema}".pgworker_tell_limits(text, text) from public;

-- Called for every job that ends, hence without settings of its own. Of tasks whose limits have no field one job tells for all. A long payload is not
-- read again.
create or replace function "${schema}".pgworker_tell_room(task_id int, payload json) returns void
language plpgsql volatile as $$
declare
  told pg_catalog.text := coalesce(pg_catalog.current_setting('pgworker.limits_told', true), '');
  limited record;
  bucket_values pg_catalog.text[];
  bucket pg_catalog.int8;
begin
  if told operator(pg_catalog.~~) '65|%' or pg_catalog.strpos(told, pg_catalog.concat('|t', task_id, '|')) operator(pg_catalog.>) 0 then
    return;
  end if;
  select k.limit_ids, k.fields into limited from "${schema}".pgworker_limited_tasks k
    where k.task_id operator(pg_catalog.=) pgworker_tell_room.task_id;
  if not found then
    return;
  end if;
  if pg_catalog.pg_column_size(payload) operator(pg_catalog.>) 50000
    and pg_catalog.array_remove(limited.fields, null) operator(pg_catalog.<>) '{}'
  then
    perform "${schema}".pgworker_tell_limits('e', '');
    return;
  end if;
  bucket_values := "${schema}".pgworker_limit_values(payload, limited.fields);
  for at in 1..pg_catalog.cardinality(limited.limit_ids) loop
    select c.id into bucket from "${schema}".pgworker_limit_buckets c
      where (c.limit_id, c.value) operator(pg_catalog.>=) (limited.limit_ids[at], bucket_values[at] collate pg_catalog."C")
        and (c.limit_id, c.value) operator(pg_catalog.<=) (limited.limit_ids[at], bucket_values[at] collate pg_catalog."C")
      order by c.limit_id desc, c.value desc limit 1;
    if found and pg_catalog.strpos(told, pg_catalog.concat('|b', bucket, '|')) operator(pg_catalog.=) 0 then
      perform "${schema}".pgworker_tell_limits('b', bucket::pg_catalog.text);
    end if;
  end loop;
  told := pg_catalog.current_setting('pgworker.limits_told', true);
  if told operator(pg_catalog.<>) '' and pg_catalog.array_remove(limited.fields, null) operator(pg_catalog.=) '{}' then
    perform pg_catalog.set_config('pgworker.limits_told', pg_catalog.concat(told, 't', task_id, '|'), true);
  end if;
end
$$;
comment on function "${schema}".pgworker_tell_room(int, json) is 'Tells gates that such a job has ended or waits again.';
revoke execute on function "${schema}".pgworker_tell_room(int, json) from public;

-- A transaction whose snapshot is older than a limit would not see it: locking the row makes such a transaction fail with 40001. What is
-- written here is called for every row, hence without settings of its own.
create or replace function "${schema}".pgworker_park_added() returns trigger
language plpgsql volatile security definer as $$
declare
  lane pg_catalog.text;
  place pg_catalog.text;
  told pg_catalog.text;
  limited record;
begin
  if tg_relid operator(pg_catalog.<>) '"${schema}"._private_jobs'::pg_catalog.regclass then
    raise exception 'The limits of schema "${schema}" are kept by triggers on its jobs alone' using errcode = '42501';
  end if;
  if pg_catalog.current_setting('transaction_isolation') operator(pg_catalog.<>) 'read committed' then
    perform from "${schema}".pgworker_limit_state s where s.name operator(pg_catalog.=) 'changes' for share;
  end if;
  select k.limit_ids, k.fields into limited from "${schema}".pgworker_limited_tasks k where k.task_id operator(pg_catalog.=) new.task_id;
  if found then
    lane := "${schema}".pgworker_lane_name(
      new.task_id, new.job_queue_id, new.flags, limited.limit_ids, limited.fields,
      "${schema}".pgworker_limit_values(new.payload, limited.fields));
    new.locked_at := '9999-01-01 00:00:00+00'::pg_catalog.timestamptz;
    new.locked_by := 'pgworker-limit:'::pg_catalog.text operator(pg_catalog.||) lane;
    told := coalesce(pg_catalog.current_setting('pgworker.limits_told', true), '');
    if told operator(pg_catalog.!~~) '65|%' then
      place := "${schema}".pgworker_place(lane, new.priority, new.run_at);
      if pg_catalog.strpos(told, pg_catalog.concat('|l', place, '|')) operator(pg_catalog.=) 0 then
        perform "${schema}".pgworker_tell_limits('l', place);
      end if;
    end if;
  elsif new.locked_at is not null then
    new.locked_at := null;
    new.locked_by := null;
  end if;
  return new;
end
$$;
comment on function "${schema}".pgworker_park_added() is 'Parks a job of a limited task that is being added.';
revoke execute on function "${schema}".pgworker_park_added() from public;

-- An available job of a limited task has been admitted. It stays so if it may run as before; if not, it waits anew.
create or replace function "${schema}".pgworker_park_changed() returns trigger
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp as $$
declare
  lane text;
  limited record;
  held boolean;
  leaves boolean;
begin
  if tg_relid <> '"${schema}"._private_jobs'::regclass then
    raise exception 'The limits of schema "${schema}" are kept by triggers on its jobs alone' using errcode = '42501';
  end if;
  held := old.locked_at is not null and old.locked_at <> '9999-01-01 00:00:00+00';
  if new.attempts >= new.max_attempts then
    new.locked_at := null;
    new.locked_by := null;
    if held or old.locked_at is null and old.attempts < old.max_attempts then
      perform "${schema}".pgworker_tell_room(old.task_id, old.payload);
    end if;
    return new;
  end if;
  if current_setting('transaction_isolation') <> 'read committed' then
    perform from "${schema}".pgworker_limit_state s where s.name = 'changes' for share;
  end if;
  leaves := held or old.locked_at is null and old.attempts < old.max_attempts;
  select k.limit_ids, k.fields into limited from "${schema}".pgworker_limited_tasks k where k.task_id = new.task_id;
  if found then
    if old.locked_at is null and old.attempts < old.max_attempts and new.locked_at is null
      and new.run_at = old.run_at and new.task_id = old.task_id and new.job_queue_id is not distinct from old.job_queue_id
      and new.payload::text = old.payload::text
    then
      return new;
    end if;
    lane := "${schema}".pgworker_lane_name(
      new.task_id, new.job_queue_id, new.flags, limited.limit_ids, limited.fields,
      "${schema}".pgworker_limit_values(new.payload, limited.fields));
    new.locked_at := '9999-01-01 00:00:00+00';
    new.locked_by := 'pgworker-limit:' || lane;
    perform "${schema}".pgworker_tell_limits('l', "${schema}".pgworker_place(lane, new.priority, new.run_at));
  elsif new.locked_at is not null then
    new.locked_at := null;
    new.locked_by := null;
  end if;
  if leaves then
    perform "${schema}".pgworker_tell_room(old.task_id, old.payload);
  end if;
  return new;
end
$$;
comment on function "${schema}".pgworker_park_changed() is
  'Parks a job of a limited task that nobody holds any more or that has been changed, and tells gates of the room that it leaves, as does one that has failed.';
revoke execute on function "${schema}".pgworker_park_changed() from public;

create or replace function "${schema}".pgworker_tell_deleted() returns trigger
language plpgsql volatile security definer as $$
begin
  if tg_relid operator(pg_catalog.<>) '"${schema}"._private_jobs'::pg_catalog.regclass then
    raise exception 'The limits of schema "${schema}" are kept by triggers on its jobs alone' using errcode = '42501';
  end if;
  perform "${schema}".pgworker_tell_room(old.task_id, old.payload);
  return null;
end
$$;
comment on function "${schema}".pgworker_tell_deleted() is 'Tells gates of the room that deleted jobs leave.';
revoke execute on function "${schema}".pgworker_tell_deleted() from public;
