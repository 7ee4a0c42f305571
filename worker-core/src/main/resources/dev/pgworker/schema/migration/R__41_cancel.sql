-- Cancellation.

-- The notification is for one worker; others ignore it. A name that no PgWorker has may be too long for it.
-- A worker of Node.js that gives a job back which it has fetched and not started takes an attempt off, so it gets one too many.
create or replace function "${schema}".pgworker_cancel_running(job_id bigint, worker_id text, by text) returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp as $$
begin
  if pgworker_cancel_running.worker_id is null or pgworker_cancel_running.worker_id not like 'pgworker-%' then
    update "${schema}"._private_jobs j set
        max_attempts = least(j.max_attempts, 32766),
        attempts = least(j.max_attempts, 32766) + 1
      where j.id = pgworker_cancel_running.job_id and j.attempts <= j.max_attempts;
  end if;
  perform "${schema}".pgworker_retire(pgworker_cancel_running.job_id, true);
  insert into "${schema}".pgworker_cancellations as c (job_id, requested_at, requested_by, worker_id)
    values (pgworker_cancel_running.job_id, clock_timestamp(), by, coalesce(pgworker_cancel_running.worker_id, ''))
    on conflict on constraint pgworker_cancellations_pkey do update set
      requested_at = excluded.requested_at, requested_by = excluded.requested_by, worker_id = excluded.worker_id,
      outcome = null, ended_at = null
    where c.outcome is not null or c.worker_id <> excluded.worker_id;
  if octet_length(pgworker_cancel_running.worker_id) <= 2000 then
    perform pg_notify('pgworker:cancel', pgworker_cancel_running.worker_id);
  end if;
end
$$;
comment on function "${schema}".pgworker_cancel_running(bigint, text, text) is
  'Records that a running job, which has lost its key and its attempts already, is cancelled, and tells the worker that holds it.';
grant execute on function "${schema}".pgworker_cancel_running(bigint, text, text) to public;

-- A row that a user's trigger keeps stays as that of a failed job; the job has been cancelled all the same.
create or replace function "${schema}".pgworker_end_cancelled(job_ids bigint[]) returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp as $$
declare
  cancelled bigint;
  context text;
begin
  perform set_config('pgworker.ending', '', true), set_config('pgworker.run_ids', '', true);
  for cancelled in
    select c.job_id from "${schema}".pgworker_cancellations c
    join "${schema}"._private_jobs j on j.id = c.job_id and j.locked_at is null and not j.is_available
    where c.job_id = any(job_ids) and c.outcome is null
    order by c.job_id for update of j, c skip locked
  loop
    update "${schema}".pgworker_cancellations c set outcome = 'cancelled', ended_at = clock_timestamp() where c.job_id = cancelled;
    begin
      delete from "${schema}"._private_jobs j where j.id = cancelled;
      delete from "${schema}".pgworker_retirements r where r.job_id = cancelled;
      if to_regclass('"${schema}"._private_job_retirements') is not null then
        execute 'delete from "${schema}"._private_job_retirements where id = $1' using cancelled;
      end if;
    exception when others or assert_failure or query_canceled then
      get stacked diagnostics context = pg_exception_context;
      if not "${schema}".pgworker_about_row(sqlstate, context) then raise; end if;
      raise warning 'Job % was cancelled but cannot be deleted: %', cancelled, sqlerrm;
    end;
  end loop;
end
$$;
comment on function "${schema}".pgworker_end_cancelled(bigint[]) is
  'Deletes those of the given jobs that were cancelled while they ran, and that no longer run, and records that.';
revoke execute on function "${schema}".pgworker_end_cancelled(bigint[]) from public;

-- Other workers leave a job that was cancelled as a failed one. This waits for no lock.
create or replace function "${schema}".pgworker_tend_cancellations() returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp as $$
begin
  if not exists (select from "${schema}".pgworker_cancellations) then return; end if;
  perform "${schema}".pgworker_end_cancelled(array(
    select c.job_id from "${schema}".pgworker_cancellations c where c.outcome is null));
  update "${schema}".pgworker_cancellations c set outcome = 'completed', ended_at = clock_timestamp()
    where c.job_id in (
      select o.job_id from "${schema}".pgworker_cancellations o
      where o.outcome is null and not exists (select from "${schema}"._private_jobs j where j.id = o.job_id)
      for update of o skip locked);
  delete from "${schema}".pgworker_cancellations c
    where c.job_id in (
      select o.job_id from "${schema}".pgworker_cancellations o
      where o.ended_at < clock_timestamp() - interval '1 hour'
      for update skip locked);
end
$$;
comment on function "${schema}".pgworker_tend_cancellations() is
  'Ends cancelled jobs whose workers have left them as failed ones, notes which have succeeded, and forgets those that ended an hour ago.';
revoke execute on function "${schema}".pgworker_tend_cancellations() from public;

-- One snapshot: a worker that ends a cancelled job otherwise than by success records that where it deletes the job.
create or replace function "${schema}".pgworker_cancel_states(job_ids bigint[])
returns table (id bigint, outcome text, requested_at timestamptz, requested_by text, worker_id text)
language sql stable
set search_path = pg_catalog, pg_temp as $$
  select c.job_id,
    case
      when c.outcome is not null then c.outcome
      when j.id is null then 'completed'
      when j.locked_at is null then 'cancelled'
      when exists (
        select from "${schema}"._private_workers w
        where w.id = c.worker_id and jsonb_typeof(w.metadata) = 'object' and w.metadata ->> 'implementation' = 'pgworker')
        then 'requested'
      else 'marked'
    end,
    c.requested_at, c.requested_by, c.worker_id
  from "${schema}".pgworker_cancellations c
  left join "${schema}"._private_jobs j on j.id = c.job_id
  where c.job_id = any(job_ids)
  order by c.job_id
$$;
comment on function "${schema}".pgworker_cancel_states(bigint[]) is
  'What has become of jobs that were cancelled while they ran: "requested" (its worker has been told, or is dead), "marked" (its worker cannot be '
  'told; it will not run again), "cancelled" or "completed" (it had succeeded before it could be cancelled). Others are left out.';
revoke execute on function "${schema}".pgworker_cancel_states(bigint[]) from public;

-- Locked rows are waited for, so what is returned of a job is so when the row is locked. A job that is not there has ended.
create or replace function "${schema}".pgworker_cancel_jobs(job_ids bigint[], by text default null)
returns table (id bigint, outcome text, requested_at timestamptz, requested_by text, worker_id text)
language plpgsql volatile
set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
  job record;
  seen bigint[] := '{}';
  waiting bigint[] := '{}';
  running bigint[] := '{}';
begin
  perform "${schema}".pgworker_check_length('by', by, 255);
  for job in
    select j.id, j.key, j.attempts, j.max_attempts, j.locked_by, "${schema}".pgworker_locked(j.locked_at, j.locked_by) as runs
    from "${schema}"._private_jobs j
    where j.id = any(job_ids)
    order by j.id for update
  loop
    seen := seen || job.id;
    if job.runs then
      running := running || job.id;
      if job.key is not null or job.attempts < job.max_attempts then
        update "${schema}"._private_jobs j set key = null, attempts = j.max_attempts, updated_at = now() where j.id = job.id;
        if not found then
          raise exception 'A trigger keeps job % from being cancelled', job.id using errcode = '27000';
        end if;
      end if;
      perform "${schema}".pgworker_cancel_running(job.id, job.locked_by, by);
    else
      waiting := waiting || job.id;
    end if;
  end loop;
  if waiting <> '{}' then
    perform from "${schema}".pgworker_remove_jobs(waiting);
    if exists (select from "${schema}"._private_jobs j where j.id = any(waiting)) then
      raise exception 'A trigger keeps jobs from being deleted' using errcode = '27000';
    end if;
  end if;
  return query
    select w.id, 'removed', null::timestamptz, null::text, null::text from unnest(waiting) w(id)
    union all
    select s.id, s.outcome, s.requested_at, s.requested_by, s.worker_id from "${schema}".pgworker_cancel_states(running) s
    union all
    select g.id, 'gone', null::timestamptz, null::text, null::text
      from (select unnest(job_ids) except select unnest(seen)) g(id)
      where g.id is not null;
end
$$;
comment on function "${schema}".pgworker_cancel_jobs(bigint[], text) is
  'Cancels jobs: deletes those that wait or have failed ("removed"), and has those that run end and never run again: "requested" and "marked" are '
  'those of pgworker_cancel_states. "gone" is a job that does not exist any more. Each distinct id is answered once.';
revoke execute on function "${schema}".pgworker_cancel_jobs(bigint[], text) from public;

-- Looks again when it found nothing after waiting: the key may have moved to another job.
create or replace function "${schema}".pgworker_cancel_key(job_key text, by text default null)
returns table (id bigint, outcome text, requested_at timestamptz, requested_by text, worker_id text)
language plpgsql volatile
set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
  holder bigint;
begin
  loop
    select j.id into holder from "${schema}"._private_jobs j where j.key = pgworker_cancel_key.job_key for update;
    exit when found;
    if not exists (select from "${schema}"._private_jobs j where j.key = pgworker_cancel_key.job_key) then
      return;
    end if;
  end loop;
  return query select * from "${schema}".pgworker_cancel_jobs(array[holder], by);
end
$$;
comment on function "${schema}".pgworker_cancel_key(text, text) is
  'As pgworker_cancel_jobs, the job that has the key; no row if there is none.';
revoke execute on function "${schema}".pgworker_cancel_key(text, text) from public;
