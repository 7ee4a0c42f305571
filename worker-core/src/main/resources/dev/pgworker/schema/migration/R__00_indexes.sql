-- Indexes of the tables that hold jobs and workers.

-- Jobs that are locked or have failed for good are in none of the first three, so their number costs a claim nothing.
-- The first serves jobs without a queue; the second finds the queues whose jobs are next; the third finds the next job of a
-- given queue. The fourth is written only when a job fails for good: counting and listing such jobs costs the others nothing.
-- The last two are those that Node.js and Rust workers fetch with, exactly as they make them.
-- Every row meets the condition on the priority, and so every statement that is to use the second index names it. Others cannot: a planner
-- that believes the table to be empty may search the jobs of one queue among those of all.
--
-- Empty tables get their indexes at once. Those that hold jobs are not locked for others: the migrator builds what is missing
-- with "create index concurrently" when it is done. A definition is never changed: another one gets another name.
create or replace function "${schema}".pgworker_indexes()
returns table (name text, relation text, definition text, of_peers boolean)
language sql immutable
set search_path = pg_catalog, pg_temp as $$
  values
    ('pgworker_jobs_unqueued', '_private_jobs', '(priority, run_at, id) where is_available and job_queue_id is null', false),
    ('pgworker_jobs_queued', '_private_jobs',
      '(priority, run_at, id) include (job_queue_id) where is_available and job_queue_id is not null and priority >= -32768', false),
    ('pgworker_jobs_of_queue', '_private_jobs',
      '(job_queue_id, priority, run_at, id) where is_available and job_queue_id is not null', false),
    ('pgworker_jobs_failed', '_private_jobs', '(id) where not is_available and locked_at is null', false),
    ('pgworker_jobs_parked', '_private_jobs',
      '(locked_by collate "C", priority, run_at, id) where locked_at = ''9999-01-01 00:00:00+00''', false),
    ('_private_workers_last_heartbeat_at_idx', '_private_workers', '(last_heartbeat_at)', false),
    ('jobs_main_index', '_private_jobs',
      '(priority, run_at) include (id, task_id, job_queue_id) where is_available = true', true),
    ('jobs_no_queue_index', '_private_jobs',
      '(priority, run_at) include (id, task_id) where is_available = true and job_queue_id is null', true)
$$;
comment on function "${schema}".pgworker_indexes() is
  'Indexes that the tables should have in addition to their keys; those that only other Graphile Workers need are marked.';
grant execute on function "${schema}".pgworker_indexes() to public;

do $indexes$
declare
  missing record;
begin
  for missing in
    select i.name, i.relation, i.definition from "${schema}".pgworker_indexes() i
    where not i.of_peers and current_setting('pgworker.installing', true) = 'on'
  loop
    execute format('create index if not exists %I on "${schema}".%I %s', missing.name, missing.relation, missing.definition);
  end loop;
end
$indexes$;
