-- Registrations of workers and their heartbeats.

-- Called by workers about themselves (heartbeat, deregistration) and, once a minute or by hand, about dead ones, as the roles "worker" and
-- "operator". A heartbeat costs one row; looking for dead workers costs their registrations, and one pass over the jobs if there are any.

-- An index holds 2704 bytes at most.
create or replace function "${schema}".pgworker_check_id(worker_id text) returns boolean
language plpgsql immutable
set search_path = pg_catalog, pg_temp as $$
begin
  if worker_id is null then
    raise exception 'worker_id must not be null' using errcode = '22004';
  elsif octet_length(worker_id) > 2000 then
    raise exception 'worker_id must have at most 2000 bytes, but has %', octet_length(worker_id) using errcode = '22001';
  end if;
  return true;
end
$$;
comment on function "${schema}".pgworker_check_id(text) is 'Raises an exception unless a worker may have this id.';
grant execute on function "${schema}".pgworker_check_id(text) to public;

create or replace function "${schema}".worker_heartbeat(worker_id text, metadata json default null) returns void
language sql volatile
set search_path = pg_catalog, pg_temp as $$
  insert into "${schema}"._private_workers as w (id, last_heartbeat_at, metadata)
    select worker_heartbeat.worker_id, now(), worker_heartbeat.metadata::jsonb
    where "${schema}".pgworker_check_id(worker_heartbeat.worker_id)
    on conflict (id) do update set
      last_heartbeat_at = excluded.last_heartbeat_at,
      metadata = coalesce(excluded.metadata, w.metadata)
$$;
comment on function "${schema}".worker_heartbeat(text, json) is
  'Registers a worker, or records its heartbeat; null keeps the metadata. An id has at most 2000 bytes.';

-- Its row may be locked by a sweep that is about to delete it. The statement ends before its client gives up, after 10 s.
create or replace function "${schema}".pgworker_heartbeat(worker_id text, metadata json, register boolean) returns boolean
language plpgsql volatile
set lock_timeout = '8s'
set search_path = pg_catalog, pg_temp as $$
begin
  if register then
    perform "${schema}".worker_heartbeat(pgworker_heartbeat.worker_id, pgworker_heartbeat.metadata);
    return true;
  end if;
  update "${schema}"._private_workers w set last_heartbeat_at = now()
    where w.id = pgworker_heartbeat.worker_id and not coalesce(w.metadata ? 'foundDeadAt', false);
  return found;
end
$$;
comment on function "${schema}".pgworker_heartbeat(text, json, boolean) is
  'Registers a worker, or records the heartbeat of a registered one; returns false if it is no longer registered, because it was found dead.';
revoke execute on function "${schema}".pgworker_heartbeat(text, json, boolean) from public;

create or replace function "${schema}".worker_deregister(worker_id text) returns void
language sql volatile
set search_path = pg_catalog, pg_temp as $$
  delete from "${schema}"._private_workers w
    where "${schema}".pgworker_check_id(worker_deregister.worker_id) and w.id = worker_deregister.worker_id;
  select "${schema}".pgworker_bury_batches(array[worker_deregister.worker_id])
    where exists (select from "${schema}".pgworker_batches b where b.worker_id = worker_deregister.worker_id);
$$;
comment on function "${schema}".worker_deregister(text) is
  'Deletes the registration of a worker that has stopped cleanly, and a direct batch that has not ended by then.';

create or replace function "${schema}".list_stale_workers(stale_threshold interval) returns table (worker_id text)
language sql volatile
set search_path = pg_catalog, pg_temp as $$
  select w.id from "${schema}"._private_workers w where w.last_heartbeat_at < now() - stale_threshold order by w.id
$$;
comment on function "${schema}".list_stale_workers(interval) is 'Registered workers without a heartbeat for longer than the threshold.';

-- Workers of Node.js (pool-, otpool-) never register, so their absence proves nothing; their locks end after four hours.
create or replace function "${schema}".list_orphan_locked_workers(stale_threshold interval) returns table (worker_id text)
language sql volatile
set search_path = pg_catalog, pg_temp as $$
  select held.locked_by
  from (
    select j.locked_by from "${schema}"._private_jobs j where j.locked_at < now() - stale_threshold
    union
    select q.locked_by from "${schema}"._private_job_queues q where q.locked_at < now() - stale_threshold) held
  where held.locked_by is not null
    and held.locked_by not like 'pool-%'
    and held.locked_by not like 'otpool-%'
    and not exists (select from "${schema}"._private_workers w where w.id = held.locked_by)
  order by held.locked_by
$$;
comment on function "${schema}".list_orphan_locked_workers(interval) is
  'Workers that are not registered but have held a lock for longer than the threshold; excludes Node.js workers.';

create or replace function "${schema}".delete_stale_workers(worker_ids text[]) returns void
language sql volatile
set search_path = pg_catalog, pg_temp as $$
  delete from "${schema}"._private_workers w where w.id = any(worker_ids)
$$;
comment on function "${schema}".delete_stale_workers(text[]) is 'Deletes the registrations of workers that a sweep has found dead.';
