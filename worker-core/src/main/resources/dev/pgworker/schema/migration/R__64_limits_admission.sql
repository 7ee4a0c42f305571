-- Limits: the gate, which lets jobs through.

-- All together or, where that is refused, because of a trigger of somebody's for instance, each half by itself: a job that cannot be changed
-- keeps no other in a lane that is none any more.
create or replace function "${schema}".pgworker_show_what_lets(parked tid[], out jobs bigint, out earliest timestamptz)
language plpgsql volatile
set search_path = pg_catalog, pg_temp as $$
declare
  -- Where there is no limit there is no trigger.
  mark constant timestamptz := case when exists (select from "${schema}".pgworker_limits) then '9999-01-01 00:00:00+00'::timestamptz end;
  total constant int := cardinality(parked);
  middle constant int := (total + 1) / 2;
  half record;
  context text;
begin
  begin
    with shown as (
      update "${schema}"._private_jobs j set locked_at = mark, locked_by = case when mark is not null then '' end
      where j.ctid = any(parked)
      returning j.is_available, j.run_at)
    select count(*), min(s.run_at) into jobs, earliest from shown s where s.is_available;
    return;
  exception when others or assert_failure then
    get stacked diagnostics context = pg_exception_context;
    if not "${schema}".pgworker_about_row(sqlstate, context) then raise; end if;
    if total = 1 then
      raise warning 'A job whose limits have changed cannot be made to wait for others: %', sqlerrm;
      jobs := 0;
      return;
    end if;
  end;
  jobs := 0;
  for at in 1..total by middle loop
    select * into half from "${schema}".pgworker_show_what_lets(parked[at:at + middle - 1]);
    jobs := jobs + half.jobs;
    earliest := least(earliest, half.earliest);
  end loop;
end
$$;
comment on function "${schema}".pgworker_show_what_lets(tid[]) is
  'Shows parked jobs to the trigger, which finds their lanes anew or lets them go; returns how many it has let go and when the first of them was due.';
revoke execute on function "${schema}".pgworker_show_what_lets(tid[]) from public;

-- Which holders have ended their jobs tell: all of them, or, of a bucket with many, so many that no more than a twentieth of the time is spent
-- on it, the first and some others: jobs end about in the order in which they were admitted. Those that have not been looked at count. No more
-- are admitted ahead of those who start them than they can start until the next look.
--
-- Tokens of a rate grow as long as they and the jobs that were admitted but have not started are fewer than the burst. So no more jobs than burst
-- plus what the rate allows start in any stretch of time, whenever it is that workers start them. Between two looks none was admitted,
-- so the number at the first look bounds it, which may leave a little out but never adds. While nothing grows because so many have not started, the
-- next look comes the sooner the faster the rate is, for the time until it is lost. A clock that is set back adds nothing either, and the
-- time from then on counts.
create or replace function "${schema}".pgworker_rooms(
  buckets bigint[], moment timestamptz,
  out ids bigint[], out rooms int[], out pauses float8[], out ended_buckets bigint[], out ended_jobs bigint[]
)
language plpgsql volatile
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off
set enable_mergejoin = off set jit = off
set search_path = pg_catalog, pg_temp as $$
declare
  piece constant int := 250;
  most_ahead constant int := 5000;
begin
  with wanted as materialized (
    select b.id, b.tid, b.tokens, b.filled_at, b.unstarted, b.holders, b.looked_at, cardinality(b.holders) as held,
      l.state, l.max_running, l.burst, l.max_starts / extract(epoch from l.period)::float8 as rate,
      cardinality(b.holders) <= 2 * piece or coalesce(
        b.looked_at not between moment - cardinality(b.holders) * interval '20 microseconds' and moment, true) as whole
    from unnest(pgworker_rooms.buckets) g(id)
    cross join lateral (
      select k.*, k.ctid as tid from "${schema}".pgworker_limit_buckets k where k.id >= g.id and k.id <= g.id order by k.id desc limit 1) b
    join "${schema}".pgworker_limits l on l.id = b.limit_id),
  counted as materialized (
    select w.*, c.ended, w.held - cardinality(c.ended) as left_over,
      case when w.whole then c.available
        when w.max_running is null then least(w.held - cardinality(c.ended), w.unstarted)
        else w.unstarted end as waiting
    from wanted w
    cross join lateral (select (piece + 1 + floor(random() * (w.held - piece)))::int as first) r
    cross join lateral (
      select coalesce(array_agg(h.job_id) filter (where j.is_available is distinct from true), '{}') as ended,
        (count(*) filter (where j.is_available))::int as available
      from unnest(
        case when w.whole then w.holders else w.holders[1:piece] || w.holders[r.first:r.first + piece - 1] end) h(job_id)
      left join lateral (
        select k.is_available, k.locked_at from "${schema}"._private_jobs k where k.id = h.job_id offset 0) j on true
      where j.is_available or w.max_running is null or j.locked_at is null or j.locked_at = '9999-01-01 00:00:00+00') c),
  rates as materialized (
    select c.id, c.tid, c.rate, c.burst, c.waiting, c.whole and c.held > 2 * piece as looked,
      least(greatest(0, c.burst - c.waiting), coalesce(greatest(least(c.tokens, c.burst), least(
        c.tokens + c.rate * greatest(0, extract(epoch from moment - c.filled_at)::float8), c.burst - c.unstarted)), c.burst)) as tokens
    from counted c
    where c.max_running is null and c.state = 'active'),
  filled as (
    update "${schema}".pgworker_limit_buckets b
      set tokens = r.tokens, filled_at = moment, unstarted = r.waiting,
        looked_at = case when r.looked then moment else b.looked_at end
      from rates r
      where b.ctid = r.tid),
  looked as (
    update "${schema}".pgworker_limit_buckets b set looked_at = moment, unstarted = c.waiting
      from counted c
      where b.ctid = c.tid and c.max_running is not null and c.whole and c.held > 2 * piece),
  known as (
    select c.id, case c.state
        when 'removing' then 1000000000
        when 'applying' then 0
        else least(c.max_running - c.left_over, most_ahead - c.waiting)
      end as room,
      case when c.state = 'active' and (c.held > 2 * piece or c.waiting >= most_ahead) then greatest(0.05, c.held * 20e-6) end as pause
    from counted c where c.max_running is not null or c.state <> 'active'
    union all
    select r.id, r.room, case
        when r.room + r.waiting < r.burst then greatest(0.001, r.next)
        when r.room > 0 then greatest(0.001, least(r.next, greatest(0.005, 0.02 / r.rate)))
        else greatest(0.02, least(r.next, 0.05 / r.rate))
      end
    from (
      select t.*, (1 - (t.tokens - floor(t.tokens))) / t.rate as next, greatest(0, floor(t.tokens + 1e-6))::int as room from rates t) r)
  select k.ids, k.rooms, k.pauses, e.ended_buckets, e.ended_jobs into ids, rooms, pauses, ended_buckets, ended_jobs
    from (select array_agg(k.id) as ids, array_agg(k.room) as rooms, array_agg(k.pause) as pauses from known k) k,
      (select array_agg(c.id) as ended_buckets, array_agg(o.job_id) as ended_jobs
        from counted c cross join lateral unnest(c.ended) o(job_id)) e;
end
$$;
comment on function "${schema}".pgworker_rooms(bigint[], timestamptz) is
  'How many jobs each of the buckets has room for at this moment, and in how many seconds to look again at those that have none; and which of its '
  'holders have ended. For whoever has the lock of the gates.';
revoke execute on function "${schema}".pgworker_rooms(bigint[], timestamptz) from public;

create or replace function "${schema}".pgworker_served() returns text[]
language sql stable
set search_path = pg_catalog, pg_temp as $$
  select coalesce(array_agg(distinct t.name), '{}')
  from "${schema}"._private_workers w
  cross join lateral jsonb_array_elements_text(
    case when jsonb_typeof(w.metadata -> 'tasks') = 'array' then w.metadata -> 'tasks' else '[]' end) t(name)
  where w.last_heartbeat_at > now() - interval '5 minutes'
$$;
comment on function "${schema}".pgworker_served() is 'The tasks that registered workers say they run.';
revoke execute on function "${schema}".pgworker_served() from public;

-- Nothing lies below the first jobs, which the caller has seen: what finished jobs left in the index is not read again.
create or replace function "${schema}".pgworker_admit_jobs(
  names text[], quotas int[], levels int[], first_run_ats timestamptz[], first_ids bigint[], moment timestamptz,
  out ids bigint[], out places int[], out run_ats timestamptz[], out priorities int[], out queued bigint
)
language plpgsql volatile
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off
set enable_hashjoin = off set enable_mergejoin = off set jit = off
set search_path = pg_catalog, pg_temp as $$
begin
  with picked as materialized (
    select c.place, c.name, f.tid, f.priority, f.run_at, f.job_queue_id
    from unnest(names, quotas, levels, first_run_ats, first_ids) with ordinality c(name, quota, level, run_at, id, place)
    cross join lateral (
      with recursive level(p) as (
        select c.level
        union all
        select (
          select j.priority from "${schema}"._private_jobs j
          where j.locked_at = '9999-01-01 00:00:00+00' and j.locked_by collate "C" = 'pgworker-limit:' || c.name and j.priority > l.p
          order by j.locked_by collate "C", j.priority, j.run_at, j.id limit 1)
        from level l where l.p is not null)
      select f.* from level l
      cross join lateral (
        select j.ctid as tid, j.priority, j.run_at, j.job_queue_id from "${schema}"._private_jobs j
        where j.locked_at = '9999-01-01 00:00:00+00' and j.locked_by collate "C" = 'pgworker-limit:' || c.name and j.priority = l.p
          and j.run_at <= moment
          and (j.run_at, j.id) >= (case when l.p = c.level then c.run_at else '-infinity' end, case when l.p = c.level then c.id else 0 end)
        order by j.run_at, j.id limit c.quota for update skip locked) f
      limit c.quota) f
    where c.quota > 0),
  freed as (
    update "${schema}"._private_jobs j set locked_at = null, locked_by = null
    from picked f
    where j.ctid = f.tid
    returning j.id, f.place, f.run_at, f.priority, f.job_queue_id)
  select array_agg(f.id), array_agg(f.place), array_agg(f.run_at), array_agg(f.priority), count(f.job_queue_id)
    into ids, places, run_ats, priorities, queued
    from freed f;
end
$$;
comment on function "${schema}".pgworker_admit_jobs(text[], int[], int[], timestamptz[], bigint[], timestamptz) is
  'Admits at most so many of the first due jobs of each lane, which begins with a job of this priority, time and id: takes their locks off. Returns the place of the lane of each.';
revoke execute on function "${schema}".pgworker_admit_jobs(text[], int[], int[], timestamptz[], bigint[], timestamptz) from public;

-- All together or, where that is refused, because of a trigger of somebody's for instance, each half by itself: a job that cannot be changed
-- holds up its lane only.
create or replace function "${schema}".pgworker_admit_what_lets(
  names text[], quotas int[], levels int[], first_run_ats timestamptz[], first_ids bigint[], moment timestamptz,
  out ids bigint[], out places int[], out run_ats timestamptz[], out priorities int[], out queued bigint
)
language plpgsql volatile
set search_path = pg_catalog, pg_temp as $$
declare
  total constant int := cardinality(names);
  middle constant int := (total + 1) / 2;
  half record;
  context text;
begin
  begin
    select * into ids, places, run_ats, priorities, queued from "${schema}".pgworker_admit_jobs(
      names, quotas, levels, first_run_ats, first_ids, moment);
    return;
  exception when others or assert_failure then
    get stacked diagnostics context = pg_exception_context;
    if not "${schema}".pgworker_about_row(sqlstate, context) then raise; end if;
    if total = 1 then
      raise warning 'A job that waits for a limit in lane % cannot be admitted: %', names[1], sqlerrm;
      return;
    end if;
  end;
  for at in 1..total by middle loop
    select * into half from "${schema}".pgworker_admit_what_lets(
      names[at:at + middle - 1], quotas[at:at + middle - 1], levels[at:at + middle - 1], first_run_ats[at:at + middle - 1],
      first_ids[at:at + middle - 1], moment);
    places := places || array(select p.place + at - 1 from unnest(half.places) with ordinality p(place, number) order by p.number);
    ids := ids || half.ids;
    run_ats := run_ats || half.run_ats;
    priorities := priorities || half.priorities;
    queued := coalesce(queued, 0) + coalesce(half.queued, 0);
  end loop;
end
$$;
comment on function "${schema}".pgworker_admit_what_lets(text[], int[], int[], timestamptz[], bigint[], timestamptz) is
  'As pgworker_admit_jobs, but for lanes of which a job does not let itself be changed.';
revoke execute on function "${schema}".pgworker_admit_what_lets(text[], int[], int[], timestamptz[], bigint[], timestamptz) from public;

-- What each lane may take is decided without looking at its jobs: of the room of each of its buckets a fair share. What a lane leaves goes to
-- those that took all of theirs, in another round.
create or replace function "${schema}".pgworker_admit(
  task_ids int[], lanes text[], buckets bigint[], everything boolean, after text, most int,
  out admitted bigint, out next_after text, out waiting_lanes text[], out waits float8[]
)
language plpgsql volatile security definer
set lock_timeout = '1s' set jit = off
set search_path = pg_catalog, pg_temp as $$
declare
  most_lanes constant int := 500;
  most_told constant int := 300;
  most_unstarted constant int := 1000000000;
  moment timestamptz;
  names text[] := array(select distinct split_part(l.told, ' ', 1) from unnest(lanes) l(told));
  began timestamptz;
  room record;
  more record;
  ids bigint[];
  rooms int[];
  pauses float8[];
  ended_buckets bigint[];
  ended_jobs bigint[];
  admitted_jobs bigint[] := '{}';
  admitted_lanes int[] := '{}';
  turn record;
  total int;
  firsts int[];
  lasts int[];
  entry_rooms int[];
  quotas int[];
  taken int[];
  given int[];
  dry boolean[];
  got record;
  give int;
  earliest timestamptz;
  levels text[] := '{}';
  queued bigint := 0;
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    raise exception 'Jobs are admitted at the isolation level read committed only' using errcode = '25001';
  elsif most is null or most not between 1 and 100000 then
    perform "${schema}".pgworker_wrong('most', 'must be between 1 and 100000', most::text);
  end if;
  admitted := 0;
  perform from "${schema}".pgworker_limit_state s where s.name = 'gates' for update;
  perform set_config('pgworker.limits', 'admit', true);
  -- An admission that a crash of the server undoes has started nothing: the claims that follow it are not on the disk either.
  perform set_config('synchronous_commit', 'off', true);
  moment := clock_timestamp();
  total := cardinality(names);
  if everything then
    names := names || "${schema}".pgworker_parked_lanes(after, most_lanes);
    if cardinality(names) >= total + most_lanes then
      next_after := names[cardinality(names)];
    end if;
  end if;
  perform "${schema}".pgworker_lower_floors(lanes);
  perform "${schema}".pgworker_make_lanes(names);
  select * into room from "${schema}".pgworker_rooms(array(
    select g.id from unnest(pgworker_admit.buckets) g(id)
    union
    select unnest((
      select k.buckets from "${schema}".pgworker_limit_lanes k
      where k.lane >= n.name collate "C" and k.lane <= n.name collate "C" order by k.lane desc limit 1)) from unnest(names) n(name)), moment);
  ids := coalesce(room.ids, '{}');
  rooms := room.rooms;
  pauses := room.pauses;
  ended_buckets := coalesce(room.ended_buckets, '{}');
  ended_jobs := coalesce(room.ended_jobs, '{}');
  -- Where a snapshot is held, reading past dead entries takes as long each time.
  for look in 1..3 loop
    began := clock_timestamp();
    select * into turn from "${schema}".pgworker_lanes_in_turn(
      task_ids,
      case when exists (
          select from "${schema}".pgworker_limited_tasks m
          join "${schema}"._private_tasks t on t.id = m.task_id and t.id <> all(task_ids))
        then "${schema}".pgworker_served()
      end,
      names,
      array(select r.id from unnest(ids, rooms) r(id, room) where r.room > 0),
      array(select r.id from unnest(ids, rooms) r(id, room) where r.room <= 0));
    total := coalesce(cardinality(turn.lanes), 0);
    exit when clock_timestamp() - began
      < interval '3 milliseconds' + (total + coalesce(cardinality(turn.empty_lanes), 0)) * interval '50 microseconds';
    if look = 3 then
      perform "${schema}".pgworker_raise_floors(turn.lanes, turn.levels, turn.first_run_ats, turn.first_ids, turn.empty_lanes);
    end if;
  end loop;

  if total > 0 then
    if not turn.bucket_ids <@ ids then
      select * into more from "${schema}".pgworker_rooms(
        array(select distinct e.id from unnest(turn.bucket_ids) e(id) where e.id <> all(ids)), moment);
      ids := ids || more.ids;
      rooms := rooms || more.rooms;
      pauses := pauses || more.pauses;
      ended_buckets := ended_buckets || more.ended_buckets;
      ended_jobs := ended_jobs || more.ended_jobs;
    end if;
    entry_rooms := array(
      select r.number from unnest(turn.bucket_ids) with ordinality e(id, place)
      left join unnest(ids) with ordinality r(id, number) on r.id = e.id
      order by e.place);
    select array_agg(e.first order by e.lane), array_agg(e.last order by e.lane) into firsts, lasts
      from (
        select p.lane, min(p.place) as first, max(p.place) as last
        from unnest(turn.places) with ordinality p(lane, place) group by p.lane) e;
    given := array_fill(0, array[total]);
    dry := array_fill(false, array[total]);
    for round in 1..5 loop
      quotas := array_fill(0, array[total]);
      for lane in 1..total loop
        exit when admitted >= most;
        continue when dry[lane];
        give := most - admitted;
        for entry in firsts[lane]..lasts[lane] loop
          give := least(give, coalesce(
            case when round = 1 then (rooms[entry_rooms[entry]] + turn.shares[entry] - 1) / turn.shares[entry]
              else rooms[entry_rooms[entry]] end, 0));
        end loop;
        if turn.queue_ids[lane] is not null then
          give := least(give, 1 - given[lane]);
        end if;
        continue when give <= 0;
        quotas[lane] := give;
        admitted := admitted + give;
        for entry in firsts[lane]..lasts[lane] loop
          rooms[entry_rooms[entry]] := rooms[entry_rooms[entry]] - give;
        end loop;
      end loop;
      exit when 0 = all(quotas);
      select * into got from "${schema}".pgworker_admit_what_lets(
        turn.lanes, quotas, turn.levels, turn.first_run_ats, turn.first_ids, moment);
      taken := array(
        select count(p.lane)::int from generate_series(1, total) l(lane) left join unnest(got.places) p(lane) on p.lane = l.lane
        group by l.lane order by l.lane);
      for lane in 1..total loop
        continue when quotas[lane] = 0;
        given[lane] := given[lane] + taken[lane];
        if taken[lane] < quotas[lane] then
          dry[lane] := true;
          give := quotas[lane] - taken[lane];
          admitted := admitted - give;
          for entry in firsts[lane]..lasts[lane] loop
            rooms[entry_rooms[entry]] := rooms[entry_rooms[entry]] + give;
          end loop;
        end if;
      end loop;
      if got.places is not null then
        earliest := least(earliest, (select min(r.run_at) from unnest(got.run_ats) r(run_at)));
        levels := array(select unnest(levels) union select p.level::text from unnest(got.priorities) p(level));
        queued := queued + got.queued;
        admitted_jobs := admitted_jobs || got.ids;
        admitted_lanes := admitted_lanes || got.places;
      end if;
    end loop;
  end if;
  perform set_config('pgworker.limits', '', true);
  if admitted > 0 or ended_jobs <> '{}' then
    perform "${schema}".pgworker_note_holders(a.buckets, a.jobs, ended_buckets, ended_jobs, moment)
      from (
        select coalesce(array_agg(e.id order by j.number), '{}') as buckets, coalesce(array_agg(j.id order by j.number), '{}') as jobs
        from unnest(admitted_jobs, admitted_lanes) with ordinality j(id, lane, number)
        join unnest(turn.bucket_ids, turn.places) e(id, lane) on e.lane = j.lane) a;
  end if;

  -- Where all lanes that were looked at wait for something else, others have their turn. Only a rate that is in effect takes tokens: a limit that is
  -- being removed may be made again, and one of concurrency made a rate, and neither owes anything then. What has not started counts for rates,
  -- and for others where not all holders are looked at.
  if admitted > 0 or total >= 100 then
    update "${schema}".pgworker_limit_buckets b set
        tokens = b.tokens - case when u.rated then u.jobs else 0 end,
        unstarted = case when u.rated or cardinality(b.holders) > 500 then least(b.unstarted + u.jobs, most_unstarted) else 0 end,
        turn = case when u.lanes > 1 then turn.lanes[coalesce(u.last_given, u.last_place)] else b.turn end
      from (
        select e.*, k.tid, exists (
            select from "${schema}".pgworker_limits l where l.id = k.limit_id and l.state = 'active' and l.max_starts is not null) as rated
        from (
          select e.id, sum(given[e.place])::int as jobs, count(*) as lanes, max(e.place) as last_place,
            max(e.place) filter (where given[e.place] > 0) as last_given
          from unnest(turn.bucket_ids, turn.places) e(id, place)
          group by e.id) e
        cross join lateral (
          select l.ctid as tid, l.limit_id from "${schema}".pgworker_limit_buckets l
          where l.id >= e.id and l.id <= e.id order by l.id desc limit 1) k) u
      where b.ctid = u.tid and (u.jobs > 0 and (u.lanes > 1 or u.rated or cardinality(b.holders) > 500) or u.lanes >= 100);
  end if;
  if admitted > 0 then
    update "${schema}".pgworker_limit_lanes k set used_at = moment
      where k.lane = any(array(select l.name collate "C" from unnest(turn.lanes, given) l(name, jobs) where l.jobs > 0))
        and k.used_at < moment - interval '30 seconds';
    -- They come to the places of their old times, before which there may be much that has ended. So those without a queue are named; the
    -- priorities are told for those in queues.
    for begins in 1..cardinality(admitted_jobs) by most_told loop
      perform "${schema}".pgworker_wake(least(most_told, cardinality(admitted_jobs) - begins + 1), earliest,
        case when queued > 0 and cardinality(levels) <= 16 then array_to_string(levels, ',') end, queued = admitted,
        job_ids => case when queued < admitted and (queued = 0 or cardinality(levels) <= 16)
          then array_to_string(admitted_jobs[begins:begins + most_told - 1], ',') end);
    end loop;
  end if;
  select array_agg(w.lane), array_agg(w.seconds) into waiting_lanes, waits
    from (
      select a.lane, min(a.seconds) as seconds
      from (
        select p.lane, p.seconds
        from "${schema}".pgworker_next_parked(
          array(select d.name from unnest(turn.lanes, dry) d(name, dry) where d.dry), moment) n
        cross join lateral unnest(n.lanes, n.waits) p(lane, seconds)
        union all
        select b.name, 0.1 from unnest(turn.busy_lanes) b(name)
        union all
        select n.name, max(r.pause)
        from (
          select unnest(names) as name
          union
          select d.name from unnest(turn.lanes, dry) d(name, dry) where not d.dry) n
        join "${schema}".pgworker_limit_lanes k on k.lane = n.name
        cross join lateral unnest(k.buckets) u(bucket)
        join unnest(ids, rooms, pauses) r(id, room, pause) on r.id = u.bucket
        where r.room <= 0 and r.pause is not null
        group by n.name) a
      group by a.lane) w;
end
$$;
comment on function "${schema}".pgworker_admit(int[], text[], bigint[], boolean, text, int) is
  'Gives permits to jobs that wait for limits, at most so many, and makes them available: of the given lanes, of those that wait for the given '
  'buckets, and if everything is asked for of the next lanes after a given one (next_after is null after the last). Only jobs of these tasks, and of those '
  'that no registered worker runs. Tells in how many seconds which lanes are to be looked at again. SQLSTATE 55P03: others are at it.';
revoke execute on function "${schema}".pgworker_admit(int[], text[], bigint[], boolean, text, int) from public;
