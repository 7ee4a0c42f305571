-- Helpers of the other files.

-- Called by the functions of the other files only, with the rights of those who call them. Each looks at a bounded number of rows.

create or replace function "${schema}".pgworker_backoff(attempts int) returns interval
language sql volatile as $$
  select pg_catalog.exp(greatest(0, least(attempts, 10))::pg_catalog.float8) operator(pg_catalog.*) '1 second'::pg_catalog.interval
    operator(pg_catalog.*) (1 operator(pg_catalog.-) (pg_catalog.random() operator(pg_catalog.*) 0.1))
$$;
comment on function "${schema}".pgworker_backoff(int) is
  'Delay after the given number of failed attempts: e to the power of that number, in seconds, at most about six hours, up to 10 % '
  'shorter at random.';
revoke execute on function "${schema}".pgworker_backoff(int) from public;

create or replace function "${schema}".pgworker_wake(
  job_count bigint, earliest timestamptz default null, priorities text default null, queued boolean default false,
  job_id bigint default null, job_ids text default null
) returns void
language plpgsql volatile as $$
begin
  if job_count operator(pg_catalog.>) 0 then
    perform pg_catalog.pg_notify('jobs:insert', pg_catalog.concat('{"r":', pg_catalog.random(), ',"count":', job_count,
      ',"at":'::pg_catalog.text operator(pg_catalog.||)
        case when pg_catalog.isfinite(earliest) then (pg_catalog.date_part('epoch', earliest) operator(pg_catalog.*) 1000)::bigint end
          ::pg_catalog.text,
      coalesce(',"p":['::pg_catalog.text operator(pg_catalog.||) priorities operator(pg_catalog.||) ']'::pg_catalog.text, ',"p":null'),
      case when queued then ',"q":true' end, case when job_id is not null then pg_catalog.concat(',"id":', job_id) end,
      ',"ids":['::pg_catalog.text operator(pg_catalog.||) job_ids operator(pg_catalog.||) ']'::pg_catalog.text, '}'));
  end if;
end
$$;
comment on function "${schema}".pgworker_wake(bigint, timestamptz, text, boolean, bigint, text) is
  'Tells all workers that so many jobs may have become due; says nothing when there are none. Where the caller knows it, also when the '
  'first of them is due, separated by commas which priorities they have, and whether all are in queues: workers that do not begin to '
  'look at the first job of all look there. An empty text says that none has come to a place where none was before. '
  'The id is that of the only one, if it is due already, has neither queue nor flags, and may be claimed; the ids, separated by commas and '
  'no more than fit into a notification, are those of all of them, which are due: a worker need not look for them where they were added.';
grant execute on function "${schema}".pgworker_wake(bigint, timestamptz, text, boolean, bigint, text) to public;

create or replace function "${schema}".pgworker_announce(job_count bigint, queue_names text[], run_ats timestamptz[], priorities int[])
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp as $$
declare
  earliest timestamptz := now();
  levels text := '0';
begin
  if run_ats is not null then
    select min(coalesce(r.run_at, now())) into earliest from unnest(run_ats) r(run_at);
  end if;
  if priorities is not null then
    select case when count(distinct l.level) <= 16 then string_agg(distinct l.level, ',') end into levels
      from (select coalesce(p.priority, 0)::text as level from unnest(priorities) p(priority)) l;
  end if;
  perform "${schema}".pgworker_wake(
    job_count, earliest, levels,
    queue_names is not null and cardinality(queue_names) >= job_count and array_position(queue_names, null) is null);
end
$$;
comment on function "${schema}".pgworker_announce(bigint, text[], timestamptz[], int[]) is
  'Tells all workers of so many jobs that have been added with these queues, times and priorities; an array that is null stands for nulls.';
grant execute on function "${schema}".pgworker_announce(bigint, text[], timestamptz[], int[]) to public;

-- An hour is more than any heartbeat interval that PgWorker allows.
create or replace function "${schema}".pgworker_lives(worker_id text) returns boolean
language sql stable as $$
  select exists (
    select from "${schema}"._private_workers w
    where w.id operator(pg_catalog.=) pgworker_lives.worker_id
      and w.last_heartbeat_at operator(pg_catalog.>) (pg_catalog.now() operator(pg_catalog.-) interval '1 hour'))
$$;
comment on function "${schema}".pgworker_lives(text) is 'Whether the worker is registered and has sent a heartbeat within the last hour.';
revoke execute on function "${schema}".pgworker_lives(text) from public;

-- Locks of four hours count as none, except those of a worker that proves its life, and so does the lock of a job that waits for a limit.
create or replace function "${schema}".pgworker_locked(locked_at timestamptz, locked_by text) returns boolean
language sql stable as $$
  select locked_at is not null and locked_at operator(pg_catalog.<>) '9999-01-01 00:00:00+00'::pg_catalog.timestamptz and (
    locked_at operator(pg_catalog.>) (pg_catalog.now() operator(pg_catalog.-) interval '4 hours')
      or "${schema}".pgworker_lives(locked_by))
$$;
comment on function "${schema}".pgworker_locked(timestamptz, text) is 'Whether such a lock still protects its job from administration.';
revoke execute on function "${schema}".pgworker_locked(timestamptz, text) from public;

-- What a user's trigger raises would be raised again for the same row, so that row is passed over. A conflict, a deadlock or a
-- cancellation of the server's own is not about a row, and ends the statement. The context distinguishes the two: only what RAISE has
-- raised begins with it.
create or replace function "${schema}".pgworker_about_row(state text, context text) returns boolean
language sql immutable
set search_path = pg_catalog, pg_temp as $$
  select state not in ('40001', '40P01', '57014') or split_part(context, E'\n', 1) like '%RAISE%'
$$;
comment on function "${schema}".pgworker_about_row(text, text) is
  'Whether an error with this SQLSTATE and context is about the row that was to be changed.';
revoke execute on function "${schema}".pgworker_about_row(text, text) from public;

create or replace function "${schema}".pgworker_estimate(condition text) returns bigint
language plpgsql volatile
set search_path = pg_catalog, pg_temp as $$
declare
  plan json;
begin
  if condition is null or condition not in ('is_available', 'not is_available', 'run_at > now()') then
    raise exception 'condition must be is_available, not is_available or run_at > now()' using errcode = '22023';
  end if;
  execute format('explain (format json) select from "${schema}"._private_jobs where %s', condition) into plan;
  return (plan -> 0 -> 'Plan' ->> 'Plan Rows')::numeric;
end
$$;
comment on function "${schema}".pgworker_estimate(text) is
  'Estimated number of jobs that meet the condition, from the planner''s statistics.';
revoke execute on function "${schema}".pgworker_estimate(text) from public;
