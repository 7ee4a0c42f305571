-- Administration of jobs that are named by their ids.

-- Called by people and their tools, as the role "operator". Each job that is named costs what a change of its row costs; nothing reads
-- other jobs.

-- These skip running jobs and return only what they changed. A lock of four hours or more does not protect a job whose worker has no
-- heartbeat; it is cleared together with the lock of its queue. Jobs are locked in id order first, then changed, then queues are freed.

create or replace function "${schema}".complete_jobs(job_ids bigint[]) returns setof "${schema}"._private_jobs
language plpgsql volatile
set search_path = pg_catalog, pg_temp as $$
declare
  job "${schema}"._private_jobs;
  queues int[];
  owners text[];
begin
  perform set_config('pgworker.ending', 'succeeded', true);
  for job in
    select * from "${schema}"._private_jobs j
    where j.id = any(job_ids) and not "${schema}".pgworker_locked(j.locked_at, j.locked_by)
    order by j.id for update
  loop
    delete from "${schema}"._private_jobs j where j.id = job.id;
    if job.locked_at is null and job.key is null and job.attempts >= job.max_attempts then
      update "${schema}".pgworker_cancellations c set outcome = 'cancelled', ended_at = clock_timestamp()
        where c.job_id = job.id and c.outcome is null;
    end if;
    if job.locked_by is not null then
      queues := queues || job.job_queue_id;
      owners := owners || job.locked_by;
    end if;
    return next job;
  end loop;
  perform set_config('pgworker.ending', '', true);
  perform "${schema}".pgworker_free_queues(queues, owners);
end
$$;
comment on function "${schema}".complete_jobs(bigint[]) is 'Deletes the given jobs as if they had succeeded, except running ones.';

create or replace function "${schema}".pgworker_remove_jobs(job_ids bigint[]) returns setof "${schema}"._private_jobs
language plpgsql volatile
set search_path = pg_catalog, pg_temp as $$
declare
  job "${schema}"._private_jobs;
  queues int[];
  owners text[];
begin
  perform set_config('pgworker.ending', 'removed', true);
  for job in
    select * from "${schema}"._private_jobs j
    where j.id = any(job_ids) and not "${schema}".pgworker_locked(j.locked_at, j.locked_by)
    order by j.id for update
  loop
    delete from "${schema}"._private_jobs j where j.id = job.id;
    if job.key is null and job.attempts >= job.max_attempts then
      update "${schema}".pgworker_cancellations c set outcome = 'cancelled', ended_at = clock_timestamp()
        where c.job_id = job.id and c.outcome is null;
    end if;
    if job.locked_by is not null then
      queues := queues || job.job_queue_id;
      owners := owners || job.locked_by;
    end if;
    return next job;
  end loop;
  perform set_config('pgworker.ending', '', true);
  perform "${schema}".pgworker_free_queues(queues, owners);
end
$$;
comment on function "${schema}".pgworker_remove_jobs(bigint[]) is 'Deletes the given jobs as no longer needed, except running ones.';
revoke execute on function "${schema}".pgworker_remove_jobs(bigint[]) from public;

create or replace function "${schema}".permanently_fail_jobs(job_ids bigint[], error_message text default null)
returns setof "${schema}"._private_jobs
language plpgsql volatile
set search_path = pg_catalog, pg_temp as $$
declare
  job "${schema}"._private_jobs;
  queues int[];
  owners text[];
begin
  for job in
    select * from "${schema}"._private_jobs j
    where j.id = any(job_ids) and not "${schema}".pgworker_locked(j.locked_at, j.locked_by)
    order by j.id for update
  loop
    if job.locked_by is not null then
      queues := queues || job.job_queue_id;
      owners := owners || job.locked_by;
    end if;
    update "${schema}"._private_jobs j set
        attempts = j.max_attempts,
        last_error = coalesce(error_message, 'Manually marked as failed'),
        locked_at = null,
        locked_by = null,
        updated_at = now()
      where j.id = job.id
      returning * into job;
    return next job;
  end loop;
  perform "${schema}".pgworker_free_queues(queues, owners);
end
$$;
comment on function "${schema}".permanently_fail_jobs(bigint[], text) is
  'Marks the given jobs as permanently failed by using up their attempts, and records the message, except for running ones.';

-- Notifies even for a time in the future: workers sleep until the earliest run_at they know of.
create or replace function "${schema}".reschedule_jobs(
  job_ids bigint[], run_at timestamptz default null, priority int default null, attempts int default null, max_attempts int default null
) returns setof "${schema}"._private_jobs
language plpgsql volatile
set search_path = pg_catalog, pg_temp as $$
declare
  job "${schema}"._private_jobs;
  queues int[];
  owners text[];
  ready int := 0;
  earliest timestamptz;
  levels smallint[];
begin
  if reschedule_jobs.attempts not between 0 and 32767 then
    raise exception 'Job attempts must be between 0 and 32767.' using errcode = '22003';
  elsif not "${schema}".pgworker_fits('', null, reschedule_jobs.max_attempts, null, reschedule_jobs.priority) then
    perform "${schema}".pgworker_refuse('', null, reschedule_jobs.max_attempts, null, reschedule_jobs.priority);
  end if;
  if exists (select from "${schema}".pgworker_cancellations c where c.job_id = any(job_ids) and c.outcome is null) then
    -- One that another worker has left as a failed job, and that was reported as cancelled, ends here.
    perform "${schema}".pgworker_end_cancelled(job_ids);
  end if;
  perform set_config('pgworker.ending', 'recovered', true);
  for job in
    select * from "${schema}"._private_jobs j
    where j.id = any(job_ids) and not "${schema}".pgworker_locked(j.locked_at, j.locked_by)
    order by j.id for update
  loop
    if job.locked_by is not null then
      queues := queues || job.job_queue_id;
      owners := owners || job.locked_by;
    end if;
    update "${schema}"._private_jobs j set
        run_at = coalesce(reschedule_jobs.run_at, j.run_at),
        priority = coalesce(reschedule_jobs.priority, j.priority),
        attempts = coalesce(reschedule_jobs.attempts, j.attempts),
        max_attempts = coalesce(reschedule_jobs.max_attempts, j.max_attempts),
        locked_at = null,
        locked_by = null,
        updated_at = now()
      where j.id = job.id
      returning * into job;
    if reschedule_jobs.attempts is not null then
      delete from "${schema}".pgworker_recoveries r where r.job_id = job.id;
    end if;
    if job.is_available then
      ready := ready + 1;
      earliest := least(earliest, job.run_at);
      levels := levels || job.priority;
    end if;
    if job.attempts < job.max_attempts then
      perform "${schema}".pgworker_revive(job.id);
    end if;
    return next job;
  end loop;
  perform set_config('pgworker.ending', '', true);
  perform "${schema}".pgworker_free_queues(queues, owners);
  perform "${schema}".pgworker_wake(
    ready, earliest, (
      select case when count(distinct l.level) <= 16 then coalesce(string_agg(distinct l.level::text, ','), '') end
      from unnest(levels) l(level)));
end
$$;
comment on function "${schema}".reschedule_jobs(bigint[], timestamptz, int, int, int) is
  'Changes the run time, priority and attempts of the given jobs, except for running ones; a null argument leaves the value unchanged.';
