-- Keys of jobs: what becomes of a job that is added again or removed by its key.

create or replace function "${schema}".pgworker_next_revision(revision int) returns int
language sql immutable as $$ select (revision operator(pg_catalog.%) 2147483647) operator(pg_catalog.+) 1 $$;
comment on function "${schema}".pgworker_next_revision(int) is
  'Revision of a job that is added again: one more, and 1 after the greatest, as 0 is that of a job that was added once.';
grant execute on function "${schema}".pgworker_next_revision(int) to public;

-- Joined as texts: jsonb refuses some payloads that json stores, with an error that quotes them.
create or replace function "${schema}".pgworker_merge(old_payload json, new_payload json) returns json
language sql immutable as $$
  select case
    when pg_catalog.json_typeof(old_payload) operator(pg_catalog.<>) 'array'
        or pg_catalog.json_typeof(new_payload) operator(pg_catalog.<>) 'array'
        or pg_catalog.json_array_length(old_payload) operator(pg_catalog.=) 0
      then new_payload
    when pg_catalog.json_array_length(new_payload) operator(pg_catalog.=) 0 then old_payload
    else (pg_catalog.left(pg_catalog.rtrim(old_payload::pg_catalog.text, E' \t\n\r'), -1) operator(pg_catalog.||) ', '
      operator(pg_catalog.||) pg_catalog.substr(pg_catalog.ltrim(new_payload::pg_catalog.text, E' \t\n\r'), 2))::pg_catalog.json
  end
$$;
comment on function "${schema}".pgworker_merge(json, json) is 'Payload of a job that is added again: arrays are concatenated.';
grant execute on function "${schema}".pgworker_merge(json, json) to public;

-- Volatile, so that it sees what was committed since the statement that calls it began. The text in last_error is written only by
-- callers without a right to write the table.
create or replace function "${schema}".pgworker_retirement(job_id bigint, last_error text) returns text
language plpgsql volatile
set search_path = pg_catalog, pg_temp as $$
declare
  removed boolean;
begin
  if exists (
    select from "${schema}".pgworker_cancellations c where c.job_id = pgworker_retirement.job_id and c.outcome is null)
  then
    return 'Cancelled while running';
  end if;
  select r.removed into removed from "${schema}".pgworker_retirements r where r.job_id = pgworker_retirement.job_id;
  return case
    when removed or last_error = 'Removed by its key while running' then 'Removed by its key while running'
    when not removed or last_error = 'Superseded by a newer job with the same key while running'
      then 'Superseded by a newer job with the same key while running'
  end;
end
$$;
comment on function "${schema}".pgworker_retirement(bigint, text) is
  'Outcome of a locked job that has no key and no attempts left: the text that says that it was cancelled, superseded or removed '
  'while running, or null if it was not.';
revoke execute on function "${schema}".pgworker_retirement(bigint, text) from public;

-- Rust workers of ledger 22 keep a table of their own, which they consult before giving an attempt back. It is kept up to date
-- where it exists.
create or replace function "${schema}".pgworker_retire(job_id bigint, removed boolean) returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp as $$
begin
  begin
    insert into "${schema}".pgworker_retirements (job_id, removed) values (pgworker_retire.job_id, pgworker_retire.removed)
      on conflict on constraint pgworker_retirements_pkey do nothing;
  exception when insufficient_privilege then
    update "${schema}"._private_jobs j set last_error = case
        when pgworker_retire.removed then 'Removed by its key while running'
        else 'Superseded by a newer job with the same key while running'
      end
      where j.id = pgworker_retire.job_id;
  end;
  if to_regclass('"${schema}"._private_job_retirements') is not null then
    execute 'insert into "${schema}"._private_job_retirements (id) values ($1) on conflict do nothing' using pgworker_retire.job_id;
  end if;
end
$$;
comment on function "${schema}".pgworker_retire(bigint, boolean) is 'Records that a running job was superseded or removed by its key.';
grant execute on function "${schema}".pgworker_retire(bigint, boolean) to public;

create or replace function "${schema}".pgworker_revive(job_id bigint) returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp as $$
begin
  delete from "${schema}".pgworker_retirements r where r.job_id = pgworker_revive.job_id;
  delete from "${schema}".pgworker_cancellations c where c.job_id = pgworker_revive.job_id;
  if to_regclass('"${schema}"._private_job_retirements') is not null then
    execute 'delete from "${schema}"._private_job_retirements where id = $1' using pgworker_revive.job_id;
  end if;
end
$$;
comment on function "${schema}".pgworker_revive(bigint) is 'Deletes the record that a job was superseded, removed or cancelled, so that it may run again.';
revoke execute on function "${schema}".pgworker_revive(bigint) from public;

-- Looks again when it found nothing after waiting: the key may have moved to another job.
create or replace function "${schema}".remove_job(job_key text) returns "${schema}"._private_jobs
language plpgsql volatile strict
set search_path = pg_catalog, pg_temp as $$
declare
  job "${schema}"._private_jobs;
begin
  loop
    select * into job from "${schema}"._private_jobs j where j.key = remove_job.job_key for update;
    exit when found;
    if not exists (select from "${schema}"._private_jobs j where j.key = remove_job.job_key) then
      return job;
    end if;
  end loop;
  if "${schema}".pgworker_locked(job.locked_at, job.locked_by) then
    update "${schema}"._private_jobs j set
        key = null,
        attempts = j.max_attempts,
        updated_at = now()
      where j.id = job.id
      returning * into job;
    perform "${schema}".pgworker_retire(job.id, true);
    return job;
  end if;
  perform set_config('pgworker.ending', 'removed', true);
  delete from "${schema}"._private_jobs j where j.id = job.id;
  perform set_config('pgworker.ending', '', true);
  if job.locked_at is not null then
    perform "${schema}".pgworker_free_queues(array[job.job_queue_id], array[job.locked_by]);
  end if;
  return job;
end
$$;
comment on function "${schema}".remove_job(text) is
  'Deletes the job that has the given key; a running job only loses the key and is not run again. Returns the job, or null.';
