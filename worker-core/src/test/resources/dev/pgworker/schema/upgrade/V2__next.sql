-- A next version, as it might be: something new of ours, a function of the interface with another body, a successor for a function of
-- ours, and an index. Nothing that workers of version 1 use is taken away or means something else.

set local client_min_messages = warning;

create table "${schema}".pgworker_notes (
  job_id bigint constraint pgworker_notes_pkey primary key,
  note text not null
);

create or replace function "${schema}".worker_deregister(worker_id text) returns void
language plpgsql volatile as $$
begin
  -- version 2
  delete from "${schema}"._private_workers w where w.id = worker_deregister.worker_id;
end
$$;

create function "${schema}".pgworker_wake_2(job_count bigint, reason text) returns void
language plpgsql volatile as $$
begin
  perform "${schema}".pgworker_wake(job_count);
end
$$;
comment on function "${schema}".pgworker_wake_2(bigint, text) is
  'Successor of pgworker_wake, which is dropped when no worker of version 1 can run any more.';

create or replace function "${schema}".pgworker_indexes()
returns table (name text, relation text, definition text, of_peers boolean)
language sql immutable as $$
  values
    ('pgworker_jobs_unqueued', '_private_jobs', '(priority, run_at, id) where is_available and job_queue_id is null', false),
    ('pgworker_jobs_queued', '_private_jobs',
      '(priority, run_at, id) include (job_queue_id) where is_available and job_queue_id is not null and priority >= -32768', false),
    ('pgworker_jobs_of_queue', '_private_jobs',
      '(job_queue_id, priority, run_at, id) where is_available and job_queue_id is not null', false),
    ('pgworker_jobs_failed', '_private_jobs', '(id) where not is_available and locked_at is null', false),
    ('pgworker_jobs_created', '_private_jobs', '(created_at)', false),
    ('_private_workers_last_heartbeat_at_idx', '_private_workers', '(last_heartbeat_at)', false),
    ('jobs_main_index', '_private_jobs',
      '(priority, run_at) include (id, task_id, job_queue_id) where is_available = true', true),
    ('jobs_no_queue_index', '_private_jobs',
      '(priority, run_at) include (id, task_id) where is_available = true and job_queue_id is null', true)
$$;
