-- Limits: applying a new or changed one to the jobs that are there.

-- Who has the table of jobs open for writing may have looked for limits before there was this one. All who open it later look later.
create or replace function "${schema}".pgworker_writers() returns text[]
language sql volatile
set search_path = pg_catalog, pg_temp as $$
  select coalesce(array_agg(distinct l.virtualtransaction), '{}') from pg_locks l
  where l.locktype = 'relation' and l.relation = '"${schema}"._private_jobs'::regclass and l.mode = 'RowExclusiveLock' and l.granted
    and l.database = (select d.oid from pg_database d where d.datname = current_database())
    and l.pid is distinct from pg_backend_pid()
$$;
comment on function "${schema}".pgworker_writers() is 'The open transactions that have written jobs, or are about to.';
revoke execute on function "${schema}".pgworker_writers() from public;

create or replace function "${schema}".pgworker_buckets(limit_ids int[], bucket_values text[]) returns bigint[]
language plpgsql volatile
set search_path = pg_catalog, pg_temp as $$
begin
  insert into "${schema}".pgworker_limit_buckets (limit_id, value)
    select g.limit_id, g.value from unnest(limit_ids, bucket_values) g(limit_id, value)
    where not exists (select from "${schema}".pgworker_limit_buckets b where b.limit_id = g.limit_id and b.value = g.value)
    on conflict do nothing;
  return array(
    select b.id from unnest(limit_ids, bucket_values) with ordinality g(limit_id, value, place)
    join "${schema}".pgworker_limit_buckets b on b.limit_id = g.limit_id and b.value = g.value
    order by g.place);
end
$$;
comment on function "${schema}".pgworker_buckets(int[], text[]) is
  'The buckets of these values of these limits, which are made if they do not exist; for whoever has the lock of the gates.';
revoke execute on function "${schema}".pgworker_buckets(int[], text[]) from public;

-- Struck off are those that have ended, noted those that were admitted, which are no holders twice.
create or replace function "${schema}".pgworker_note_holders(
  admitted_buckets bigint[], admitted_jobs bigint[], ended_buckets bigint[], ended_jobs bigint[], moment timestamptz
) returns void
language plpgsql volatile
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_mergejoin = off set jit = off
set search_path = pg_catalog, pg_temp as $$
begin
  with changed as materialized (
    select c.bucket, array_agg(c.job) as struck,
      coalesce(array_agg(c.job order by c.number) filter (where c.number is not null), '{}') as added
    from (
      select a.bucket, a.job, a.number from unnest(admitted_buckets, admitted_jobs) with ordinality a(bucket, job, number)
      union all
      select e.bucket, e.job, null from unnest(ended_buckets, ended_jobs) e(bucket, job)) c
    group by c.bucket),
  noted as materialized (
    select b.tid, k.holders || c.added as holders,
      k.since || array_fill(
        extract(epoch from moment - '2000-01-01 00:00:00+00'::timestamptz)::int, array[cardinality(c.added)]) as since
    from changed c
    cross join lateral (
      select t.ctid as tid, t.holders, t.since from "${schema}".pgworker_limit_buckets t
      where t.id >= c.bucket and t.id <= c.bucket order by t.id desc limit 1) b
    cross join lateral (
      select coalesce(array_agg(h.job_id order by h.number), '{}') as holders,
        coalesce(array_agg(h.since order by h.number), '{}') as since
      from unnest(b.holders, b.since) with ordinality h(job_id, since, number)
      where h.job_id <> all (c.struck)) k)
  update "${schema}".pgworker_limit_buckets b
    set holders = n.holders, since = n.since
    from noted n
    where b.ctid = n.tid;
end
$$;
comment on function "${schema}".pgworker_note_holders(bigint[], bigint[], bigint[], bigint[], timestamptz) is
  'Notes in the buckets which jobs were admitted and which have ended; for whoever has the lock of the gates.';
revoke execute on function "${schema}".pgworker_note_holders(bigint[], bigint[], bigint[], bigint[], timestamptz) from public;

create or replace function "${schema}".pgworker_forget_holders(the_limit int) returns void
language plpgsql volatile
set lock_timeout = '1s'
set search_path = pg_catalog, pg_temp as $$
begin
  perform from "${schema}".pgworker_limit_state s where s.name = 'gates' for update;
  update "${schema}".pgworker_limit_buckets b set holders = '{}', since = '{}', unstarted = 0
    where b.limit_id = the_limit and (b.holders <> '{}' or b.unstarted <> 0);
end
$$;
comment on function "${schema}".pgworker_forget_holders(int) is
  'Forgets who has been admitted by a limit that admits nobody, before those who run are noted anew.';
revoke execute on function "${schema}".pgworker_forget_holders(int) from public;

-- Jobs that nobody holds are parked by the trigger, to which they are shown. Those that somebody runs, and those that somebody holds for
-- other reasons, a direct batch for instance, get permits, which may be more than the limit allows. Those of other limits' tasks have been admitted
-- already, and where a limit is being removed, nobody has to wait who did not.
create or replace function "${schema}".pgworker_apply_to(job_ids bigint[], the_limit int) returns bigint
language plpgsql volatile
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off
set enable_mergejoin = off set jit = off set lock_timeout = '1s'
set search_path = pg_catalog, pg_temp as $$
declare
  concerned constant int[] := array(
    select k.task_id from "${schema}".pgworker_limited_tasks k
    join "${schema}".pgworker_limits l on l.id = the_limit and l.state <> 'removing' and k.task_identifier = any(l.task_identifiers));
  freed record;
  run record;
  running bigint[];
  made bigint[];
begin
  with idle as materialized (
    select j.ctid as tid
    from unnest(job_ids) g(id)
    cross join lateral (
      select h.ctid, h.* from "${schema}"._private_jobs h where h.id = g.id offset 0) j
    where case
        when j.is_available then j.task_id = any(concerned)
        when j.locked_at = '9999-01-01 00:00:00+00' then j.locked_by is distinct from (
          select 'pgworker-limit:' || l.lane from "${schema}".pgworker_lane(j.task_id, j.job_queue_id, j.payload, j.flags) l)
      end),
  mine as materialized (
    select j.ctid as tid from "${schema}"._private_jobs j
    where j.ctid = any(array(select i.tid from idle i)) and (j.is_available or j.locked_at = '9999-01-01 00:00:00+00')
    for update skip locked),
  shown as (
    update "${schema}"._private_jobs j set locked_at = '9999-01-01 00:00:00+00', locked_by = ''
    where j.ctid = any(array(select m.tid from mine m))
    returning j.is_available, j.run_at, j.priority, j.job_queue_id)
  select count(*) as jobs, min(s.run_at) as earliest, count(s.job_queue_id) as queued,
      case when count(distinct s.priority) <= 16 then string_agg(distinct s.priority::text, ',') end as levels,
      (select count(*) from idle) - (select count(*) from mine) as missed
    into freed
    from shown s where s.is_available;
  perform "${schema}".pgworker_wake(freed.jobs, freed.earliest, freed.levels, freed.queued = freed.jobs);

  running := array(
    select j.id
    from unnest(job_ids) g(id)
    cross join lateral (
      select h.* from "${schema}"._private_jobs h where h.id = g.id offset 0) j
    where j.task_id = any(concerned) and (j.locked_at is not null or j.attempts < j.max_attempts)
      and (j.locked_at is null or j.locked_at <> '9999-01-01 00:00:00+00'));
  if running = '{}' then return freed.missed; end if;
  perform from "${schema}".pgworker_limit_state s where s.name = 'gates' for update;
  for run in
    select u.limit_id, u.value, array_agg(distinct g.id) as ids
    from unnest(running) g(id)
    cross join lateral (select h.* from "${schema}"._private_jobs h where h.id = g.id offset 0) j
    cross join lateral "${schema}".pgworker_lane(j.task_id, j.job_queue_id, j.payload, j.flags) n
    cross join lateral unnest(n.limit_ids, n.bucket_values) u(limit_id, value)
    join "${schema}".pgworker_limits l on l.id = u.limit_id and (l.max_running is not null or j.locked_at is null)
    group by u.limit_id, u.value
  loop
    made := "${schema}".pgworker_buckets(array[run.limit_id], array[run.value]);
    perform "${schema}".pgworker_note_holders(
      array_fill(made[1], array[cardinality(run.ids)]), run.ids, '{}', '{}', clock_timestamp());
  end loop;
  return freed.missed;
end
$$;
comment on function "${schema}".pgworker_apply_to(bigint[], int) is
  'Makes those of the given jobs that nobody holds wait as the limits say, and gives the others permits. Returns how many rows somebody had locked.';
revoke execute on function "${schema}".pgworker_apply_to(bigint[], int) from public;

-- All together or, where that is refused, because of a trigger of somebody's for instance, each half by itself: a job that cannot be changed
-- keeps no limit from taking effect for the others. It waits for nothing, and so does not count.
create or replace function "${schema}".pgworker_apply_to_what_lets(job_ids bigint[], the_limit int) returns bigint
language plpgsql volatile
set search_path = pg_catalog, pg_temp as $$
declare
  total constant int := cardinality(job_ids);
  middle constant int := (total + 1) / 2;
  context text;
begin
  begin
    return "${schema}".pgworker_apply_to(job_ids, the_limit);
  exception when others or assert_failure then
    get stacked diagnostics context = pg_exception_context;
    if sqlstate = '55P03' or not "${schema}".pgworker_about_row(sqlstate, context) then raise; end if;
    if total <= 1 then
      raise warning 'Job % cannot be made to wait for limits: %', job_ids[1], sqlerrm;
      return 0;
    end if;
  end;
  return "${schema}".pgworker_apply_to_what_lets(job_ids[:middle], the_limit)
    + "${schema}".pgworker_apply_to_what_lets(job_ids[middle + 1:], the_limit);
end
$$;
comment on function "${schema}".pgworker_apply_to_what_lets(bigint[], int) is
  'As pgworker_apply_to, but for jobs that do not let themselves be changed.';
revoke execute on function "${schema}".pgworker_apply_to_what_lets(bigint[], int) from public;

-- Somebody may hold a job while all others are gone through: then it waits in a lane that knows nothing of the limit. A gate that does not know the
-- lane finds that out.
create or replace function "${schema}".pgworker_forget_lanes_of(the_limit int) returns void
language plpgsql volatile
set lock_timeout = '1s'
set search_path = pg_catalog, pg_temp as $$
begin
  perform from "${schema}".pgworker_limit_state s where s.name = 'gates' for update;
  delete from "${schema}".pgworker_limit_lanes n
    where n.lane in (
        select t.lane from "${schema}".pgworker_limit_turns t
        where t.bucket_id in (select b.id from "${schema}".pgworker_limit_buckets b where b.limit_id = the_limit))
      or n.task_id in (select k.task_id from "${schema}".pgworker_limited_tasks k where the_limit = any(k.limit_ids));
  delete from "${schema}".pgworker_limit_turns t
    where t.bucket_id in (select b.id from "${schema}".pgworker_limit_buckets b where b.limit_id = the_limit)
      or not exists (select from "${schema}".pgworker_limit_lanes n where n.lane = t.lane);
end
$$;
comment on function "${schema}".pgworker_forget_lanes_of(int) is
  'Forgets the lanes of the tasks of a limit, which gates make anew if there are jobs in them.';
revoke execute on function "${schema}".pgworker_forget_lanes_of(int) from public;

create or replace function "${schema}".pgworker_forget_limit(the_limit int) returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp as $$
begin
  perform "${schema}".pgworker_forget_lanes_of(the_limit);
  delete from "${schema}".pgworker_limit_buckets b where b.limit_id = the_limit;
  delete from "${schema}".pgworker_limits l where l.id = the_limit;
end
$$;
comment on function "${schema}".pgworker_forget_limit(int) is 'Deletes what is left of a limit that no job is subject to any more.';
revoke execute on function "${schema}".pgworker_forget_limit(int) from public;

-- Transactions that do not know the limit yet are waited for, and so are those that hold rows of jobs, but not for ever: then the limit holds for all
-- jobs but those that they add, and another pass follows when they have ended; what they hold is found in a lane that is none any more. The lock of
-- the gates is taken in steps of their own or at the end of one: while jobs are being parked, those of other limits go on.
create or replace function "${schema}".pgworker_apply_limits(most int default 5000)
returns table (name text, state text, done boolean, note text)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
  patience constant interval := interval '10 seconds';
  one "${schema}".pgworker_limits;
  clear boolean;
  early boolean;
  ids bigint[];
  missed bigint;
  parked tid[];
  freed record;
  left_over record;
begin
  if most is null or most not between 1 and 100000 then
    perform "${schema}".pgworker_wrong('most', 'must be between 1 and 100000', most::text);
  elsif current_setting('transaction_isolation') <> 'read committed' then
    raise exception 'Limits are applied at the isolation level read committed only' using errcode = '25001';
  end if;
  perform from "${schema}".pgworker_limit_state s where s.name = 'applying' for update skip locked;
  if not found then
    return;
  end if;
  done := false;
  if not exists (select from "${schema}".pgworker_limits) then
    if "${schema}".pgworker_switched_limits() <> '{}' and not "${schema}".pgworker_switch_limits('{}') then
      state := 'removing';
      note := 'busy';
      return next;
      return;
    end if;
    -- What could not be changed when the last limit was removed, or comes from a dump: nobody else would let it go.
    parked := array(
      select j.ctid from "${schema}"._private_jobs j
      where j.locked_at = '9999-01-01 00:00:00+00'
      order by j.locked_by collate "C", j.priority, j.run_at, j.id limit most for update skip locked);
    select * into freed from "${schema}".pgworker_show_what_lets(parked);
    perform "${schema}".pgworker_wake(freed.jobs, freed.earliest);
    if freed.jobs > 0
      or parked = '{}' and exists (select from "${schema}"._private_jobs j where j.locked_at = '9999-01-01 00:00:00+00')
    then
      state := 'removing';
      note := case when freed.jobs = 0 then 'later' end;
      return next;
    end if;
    return;
  end if;
  for one in
    select * from "${schema}".pgworker_limits l
    where l.state <> 'active' or not l.settled or l.place is not null
    order by l.place is null, l.state = 'active', l.id for update skip locked
  loop
    name := one.name;
    state := one.state;
    note := null;
    early := one.looked_at between clock_timestamp() - patience and clock_timestamp();
    if not "${schema}".pgworker_limited_ids() <@ "${schema}".pgworker_switched_limits()
      and not "${schema}".pgworker_switch_limits("${schema}".pgworker_limited_ids())
    then
      note := 'busy';
      return next;
      return;
    end if;
    if one.unaware is null then
      update "${schema}".pgworker_limits l set unaware = "${schema}".pgworker_writers(), looked_at = clock_timestamp() where l.id = one.id;
      return next;
      return;
    end if;
    if one.place is null then
      clear := not one.unaware && "${schema}".pgworker_writers();
      if not clear and (one.passed or early) then
        note := case when one.passed then 'later' else 'waiting' end;
        if left_over is null or note = 'waiting' then
          select name, state, note into left_over;
        end if;
        continue;
      end if;
      one.place := -1;
      one.sure := clear;
      if one.state = 'applying' then
        begin
          perform "${schema}".pgworker_forget_holders(one.id);
          perform "${schema}".pgworker_forget_lanes_of(one.id);
          update "${schema}".pgworker_limits l set place = one.place, sure = one.sure where l.id = one.id;
        exception when lock_not_available then
          note := 'busy';
        end;
        return next;
        return;
      end if;
    end if;
    ids := array(select j.id from "${schema}"._private_jobs j where j.id > one.place order by j.id limit most);
    begin
      missed := "${schema}".pgworker_apply_to_what_lets(ids, one.id);
      one.sure := one.sure and (missed = 0 or not early);
      if cardinality(ids) = most then
        update "${schema}".pgworker_limits l set place = ids[most], sure = one.sure where l.id = one.id;
      elsif not one.sure and early then
        update "${schema}".pgworker_limits l set place = null where l.id = one.id;
        note := 'waiting';
      elsif one.state = 'removing' and one.sure then
        perform "${schema}".pgworker_forget_limit(one.id);
        done := true;
      else
        update "${schema}".pgworker_limits l set
            place = null, passed = true, sure = one.sure, settled = one.sure,
            state = case when l.state = 'applying' then 'active' else l.state end
          where l.id = one.id
          returning l.state into state;
        done := one.sure;
      end if;
      if cardinality(ids) < most and note is null then
        perform pg_notify('pgworker:limits', 's'), pg_notify('pgworker:limits', 'e');
      end if;
    exception when lock_not_available then
      note := 'busy';
    end;
    return next;
    return;
  end loop;
  if left_over is not null then
    name := left_over.name;
    state := left_over.state;
    note := left_over.note;
    return next;
  elsif "${schema}".pgworker_limited_ids() <> "${schema}".pgworker_switched_limits() then
    -- Triggers that know of too many tasks cost a little, and nothing else.
    perform "${schema}".pgworker_switch_limits("${schema}".pgworker_limited_ids());
  end if;
end
$$;
comment on function "${schema}".pgworker_apply_limits(int) is
  'Goes one step on with a limit that was made, changed or deleted: parks its jobs or lets them go, at most so many in each step. Returns no '
  'row if there is nothing to do, or somebody does it. With the note busy or waiting it is to be called again in a moment, because others '
  'are in its way, with the note later in a second; without one at once.';
revoke execute on function "${schema}".pgworker_apply_limits(int) from public;

-- Who calls this has the lock of the gates, which is not kept while somebody has a change of limits open.
create or replace function "${schema}".pgworker_review_limits() returns bigint
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp as $$
declare
  reviewed bigint;
begin
  perform from "${schema}".pgworker_limit_state s where s.name = 'changes' for update skip locked;
  if not found then
    return 0;
  end if;
  update "${schema}".pgworker_limits l set unaware = null, looked_at = null, place = null, passed = false, sure = false, settled = false
    where l.state = 'active' and l.settled and l.place is null;
  get diagnostics reviewed = row_count;
  if reviewed > 0 then
    perform "${schema}".pgworker_note_limited(array(select distinct n.name from "${schema}".pgworker_limits l, unnest(l.task_identifiers) n(name)));
    perform pg_notify('pgworker:limits', 's');
  end if;
  return reviewed;
end
$$;
comment on function "${schema}".pgworker_review_limits() is
  'Has pgworker_apply_limits look at all jobs once more: some may have been written while triggers were switched off, or did not know their task.';
revoke execute on function "${schema}".pgworker_review_limits() from public;
