-- The function runs with the rights of its owner, so that who may write users needs no right in graphile_worker.
-- A fixed search_path keeps a caller from putting functions of its own in the place of those called here.
alter function enqueue_job() security definer set search_path = pg_catalog, pg_temp;

-- Existing triggers do not need it; without it nobody else can add any task's jobs by a trigger on a table of his own.
revoke execute on function enqueue_job() from public;
