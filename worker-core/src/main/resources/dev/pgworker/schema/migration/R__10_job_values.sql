-- Names, flags and other values of jobs, checked and stored.

-- Looks before it inserts: the usual call writes nothing and burns no id. The row of a queue is changed all the time, and while a snapshot
-- is held its former versions stay. The newest one has the last index entry: an equality read forwards would meet all the others first, so
-- single rows of queues are looked up in ranges read backwards.
create or replace function "${schema}".pgworker_task_id(name text) returns int
language plpgsql volatile
set search_path = pg_catalog, pg_temp as $$
declare
  found_id int;
begin
  loop
    select t.id into found_id from "${schema}"._private_tasks t where t.identifier = name;
    if found then return found_id; end if;
    if not "${schema}".pgworker_fits(name, null, null, null, null) then
      perform "${schema}".pgworker_refuse(name, null, null, null, null);
    end if;
    insert into "${schema}"._private_tasks as t (identifier) values (name)
      on conflict (identifier) do nothing
      returning t.id into found_id;
    if found then return found_id; end if;
  end loop;
end
$$;
comment on function "${schema}".pgworker_task_id(text) is 'Returns the id of a task identifier, which is created if it does not exist.';
grant execute on function "${schema}".pgworker_task_id(text) to public;

create or replace function "${schema}".pgworker_queue_id(name text) returns int
language plpgsql volatile
set search_path = pg_catalog, pg_temp as $$
declare
  found_id int;
begin
  loop
    select q.id into found_id from "${schema}"._private_job_queues q
      where q.queue_name >= name and q.queue_name <= name order by q.queue_name desc limit 1;
    if found then return found_id; end if;
    if not "${schema}".pgworker_fits('', name, null, null, null) then
      perform "${schema}".pgworker_refuse('', name, null, null, null);
    end if;
    insert into "${schema}"._private_job_queues as q (queue_name) values (name)
      on conflict (queue_name) do nothing
      returning q.id into found_id;
    if found then return found_id; end if;
  end loop;
end
$$;
comment on function "${schema}".pgworker_queue_id(text) is 'Returns the id of a queue name, which is created if it does not exist.';
grant execute on function "${schema}".pgworker_queue_id(text) to public;

-- The clean-up deletes a name only when no transaction is open that may have looked it up, but a snapshot taken before that
-- still shows the deleted row. Locking the row makes such a transaction fail with 40001 instead of adding a job to nowhere.
create or replace function "${schema}".pgworker_hold_names(identifiers text[], queue_names text[]) returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp as $$
begin
  if has_any_column_privilege('"${schema}"._private_tasks', 'UPDATE')
      and has_any_column_privilege('"${schema}"._private_job_queues', 'UPDATE') then
    perform from "${schema}"._private_tasks t where t.identifier = any(identifiers) order by t.id for key share;
    perform from "${schema}"._private_job_queues q where q.queue_name = any(queue_names) order by q.id for key share;
    return;
  end if;
  -- Who may not lock rows may insert them all the same: a name that is there conflicts, and stays because the table is in use.
  insert into "${schema}"._private_tasks (identifier)
    select distinct i.name from unnest(identifiers) i(name) order by 1 on conflict (identifier) do nothing;
  if not found then
    insert into "${schema}"._private_job_queues (queue_name)
      select distinct i.name from unnest(queue_names) i(name) where i.name is not null order by 1
      on conflict (queue_name) do nothing;
  end if;
  if found then
    raise exception 'could not serialize access: a task or queue was cleaned up meanwhile' using errcode = '40001';
  end if;
end
$$;
comment on function "${schema}".pgworker_hold_names(text[], text[]) is
  'Prevents names from being cleaned up until the transaction ends; for transactions whose snapshot is older than their lookup of the names.';
grant execute on function "${schema}".pgworker_hold_names(text[], text[]) to public;

-- Only missing names are written, always in name order (binary collation), so that two batches cannot wait in a circle.
create or replace function "${schema}".pgworker_know_names(identifiers text[], queue_names text[]) returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp as $$
begin
  perform "${schema}".pgworker_task_id(missing.name)
    from (
      select name collate "C" as name from unnest(identifiers) name
      except select t.identifier from "${schema}"._private_tasks t where t.identifier = any(identifiers)
      order by 1) missing;
  perform "${schema}".pgworker_queue_id(missing.name)
    from (
      select name collate "C" as name from unnest(queue_names) name where name is not null
      except select q.queue_name from "${schema}"._private_job_queues q where q.queue_name = any(queue_names)
      order by 1) missing;
  if current_setting('transaction_isolation') <> 'read committed' then
    perform "${schema}".pgworker_hold_names(identifiers, queue_names);
  end if;
end
$$;
comment on function "${schema}".pgworker_know_names(text[], text[]) is
  'Creates the missing tasks and queues of a batch; null queue names are ignored.';
grant execute on function "${schema}".pgworker_know_names(text[], text[]) to public;

create or replace function "${schema}".pgworker_flags(names text[]) returns jsonb
language plpgsql immutable as $$
declare
  stored pg_catalog.jsonb;
  given boolean;
begin
  select pg_catalog.jsonb_object_agg(coalesce(name, ''), true), pg_catalog.bool_and(name is not null) into stored, given
    from pg_catalog.unnest(names) name;
  if not given then
    raise exception 'flags must not contain null' using errcode = '22004';
  end if;
  return stored;
end
$$;
comment on function "${schema}".pgworker_flags(text[]) is 'Stored form of a list of flags; null when there are none.';
grant execute on function "${schema}".pgworker_flags(text[]) to public;

-- The server's own error quotes the text. A worker's error is read by more people than may know the payload.
create or replace function "${schema}".pgworker_json(argument text, texts text[]) returns json[]
language plpgsql immutable
set search_path = pg_catalog, pg_temp as $$
begin
  return texts::json[];
exception when others then
  for place in 1..cardinality(texts) loop
    begin
      perform texts[place]::json;
    exception when others then
      raise exception '%[%] is not JSON', argument, place using errcode = '22P02';
    end;
  end loop;
  raise exception '% must be a list of JSON values', argument using errcode = '22P02';
end
$$;
comment on function "${schema}".pgworker_json(text, text[]) is
  'The texts as JSON values; an error names the argument and the place of the first that is none.';
grant execute on function "${schema}".pgworker_json(text, text[]) to public;

-- Asked for every job that is added, where it is made part of the expression or statement that asks.
create or replace function "${schema}".pgworker_fits(identifier text, queue_name text, max_attempts int, job_key text, priority int)
returns boolean
language sql immutable parallel safe as $$
  select identifier is not null
    and pg_catalog.length(identifier) operator(pg_catalog.<=) 128
    and (queue_name is null or pg_catalog.length(queue_name) operator(pg_catalog.<=) 128)
    and (max_attempts is null
      or max_attempts operator(pg_catalog.>=) 1 and max_attempts operator(pg_catalog.<=) 32767)
    and (job_key is null
      or pg_catalog.length(job_key) operator(pg_catalog.>=) 1 and pg_catalog.length(job_key) operator(pg_catalog.<=) 512)
    and (priority is null
      or priority operator(pg_catalog.>=) (-32768) and priority operator(pg_catalog.<=) 32767)
$$;
comment on function "${schema}".pgworker_fits(text, text, int, text, int) is 'Whether a job may have these properties.';
grant execute on function "${schema}".pgworker_fits(text, text, int, text, int) to public;

-- States and constraints are those with which the tables refuse such a row, as callers test for them. The tables would quote the payload.
create or replace function "${schema}".pgworker_refuse(identifier text, queue_name text, max_attempts int, job_key text, priority int)
returns void
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp as $$
begin
  if identifier is null then
    raise exception 'Task identifier must not be null.' using errcode = '23502';
  elsif length(identifier) > 128 then
    raise exception 'Task identifier is too long (max length: 128).' using errcode = '23514', constraint = 'tasks_identifier_check';
  elsif length(queue_name) > 128 then
    raise exception 'Job queue name is too long (max length: 128).' using errcode = '23514', constraint = 'job_queues_queue_name_check';
  elsif job_key = '' then
    raise exception 'Job key must not be empty.' using errcode = '23514', constraint = 'jobs_key_check';
  elsif length(job_key) > 512 then
    raise exception 'Job key is too long (max length: 512).' using errcode = '23514', constraint = 'jobs_key_check';
  elsif max_attempts < 1 then
    raise exception 'Job maximum attempts must be at least 1.' using errcode = '23514', constraint = 'jobs_max_attempts_check';
  elsif max_attempts > 32767 then
    raise exception 'Job maximum attempts must be at most 32767.' using errcode = '22003';
  elsif priority not between -32768 and 32767 then
    raise exception 'Job priority must be between -32768 and 32767.' using errcode = '22003';
  end if;
end
$$;
comment on function "${schema}".pgworker_refuse(text, text, int, text, int) is
  'Raises an exception that names the invalid job property.';
grant execute on function "${schema}".pgworker_refuse(text, text, int, text, int) to public;

create or replace function "${schema}".pgworker_kept_out(added bigint, asked bigint) returns bigint
language plpgsql volatile
set search_path = pg_catalog, pg_temp as $$
begin
  raise exception 'A trigger on the table "${schema}"._private_jobs keeps % of % jobs out; none is added.', asked - added, asked
    using errcode = '27000';
end
$$;
comment on function "${schema}".pgworker_kept_out(bigint, bigint) is
  'Raises an exception that says that fewer jobs could be added, or changed under their keys, than were asked for.';
grant execute on function "${schema}".pgworker_kept_out(bigint, bigint) to public;
