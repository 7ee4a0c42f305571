-- Rights of the functions that other Graphile Workers know as well.

-- Those that an adoption has found keep the rights that they had; the others are revoked from public, except add_job and add_jobs. Only the
-- migration that installs or adopts a schema knows what it has found (see V1): later nothing is changed here.
do $rights$
declare
  found constant oid[] := nullif(current_setting('pgworker.found', true), '')::oid[];
  private regprocedure;
begin
  for private in
    select p.oid from pg_proc p
    where p.pronamespace = '"${schema}"'::regnamespace and p.oid <> all(found) and p.proname in (
      'remove_job', 'complete_jobs', 'permanently_fail_jobs', 'reschedule_jobs', 'force_unlock_workers', 'worker_heartbeat',
      'worker_deregister', 'list_stale_workers', 'list_orphan_locked_workers', 'recover_dead_worker_jobs', 'delete_stale_workers')
  loop
    execute 'revoke execute on function ' || private || ' from public';
  end loop;
end
$rights$;
