-- Adding jobs.

-- Called by every program that adds jobs, as the role "adder" or a greater one, in the program's own transaction. A job costs one row,
-- its entries in the indexes, and a notification for each statement.

-- Rows of jobs are written by two functions only: pgworker_put one, pgworker_put_all many. Arrays for one job, or a call for each of many,
-- would cost twice as much.

-- The loop ends with a row in every interleaving: SELECT FOR UPDATE waits for a transaction that holds the job, an uncommitted
-- claim for example, and sees its result; an INSERT that meets a key committed meanwhile starts over. Under REPEATABLE READ the
-- same situations raise 40001.
create or replace function "${schema}".pgworker_put(
  new_id bigint, identifier text, payload json, queue_name text, run_at timestamptz, max_attempts int, job_key text, priority int,
  flags text[], mode text, patient boolean
) returns "${schema}"._private_jobs
language plpgsql volatile as $$
declare
  job "${schema}"._private_jobs;
  task int;
  queue int;
  stored_flags pg_catalog.jsonb;
  misses int := 0;
begin
  if not "${schema}".pgworker_fits('', null, pgworker_put.max_attempts, pgworker_put.job_key, pgworker_put.priority) then
    perform "${schema}".pgworker_refuse('', null, pgworker_put.max_attempts, pgworker_put.job_key, pgworker_put.priority);
  end if;
  if pgworker_put.flags is not null then
    stored_flags := "${schema}".pgworker_flags(pgworker_put.flags);
  end if;
  select t.id into task from "${schema}"._private_tasks t where t.identifier operator(pg_catalog.=) pgworker_put.identifier;
  if not found then
    task := "${schema}".pgworker_task_id(pgworker_put.identifier);
  end if;
  if pgworker_put.queue_name is not null then
    select q.id into queue from "${schema}"._private_job_queues q
      where q.queue_name operator(pg_catalog.>=) pgworker_put.queue_name and q.queue_name operator(pg_catalog.<=) pgworker_put.queue_name
      order by q.queue_name desc limit 1;
    if not found then
      queue := "${schema}".pgworker_queue_id(pgworker_put.queue_name);
    end if;
  end if;
  if pg_catalog.current_setting('transaction_isolation') operator(pg_catalog.<>) 'read committed' then
    perform "${schema}".pgworker_hold_names(array[pgworker_put.identifier], array[pgworker_put.queue_name]);
  end if;
  loop
    if pgworker_put.job_key is not null then
      if patient then
        select * into job from "${schema}"._private_jobs j where j.key operator(pg_catalog.=) pgworker_put.job_key for update;
      else
        select * into job from "${schema}"._private_jobs j where j.key operator(pg_catalog.=) pgworker_put.job_key for update nowait;
      end if;
      if found then
        if mode operator(pg_catalog.=) 'unsafe_dedupe' then
          -- A job that was recovered has a last_error. The count is worth no failure for want of a privilege.
          if job.last_error is not null and pg_catalog.has_table_privilege('"${schema}".pgworker_recoveries', 'UPDATE')
              and pg_catalog.has_table_privilege('"${schema}".pgworker_recoveries', 'SELECT') then
            update "${schema}".pgworker_recoveries r set revision = "${schema}".pgworker_next_revision(r.revision)
              where r.job_id operator(pg_catalog.=) job.id and r.revision operator(pg_catalog.=) job.revision;
          end if;
          perform pg_catalog.set_config('pgworker.same_work', 'on', true);
          update "${schema}"._private_jobs j set
              revision = "${schema}".pgworker_next_revision(j.revision),
              updated_at = pg_catalog.now()
            where j.id operator(pg_catalog.=) job.id
            returning * into job;
          perform pg_catalog.set_config('pgworker.same_work', '', true);
          return job;
        end if;
        if job.is_available or "${schema}".pgworker_parked(job.locked_at) then
          update "${schema}"._private_jobs j set
              job_queue_id = queue,
              task_id = task,
              payload = "${schema}".pgworker_merge(j.payload, coalesce(pgworker_put.payload, '{}')),
              priority = coalesce(pgworker_put.priority, 0),
              run_at = case
                when mode operator(pg_catalog.=) 'preserve_run_at' and j.attempts operator(pg_catalog.=) 0 then j.run_at
                else coalesce(pgworker_put.run_at, pg_catalog.now())
              end,
              attempts = 0,
              max_attempts = coalesce(pgworker_put.max_attempts, 25),
              last_error = null,
              revision = "${schema}".pgworker_next_revision(j.revision),
              flags = stored_flags,
              updated_at = pg_catalog.now()
            where j.id operator(pg_catalog.=) job.id
            returning * into job;
          return job;
        end if;
        -- running or failed for good: the old job loses the key, which goes to a new one
        update "${schema}"._private_jobs j set
            key = null,
            attempts = j.max_attempts,
            updated_at = pg_catalog.now()
          where j.id operator(pg_catalog.=) job.id;
        if job.locked_at is not null then
          if mode operator(pg_catalog.=) 'replace_and_cancel' then
            perform "${schema}".pgworker_cancel_running(job.id, job.locked_by, null);
          else
            perform "${schema}".pgworker_retire(job.id, false);
          end if;
        end if;
      end if;
    end if;
    if new_id is null then
      insert into "${schema}"._private_jobs as j (job_queue_id, task_id, payload, priority, run_at, max_attempts, key, flags)
        values (queue, task, coalesce(pgworker_put.payload, '{}'), coalesce(pgworker_put.priority, 0),
          coalesce(pgworker_put.run_at, pg_catalog.now()), coalesce(pgworker_put.max_attempts, 25), pgworker_put.job_key, stored_flags)
        on conflict (key) do nothing
        returning * into job;
    else
      select * into job from "${schema}".pgworker_put_all(array[new_id], array[pgworker_put.identifier], array[pgworker_put.payload],
        array[pgworker_put.queue_name], array[pgworker_put.run_at], array[pgworker_put.max_attempts], array[pgworker_put.job_key],
        array[pgworker_put.priority], array[pgworker_put.flags::pg_catalog.text]);
    end if;
    -- without a key nothing but a user's trigger keeps the row out
    if found or pgworker_put.job_key is null then return job; end if;
    -- with one, another transaction that added and removed the same key meanwhile might
    misses := misses operator(pg_catalog.+) 1;
    if misses operator(pg_catalog.>) 1000 then
      raise exception 'The job cannot be added under its key: a trigger keeps the row out.' using errcode = '27000';
    end if;
  end loop;
end
$$;
comment on function "${schema}".pgworker_put(bigint, text, json, text, timestamptz, int, text, int, text[], text, boolean) is
  'Adds a job, or updates or replaces the one that has its key; the id given, if any, is used if a row is inserted. Raises 55P03 when '
  'another session holds that job, unless it may be patient.';
grant execute on function "${schema}".pgworker_put(bigint, text, json, text, timestamptz, int, text, int, text[], text, boolean) to public;

-- Element i of every array belongs to job i; an array that is null or too short stands for nulls. Each element of flags is the text
-- of an array, because arrays of arrays must be rectangular. Joins are hashed: names repeat, so a lookup for each row costs more.
-- An id that is given needs a right on the sequence behind the column, one that is not does not: hence two statements. And only the
-- second looks for conflicts, which would cost the first a tenth.
create or replace function "${schema}".pgworker_put_all(
  ids bigint[], identifiers text[], payloads json[], queue_names text[], run_ats timestamptz[], max_attempts int[], job_keys text[],
  priorities int[], flags text[]
) returns setof "${schema}"._private_jobs
language plpgsql volatile
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_nestloop = off set enable_mergejoin = off
set jit = off set array_nulls = on
set search_path = pg_catalog, pg_temp as $$
declare
  tasks constant text[] := array(select distinct name from unnest(identifiers) name);
  queues constant text[] := array(select distinct name from unnest(queue_names) name where name is not null);
begin
  perform "${schema}".pgworker_know_names(tasks, queues);
  if 0 <> all ("${schema}".pgworker_unlimited(array(select n.id from "${schema}"._private_tasks n where n.identifier = any(tasks)))) then
    perform set_config('pgworker.adding', 'unlimited', true);
  end if;
  if ids is null then
    return query
      insert into "${schema}"._private_jobs (job_queue_id, task_id, payload, priority, run_at, max_attempts, key, flags)
      select q.id, t.id, coalesce(s.payload, '{}'), coalesce(s.priority, 0), coalesce(s.run_at, now()), coalesce(s.attempts, 25),
        s.job_key, case when s.flags is not null then "${schema}".pgworker_flags(s.flags::text[]) end
      from unnest(identifiers, payloads, queue_names, run_ats, pgworker_put_all.max_attempts, job_keys, priorities, pgworker_put_all.flags)
        with ordinality s(identifier, payload, queue_name, run_at, attempts, job_key, priority, flags, place)
      left join (select n.id, n.identifier from "${schema}"._private_tasks n where n.identifier = any(tasks)) t
        on t.identifier = s.identifier
      left join (select n.id, n.queue_name from "${schema}"._private_job_queues n where n.queue_name = any(queues)) q
        on q.queue_name = s.queue_name
      where case
          when "${schema}".pgworker_fits(left(s.identifier, 0), null, s.attempts, s.job_key, s.priority) then true
          else "${schema}".pgworker_refuse(left(s.identifier, 0), null, s.attempts, s.job_key, s.priority) is null
        end
      order by s.place
      returning *;
  else
    return query
      insert into "${schema}"._private_jobs (id, job_queue_id, task_id, payload, priority, run_at, max_attempts, key, flags)
      overriding system value
      select s.id, q.id, t.id, coalesce(s.payload, '{}'), coalesce(s.priority, 0), coalesce(s.run_at, now()), coalesce(s.attempts, 25),
        s.job_key, case when s.flags is not null then "${schema}".pgworker_flags(s.flags::text[]) end
      from unnest(ids, identifiers, payloads, queue_names, run_ats, pgworker_put_all.max_attempts, job_keys, priorities,
          pgworker_put_all.flags)
        s(id, identifier, payload, queue_name, run_at, attempts, job_key, priority, flags)
      left join (select n.id, n.identifier from "${schema}"._private_tasks n where n.identifier = any(tasks)) t
        on t.identifier = s.identifier
      left join (select n.id, n.queue_name from "${schema}"._private_job_queues n where n.queue_name = any(queues)) q
        on q.queue_name = s.queue_name
      where case
          when "${schema}".pgworker_fits(left(s.identifier, 0), null, s.attempts, s.job_key, s.priority) then true
          else "${schema}".pgworker_refuse(left(s.identifier, 0), null, s.attempts, s.job_key, s.priority) is null
        end
      order by s.job_key collate "C", s.id
      on conflict (key) do nothing
      returning *;
  end if;
  perform set_config('pgworker.adding', '', true);
end
$$;
comment on function "${schema}".pgworker_put_all(bigint[], text[], json[], text[], timestamptz[], int[], text[], int[], text[]) is
  'Adds jobs and returns them; their ids are drawn in the order of the arrays. Where ids are given, jobs whose keys are taken are left out.';
grant execute on function "${schema}".pgworker_put_all(bigint[], text[], json[], text[], timestamptz[], int[], text[], int[], text[]) to public;

create or replace function "${schema}".add_job(
  identifier text,
  payload json default null,
  queue_name text default null,
  run_at timestamptz default null,
  max_attempts int default null,
  job_key text default null,
  priority int default null,
  flags text[] default null,
  job_key_mode text default 'replace'
) returns "${schema}"._private_jobs
language plpgsql volatile as $$
declare
  job "${schema}"._private_jobs;
begin
  -- Node.js passes null where the caller names no mode
  if add_job.job_key is not null
      and add_job.job_key_mode operator(pg_catalog.<>) all (array['replace', 'preserve_run_at', 'unsafe_dedupe', 'replace_and_cancel']) then
    raise exception 'Invalid job_key_mode value, expected ''replace'', ''preserve_run_at'', ''unsafe_dedupe'' or ''replace_and_cancel''.'
      using errcode = 'GWBKM';
  end if;
  job := "${schema}".pgworker_put(null, add_job.identifier, add_job.payload, add_job.queue_name, add_job.run_at, add_job.max_attempts,
    add_job.job_key, add_job.priority, add_job.flags, coalesce(add_job.job_key_mode, 'replace'), true);
  -- what unsafe_dedupe found has stayed as it was, so that there is nothing to look for
  if add_job.job_key_mode operator(pg_catalog.=) 'unsafe_dedupe' and job.revision operator(pg_catalog.>) 0 then
    return job;
  end if;
  if job.locked_at is null then
    perform "${schema}".pgworker_wake(
      1, job.run_at, job.priority::pg_catalog.text, job.job_queue_id is not null,
      case when job.job_queue_id is null and job.flags is null and job.run_at operator(pg_catalog.<=) pg_catalog.now() then job.id end);
  end if;
  return job;
end
$$;
comment on function "${schema}".add_job(text, json, text, timestamptz, int, text, int, text[], text) is
  'Adds a job, or updates the one that has the given key, according to job_key_mode; returns it.';

create or replace function "${schema}".pgworker_columns(
  specs "${schema}".job_spec[], spec_ids bigint[], taken text[],
  out ids bigint[], out identifiers text[], out payloads json[], out queue_names text[], out run_ats timestamptz[], out max_attempts int[],
  out job_keys text[], out priorities int[], out flags text[]
) language plpgsql stable
set search_path = pg_catalog, pg_temp as $$
begin
  -- an array that holds only nulls is none, which costs less
  select case when spec_ids is not null then array_agg(spec_ids[s.place]) end, array_agg(s.identifier), array_agg(s.payload),
      case when count(s.queue_name) > 0 then array_agg(s.queue_name) end,
      case when count(s.run_at) > 0 then array_agg(s.run_at) end,
      case when count(s.attempts) > 0 then array_agg(s.attempts::int) end,
      case when count(s.key) > 0 then array_agg(s.key) end,
      case when count(s.priority) > 0 then array_agg(s.priority::int) end,
      case when count(s.flag_names) > 0 then array_agg(s.flag_names::text) end
    into ids, identifiers, payloads, queue_names, run_ats, max_attempts, job_keys, priorities, flags
    from unnest(specs) with ordinality s(identifier, payload, queue_name, run_at, attempts, key, priority, flag_names, place)
    where s.key is null or s.key not in (select unnest(taken));
end
$$;
comment on function "${schema}".pgworker_columns("${schema}".job_spec[], bigint[], text[]) is
  'The arguments of pgworker_put_all for those of the jobs that have no key or one that is not taken; spec_ids[i] belongs to specs[i].';
grant execute on function "${schema}".pgworker_columns("${schema}".job_spec[], bigint[], text[]) to public;

-- One statement locks them, in the order of their keys, and one updates them as pgworker_put does.
create or replace function "${schema}".pgworker_put_waiting(specs "${schema}".job_spec[], keys text[], mode text)
returns setof "${schema}"._private_jobs
language plpgsql volatile
set search_path = pg_catalog, pg_temp as $$
declare
  waiting text[];
begin
  with held as materialized (
    select j.key, j.is_available or "${schema}".pgworker_parked(j.locked_at) as waits from "${schema}"._private_jobs j
    where j.key = any(keys)
    order by j.key collate "C"
    for update nowait)
  select array_agg(held.key) into waiting from held where held.waits;
  return query
    update "${schema}"._private_jobs j set
        job_queue_id = q.id,
        task_id = t.id,
        payload = "${schema}".pgworker_merge(j.payload, coalesce(s.payload, '{}')),
        priority = coalesce(s.priority, 0),
        run_at = case
          when mode = 'preserve_run_at' and j.attempts = 0 then j.run_at
          else coalesce(s.run_at, now())
        end,
        attempts = 0,
        max_attempts = coalesce(s.max_attempts, 25),
        last_error = null,
        revision = "${schema}".pgworker_next_revision(j.revision),
        flags = case when s.flags is not null then "${schema}".pgworker_flags(s.flags) end,
        updated_at = now()
      -- "offset 0", "is true" and the ctid leave one plan only, which fits any number of jobs: hash the keys, look up each.
      from unnest(specs) s
      cross join lateral (
        select n.ctid as place from "${schema}"._private_jobs n where n.key = s.job_key offset 0) found
      join "${schema}"._private_tasks t on t.identifier = s.identifier
      left join "${schema}"._private_job_queues q on q.queue_name = s.queue_name
      where j.ctid = found.place and (s.job_key in (select unnest(waiting))) is true
      returning j.*;
end
$$;
comment on function "${schema}".pgworker_put_waiting("${schema}".job_spec[], text[], text) is
  'Updates those of the jobs with these keys that wait, and returns them. Raises 55P03 when another session holds a job with one of the keys.';
grant execute on function "${schema}".pgworker_put_waiting("${schema}".job_spec[], text[], text) to public;

-- New jobs get ids in the order of the input, so jobs of one queue start in that order. Keyed rows are written in key order
-- (binary collation) all the same: two batches with the same keys then wait for each other, but not in a circle.
create or replace function "${schema}".add_jobs(specs "${schema}".job_spec[], job_key_preserve_run_at boolean default false)
returns setof "${schema}"._private_jobs
language plpgsql volatile
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set jit = off
set search_path = pg_catalog, pg_temp as $$
declare
  total constant int := cardinality(specs);
  sequence constant regclass := pg_get_serial_sequence('"${schema}"._private_jobs', 'id');
  numbered boolean;
  patience constant int := 40;
  brief constant text := '20ms';
  lock_timeout constant text := current_setting('lock_timeout');
  mode constant text := case when job_key_preserve_run_at then 'preserve_run_at' else 'replace' end;
  repeated text;
  keys text[];
  ids bigint[];
  taken text[];
  jobs "${schema}"._private_jobs[];
  job "${schema}"._private_jobs;
  given record;
  left_over record;
begin
  if coalesce(total, 0) = 0 then return; end if;

  select * into given from "${schema}".pgworker_columns(specs, null, null);
  if given.job_keys is null then
    return query
      select * from "${schema}".pgworker_put_all(given.ids, given.identifiers, given.payloads, given.queue_names, given.run_ats,
        given.max_attempts, given.job_keys, given.priorities, given.flags);
    perform "${schema}".pgworker_announce(total, given.queue_names, given.run_ats, given.priorities);
    return;
  end if;

  keys := array_remove(given.job_keys, null);
  select k.key into repeated from unnest(keys) k(key) group by k.key having count(*) > 1 limit 1;
  if found then
    raise exception 'Job key % is given more than once in one batch', quote_literal(repeated) using errcode = '21000';
  end if;
  perform "${schema}".pgworker_know_names(given.identifiers, given.queue_names);
  perform "${schema}".pgworker_refuse('', null, s.max_attempts, s.job_key, s.priority)
    from unnest(specs) s
    where not "${schema}".pgworker_fits('', null, s.max_attempts, s.job_key, s.priority);

  -- The rows are written in key order but their ids keep the order of the input, so they are drawn beforehand. A caller who may insert
  -- jobs need not hold a right on the sequence behind the column: without it the rows are written one by one, and get ids in key order.
  numbered := has_sequence_privilege(sequence, 'USAGE');
  if numbered then
    ids := array(select nextval(sequence) from generate_series(1, total));
  end if;
  -- Node.js completes batches in any order, holding some rows while it waits for others. Waiting for one of these while holding
  -- another would close a circle, and cost Node.js the completion. So all rows are locked without waiting, or given back by the
  -- subtransaction until the next try; only rows that stay locked for long are waited for, in key order. An insert that meets a key
  -- of another's open insert cannot but wait: briefly, since that may be the circle as well.
  for attempt in 1..patience + 5 loop
    begin
      jobs := null;
      if attempt <= patience and (lock_timeout = '0' or lock_timeout::interval > brief::interval) then
        perform set_config('lock_timeout', brief, true);
      end if;
      if numbered then
        -- Jobs without keys, and those whose keys look free: one statement. Keys that others take meanwhile are left over. A patient
        -- try may wait below while it holds rows, so it must not have taken keys out of order.
        -- Those that exist are locked before anything is written, which a failed try would leave behind as dead rows.
        if attempt <= patience then
          taken := array(
            select j.key from "${schema}"._private_jobs j where j.key = any(keys) order by j.key collate "C" for update nowait);
        else
          taken := array(select j.key from "${schema}"._private_jobs j where j.key = any(keys));
        end if;
        if attempt > patience and cardinality(taken) > 0 then
          taken := keys;
        end if;
        select * into given from "${schema}".pgworker_columns(specs, ids, taken);
        jobs := array(
          select put from "${schema}".pgworker_put_all(given.ids, given.identifiers, given.payloads, given.queue_names, given.run_ats,
            given.max_attempts, given.job_keys, given.priorities, given.flags) put);
      end if;
      if attempt <= patience and coalesce(cardinality(jobs), 0) < total then
        jobs := jobs || array(
          select put from "${schema}".pgworker_put_waiting(
            specs, array(select unnest(keys) except select n.key from unnest(jobs) n), mode) put);
      end if;

      for left_over in
        select s.* from unnest(specs)
          with ordinality s(identifier, payload, queue_name, run_at, max_attempts, job_key, priority, flags, place)
        where case
            when s.job_key is null then not numbered
            else s.job_key not in (select j.key from unnest(jobs) j where j.key is not null)
          end
        order by s.job_key collate "C", s.place
      loop
        job := "${schema}".pgworker_put(case when numbered then ids[left_over.place] end, left_over.identifier, left_over.payload,
          left_over.queue_name, left_over.run_at, left_over.max_attempts, left_over.job_key, left_over.priority, left_over.flags, mode,
          attempt > patience);
        jobs := jobs || job;
        if job.key is null then
          ids[left_over.place] := job.id;
        end if;
      end loop;
      perform set_config('lock_timeout', lock_timeout, true);
      exit;
    exception
      when lock_not_available then
        if attempt > patience then raise; end if;
        perform pg_sleep(random() * least(attempt, 10) * 0.002);
      when deadlock_detected then
        if attempt = patience + 5 then raise; end if;
    end;
  end loop;

  return query
    select j.*
    from unnest(jobs) j
    left join unnest(specs) with ordinality s(identifier, payload, queue_name, run_at, max_attempts, job_key, priority, flags, place)
      on s.job_key = j.key
    left join unnest(ids) with ordinality i(id, place) on i.id = j.id and j.key is null
    order by coalesce(s.place, i.place);
  select array_agg(q.queue_name), array_agg(j.run_at), array_agg(j.priority::int) into given.queue_names, given.run_ats, given.priorities
    from unnest(jobs) j
    left join "${schema}"._private_job_queues q on q.id = j.job_queue_id;
  perform "${schema}".pgworker_announce(total, given.queue_names, given.run_ats, given.priorities);
end
$$;
comment on function "${schema}".add_jobs("${schema}".job_spec[], boolean) is
  'Adds a batch of jobs, or updates those whose keys exist; returns them in the order of the input.';

-- Returns only what the caller cannot know: a Java caller has the rest, and a row of 17 columns costs more than half as much to return as to
-- insert.
create or replace function "${schema}".pgworker_add_jobs(
  identifiers text[], payloads text[], queue_names text[], run_ats timestamptz[], max_attempts int[], priorities int[], flags text[],
  out job_ids bigint[], out added_at timestamptz
) language plpgsql volatile
set search_path = pg_catalog, pg_temp as $$
declare
  available bigint;
begin
  select array_agg(j.id), now(), count(*) filter (where j.locked_at is null) into job_ids, added_at, available
    from "${schema}".pgworker_put_all(null, identifiers, "${schema}".pgworker_json('payloads', payloads), queue_names, run_ats,
      pgworker_add_jobs.max_attempts, null, priorities, pgworker_add_jobs.flags) j;
  if coalesce(cardinality(job_ids), 0) < cardinality(identifiers) then
    perform "${schema}".pgworker_kept_out(coalesce(cardinality(job_ids), 0), cardinality(identifiers));
  end if;
  if available > 0 then
    perform "${schema}".pgworker_announce(cardinality(job_ids), queue_names, run_ats, priorities);
  end if;
end
$$;
comment on function "${schema}".pgworker_add_jobs(text[], text[], text[], timestamptz[], int[], int[], text[]) is
  'Adds jobs without keys as add_jobs does, but all or none; returns their ids in the order of the input, and the time of their creation. '
  'Its arrays are those of pgworker_put_all; a payload is the text of a JSON value.';
grant execute on function "${schema}".pgworker_add_jobs(text[], text[], text[], timestamptz[], int[], int[], text[]) to public;
