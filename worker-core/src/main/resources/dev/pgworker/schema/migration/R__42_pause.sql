-- Pauses. What pauses a queue is a lock of its row that is never old and belongs to no worker, so that none releases it: neither the sweeps
-- of any worker nor the job that runs meanwhile, whose worker no longer holds the queue. Applications call these, too.
create or replace function "${schema}".pgworker_check_pause(kind text, name text) returns void
language plpgsql immutable
set search_path = pg_catalog, pg_temp as $$
begin
  if kind is null or kind not in ('task', 'queue', 'all') then
    perform "${schema}".pgworker_wrong('kind', 'must be task, queue or all', kind);
  elsif kind = 'all' and name <> '' then
    perform "${schema}".pgworker_wrong('name', 'must be empty where the kind is all', name);
  elsif kind <> 'all' and coalesce(name, '') = '' then
    perform "${schema}".pgworker_wrong('name', 'must name a ' || kind, name);
  end if;
  perform "${schema}".pgworker_check_length('name', nullif(name, ''), 128);
end
$$;
comment on function "${schema}".pgworker_check_pause(text, text) is
  'Raises an error unless this says what to pause: the kind "task" or "queue" with a name, or "all" without one.';
grant execute on function "${schema}".pgworker_check_pause(text, text) to public;

create or replace function "${schema}".pgworker_hold_queue(queue_name text) returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp as $$
declare
  queue int;
  holder text;
begin
  loop
    queue := "${schema}".pgworker_queue_id(pgworker_hold_queue.queue_name);
    select q.locked_by into holder from "${schema}"._private_job_queues q where q.id = queue for update;
    exit when found;
  end loop;
  if holder is distinct from 'pgworker-paused' then
    update "${schema}".pgworker_pauses p set held_by = holder
      where p.kind = 'queue' and p.name = pgworker_hold_queue.queue_name;
    update "${schema}"._private_job_queues q set locked_at = '9999-01-01 00:00:00+00', locked_by = 'pgworker-paused' where q.id = queue;
  end if;
end
$$;
comment on function "${schema}".pgworker_hold_queue(text) is
  'Locks a queue, which is created if it does not exist, for a pause that is recorded already. A job of it that runs continues.';
grant execute on function "${schema}".pgworker_hold_queue(text) to public;

create or replace function "${schema}".pgworker_pause(kind text, name text default '', by text default null, reason text default null)
returns boolean
language plpgsql volatile
set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
declare
  changed boolean;
begin
  perform "${schema}".pgworker_check_pause(kind, name);
  perform "${schema}".pgworker_check_length('by', by, 255);
  perform "${schema}".pgworker_check_length('reason', reason, 1000);
  insert into "${schema}".pgworker_pauses as p (kind, name, paused_by, reason) values (kind, coalesce(name, ''), by, reason)
    on conflict on constraint pgworker_pauses_pkey do update set
        paused_at = excluded.paused_at, paused_by = excluded.paused_by, reason = excluded.reason,
        held_by = null, held_at = null, job_ids = null, resumed_at = null
      where p.resumed_at is not null;
  changed := found;
  if kind = 'queue' then
    perform "${schema}".pgworker_hold_queue(name);
  end if;
  if changed then
    perform pg_notify('pgworker:pauses', '');
  end if;
  return changed;
end
$$;
comment on function "${schema}".pgworker_pause(text, text, text, text) is
  'Has workers start no more jobs of a task (kind "task", PgWorker only), of a queue ("queue", all workers) or at all ("all", PgWorker '
  'only) until that is resumed, and records who wants it and why. Running jobs continue. Returns whether it was not paused before.';
grant execute on function "${schema}".pgworker_pause(text, text, text, text) to public;

-- The jobs that ran when the queue was paused may run still, and it is theirs again then. Their workers find out when they end; one whose
-- statement began before sees a queue that is not its own, and does not free it. PgWorker notices that by itself, for others the row stays.
create or replace function "${schema}".pgworker_resume_queue(paused "${schema}".pgworker_pauses) returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp as $$
declare
  queue int;
  running bigint[];
  since timestamptz;
begin
  select q.id into queue from "${schema}"._private_job_queues q
    where q.queue_name = paused.name and q.locked_by = 'pgworker-paused' for update;
  if queue is not null and paused.held_by is not null then
    select array_agg(j.id), max(j.locked_at) into running, since
      from "${schema}"._private_jobs j where j.job_queue_id = queue and j.locked_by = paused.held_by;
  end if;
  update "${schema}"._private_job_queues q set locked_at = since, locked_by = case when running is not null then paused.held_by end
    where q.id = queue;
  if running is null or paused.held_by like 'pgworker-%' then
    delete from "${schema}".pgworker_pauses p where p.kind = 'queue' and p.name = paused.name;
  else
    update "${schema}".pgworker_pauses p set held_at = since, job_ids = running, resumed_at = clock_timestamp()
      where p.kind = 'queue' and p.name = paused.name;
  end if;
  if queue is not null and running is null then
    perform "${schema}".pgworker_wake(1, null, '');
  end if;
end
$$;
comment on function "${schema}".pgworker_resume_queue("${schema}".pgworker_pauses) is
  'Gives a paused queue back to the worker that has run a job of it all the time, or else frees it and wakes workers.';
grant execute on function "${schema}".pgworker_resume_queue("${schema}".pgworker_pauses) to public;

create or replace function "${schema}".pgworker_resume(kind text, name text default '') returns boolean
language plpgsql volatile
set search_path = pg_catalog, pg_temp as $$
declare
  paused "${schema}".pgworker_pauses;
begin
  perform "${schema}".pgworker_check_pause(kind, name);
  select * into paused from "${schema}".pgworker_pauses p
    where p.kind = pgworker_resume.kind and p.name = coalesce(pgworker_resume.name, '') and p.resumed_at is null for update;
  if not found then
    return false;
  elsif kind = 'queue' then
    perform "${schema}".pgworker_resume_queue(paused);
  else
    delete from "${schema}".pgworker_pauses p where p.kind = paused.kind and p.name = paused.name;
  end if;
  perform pg_notify('pgworker:pauses', '');
  return true;
end
$$;
comment on function "${schema}".pgworker_resume(text, text) is
  'Ends what pgworker_pause has begun; returns whether it was paused.';
grant execute on function "${schema}".pgworker_resume(text, text) to public;

create or replace function "${schema}".pgworker_keep_pauses() returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp as $$
declare
  kept "${schema}".pgworker_pauses;
  queue int;
begin
  for kept in
    select * from "${schema}".pgworker_pauses p where p.kind = 'queue' order by p.name for update skip locked
  loop
    if kept.resumed_at is null then
      perform "${schema}".pgworker_hold_queue(kept.name);
    elsif not exists (
        select from unnest(kept.job_ids) g(id)
        cross join lateral (
          select from "${schema}"._private_jobs h where h.id = g.id and h.locked_by = kept.held_by offset 0) j) then
      update "${schema}"._private_job_queues q set locked_at = null, locked_by = null
        where q.queue_name = kept.name and q.locked_by = kept.held_by and q.locked_at = kept.held_at
        returning q.id into queue;
      if queue is not null then
        perform "${schema}".pgworker_wake(1, null, '');
      end if;
      delete from "${schema}".pgworker_pauses p where p.kind = kept.kind and p.name = kept.name;
    end if;
  end loop;
end
$$;
comment on function "${schema}".pgworker_keep_pauses() is
  'Locks paused queues that another session has freed, and frees queues whose last job ended while they were resumed.';
revoke execute on function "${schema}".pgworker_keep_pauses() from public;

-- Workers ask every few seconds on the connection on which they listen, and hear nothing until the answer: a locked table is not waited for.
create or replace function "${schema}".pgworker_look_out(
  out pauses boolean, out limits boolean, out schedules boolean, out cancellations boolean, out continuations boolean)
language plpgsql stable
set lock_timeout = '500ms' set jit = off
set search_path = pg_catalog, pg_temp as $$
begin
  pauses := exists (select from "${schema}".pgworker_pauses);
  limits := exists (select from "${schema}".pgworker_limits);
  schedules := exists (select from "${schema}".pgworker_schedules);
  cancellations := exists (select from "${schema}".pgworker_cancellations);
  continuations := exists (select from "${schema}".pgworker_signals) or exists (select from "${schema}".pgworker_steps)
    or exists (select from "${schema}".pgworker_flow_waits);
end
$$;
comment on function "${schema}".pgworker_look_out() is
  'Whether anything is paused, limited, scheduled, cancelled or to be continued, or was and is not settled. Raises 55P03 if one of the tables is locked.';
revoke execute on function "${schema}".pgworker_look_out() from public;
