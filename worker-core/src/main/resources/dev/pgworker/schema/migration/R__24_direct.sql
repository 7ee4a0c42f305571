-- Direct tasks: batches of jobs that are locked, run and deleted in one transaction.

-- Called by another session than the one that has locked the jobs, as it has to be committed while they are locked. The row need not
-- survive the server, with which the other session ends.
create or replace function "${schema}".pgworker_note_batch(worker_id text, chain int, backend_pid int, xid bigint, job_ids bigint[])
returns bigint[]
language plpgsql volatile
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_mergejoin = off set jit = off
set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
  mine constant bigint := txid_current();
  -- An id that is not below this one is of another server, whose tables have been copied.
  broken constant bigint[] := array(
    select unnest(b.job_ids) from "${schema}".pgworker_batches b
    where (b.worker_id, b.chain) <> (pgworker_note_batch.worker_id, pgworker_note_batch.chain) and b.job_ids <> '{}'
      and case when b.xid between 3 and mine - 1 then txid_status(b.xid) is distinct from 'in progress' else true end);
  left_alone bigint[] := '{}';
begin
  if broken <> '{}' then
    left_alone := array(select g.id from unnest(job_ids) g(id) where g.id in (select unnest(broken)));
  end if;
  if exists (select from "${schema}".pgworker_recoveries) then
    left_alone := left_alone || array(
      select r.job_id from unnest(job_ids) g(id) join "${schema}".pgworker_recoveries r on r.job_id = g.id);
  end if;
  if left_alone <> '{}' then
    job_ids := array(select g.id from unnest(job_ids) g(id) where g.id <> all(left_alone));
  end if;
  perform set_config('synchronous_commit', 'off', true);
  insert into "${schema}".pgworker_batches as b (worker_id, chain, started_at, backend_pid, xid, job_ids)
    values (pgworker_note_batch.worker_id, pgworker_note_batch.chain, clock_timestamp(), pgworker_note_batch.backend_pid,
      pgworker_note_batch.xid, pgworker_note_batch.job_ids)
    on conflict on constraint pgworker_batches_pkey do update set
      started_at = excluded.started_at, backend_pid = excluded.backend_pid, xid = excluded.xid, job_ids = excluded.job_ids;
  return left_alone;
end
$$;
comment on function "${schema}".pgworker_note_batch(text, int, int, bigint, bigint[]) is
  'Notes that a session of the worker is about to run these jobs, which its transaction has locked, but for those that lost a worker before, '
  'or were in a batch that broke: these it returns.';
revoke execute on function "${schema}".pgworker_note_batch(text, int, int, bigint, bigint[]) from public;

-- Of a job that cannot be deleted, because of a user's trigger for example, the others of its batch know nothing: then all are
-- claimed, and their outcomes are written as those of other jobs are. Without such triggers and rules there is no subtransaction, whose deletions of
-- rows that the transaction has locked would be written to pg_multixact one by one.
create or replace function "${schema}".pgworker_end_batch(
  worker_id text, chain int, done tid[], claimed tid[], claimed_at timestamptz
) returns boolean
language plpgsql volatile
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off
set enable_hashjoin = off set enable_mergejoin = off set jit = off
set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
  deleted boolean := true;
  changed bigint;
begin
  perform set_config('pgworker.ending', 'direct', true);
  if exists (
    select from pg_trigger t
    where t.tgrelid = to_regclass('"${schema}"._private_jobs') and t.tgtype & 8 <> 0 and t.tgenabled <> 'D'
      and t.tgname not in ('pgworker_history_deleted', 'pgworker_ends_deleted'))
    or (select c.relhasrules from pg_class c where c.oid = to_regclass('"${schema}"._private_jobs'))
  then
    begin
      delete from "${schema}"._private_jobs j where j.ctid = any(done);
      get diagnostics changed = row_count;
      if changed < cardinality(done) then
        raise exception 'a trigger keeps a job from being deleted' using errcode = '27000';
      end if;
      set constraints all immediate;
    exception when others or assert_failure then
      deleted := false;
      claimed := claimed || done;
    end;
  else
    delete from "${schema}"._private_jobs j where j.ctid = any(done);
    get diagnostics changed = row_count;
    if changed < cardinality(done) then
      raise exception 'a job could not be deleted' using errcode = '27000';
    end if;
  end if;
  perform set_config('pgworker.ending', '', true);
  if claimed <> '{}' then
    update "${schema}"._private_jobs j set attempts = j.attempts + 1, locked_at = claimed_at, locked_by = pgworker_end_batch.worker_id
      where j.ctid = any(claimed);
    get diagnostics changed = row_count;
    if changed < cardinality(claimed) then
      raise exception 'a trigger keeps a job from being claimed' using errcode = '27000';
    end if;
  end if;
  update "${schema}".pgworker_batches b set job_ids = '{}'
    where b.worker_id = pgworker_end_batch.worker_id and b.chain = pgworker_end_batch.chain;
  return deleted;
end
$$;
comment on function "${schema}".pgworker_end_batch(text, int, tid[], tid[], timestamptz) is
  'Deletes the jobs at these addresses that have succeeded and claims the others for the worker, as of the given time, all of which the '
  'calling transaction has locked; forgets the batch. Returns false if some could not be deleted: then all are claimed instead.';
revoke execute on function "${schema}".pgworker_end_batch(text, int, tid[], tid[], timestamptz) from public;

-- Jobs that are gone, and those that others have locked since, were not lost. Another role's session cannot be ended: it continues until
-- its connection breaks.
create or replace function "${schema}".pgworker_bury_batches(worker_ids text[]) returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
  lost bigint[];
begin
  begin
    perform pg_terminate_backend(a.pid)
      from "${schema}".pgworker_batches b
      join pg_stat_activity a on a.pid = b.backend_pid and a.backend_xid::text::bigint = b.xid % 4294967296
      where b.worker_id = any(worker_ids);
  exception when insufficient_privilege then
    null;
  end;
  with gone as (
    delete from "${schema}".pgworker_batches b
    where (b.worker_id, b.chain) in (
      select o.worker_id, o.chain from "${schema}".pgworker_batches o where o.worker_id = any(worker_ids) for update skip locked)
    returning b.job_ids)
  select array_agg(distinct i.id) into lost from gone g cross join lateral unnest(g.job_ids) i(id);
  insert into "${schema}".pgworker_recoveries as r (job_id, revision, recoveries)
    select j.id, j.revision, 1
    from unnest(lost) l(id)
    cross join lateral (
      select h.id, h.revision from "${schema}"._private_jobs h where h.id = l.id and h.locked_at is null offset 0) j
    order by j.id
    on conflict on constraint pgworker_recoveries_pkey do update set
      recoveries = case when r.revision = excluded.revision then least(r.recoveries, 1000000) + 1 else 1 end,
      revision = excluded.revision;
end
$$;
comment on function "${schema}".pgworker_bury_batches(text[]) is
  'Forgets the direct batches of dead workers, counts a recovery for each of their jobs that is still there, and ends the sessions that '
  'still run them.';
revoke execute on function "${schema}".pgworker_bury_batches(text[]) from public;
