-- History: its settings and the ring of its partitions.

create or replace function "${schema}".pgworker_keep_history(enabled boolean, keep_for interval, keep_most bigint, payloads boolean)
returns boolean
language plpgsql volatile security definer
set lock_timeout = '2s'
set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
begin
  if keep_for not between interval '1 minute' and interval '3650 days' then
    raise exception 'keep_for must be between 1 minute and 3650 days, but is %', keep_for using errcode = '22023';
  elsif keep_most not between 1000 and 10000000000 then
    raise exception 'keep_most must be between 1000 and 10000000000, but is %', keep_most using errcode = '22023';
  end if;
  update "${schema}".pgworker_history_settings s set
      enabled = coalesce(pgworker_keep_history.enabled, s.enabled),
      keep_for = coalesce(pgworker_keep_history.keep_for, s.keep_for),
      keep_most = coalesce(pgworker_keep_history.keep_most, s.keep_most),
      payloads = coalesce(pgworker_keep_history.payloads, s.payloads)
    where s.enabled <> pgworker_keep_history.enabled
      or s.keep_for <> pgworker_keep_history.keep_for
      or s.keep_most <> pgworker_keep_history.keep_most
      or s.payloads <> pgworker_keep_history.payloads;
  return found;
end
$$;
comment on function "${schema}".pgworker_keep_history(boolean, interval, bigint, boolean) is
  'Switches the history on or off, at once, and sets how much of it is kept; a null argument leaves the value unchanged. Returns whether '
  'anything has changed.';
revoke execute on function "${schema}".pgworker_keep_history(boolean, interval, bigint, boolean) from public;

create or replace function "${schema}".pgworker_history_trouble(partition text, reason text) returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp as $$
declare
  hour constant text := floor(extract(epoch from clock_timestamp()) / 3600)::bigint::text;
begin
  if current_setting('pgworker.history_trouble', true) is distinct from hour then
    perform set_config('pgworker.history_trouble', hour, false);
    raise warning 'Partition % of the history of schema "${schema}" cannot be tended: %', partition, reason;
  end if;
end
$$;
comment on function "${schema}".pgworker_history_trouble(text, text) is 'Warns that a partition of the history could not be read or emptied.';
revoke execute on function "${schema}".pgworker_history_trouble(text, text) from public;

-- What is committed while the lock is awaited counts, so the entries are looked at with the lock.
create or replace function "${schema}".pgworker_empty_history(partition regclass, older_than timestamptz) returns boolean
language plpgsql volatile
set lock_timeout = '50ms'
set search_path = pg_catalog, pg_temp as $$
declare
  newest timestamptz;
begin
  if not exists (select from "${schema}".pgworker_history_sizes z where z.relation = partition) then
    return false;
  end if;
  execute format('lock table only %s in access exclusive mode', partition);
  if older_than is not null then
    execute format('select max(h.ended_at) from only %s h', partition) into newest;
    if newest >= older_than then
      return false;
    end if;
  end if;
  execute format('truncate only %s', partition);
  return true;
exception
  when lock_not_available or deadlock_detected then
    return false;
  when others then
    perform "${schema}".pgworker_history_trouble(partition::text, sqlerrm);
    return false;
end
$$;
comment on function "${schema}".pgworker_empty_history(regclass, timestamptz) is
  'Empties a partition of the history if nothing in it ended after the time, if one is given; returns whether it did. Waits for nobody.';
revoke execute on function "${schema}".pgworker_empty_history(regclass, timestamptz) from public;

create or replace function "${schema}".pgworker_history_part(partition regclass, out entries bigint, out newest timestamptz)
language plpgsql volatile
set lock_timeout = '50ms'
set search_path = pg_catalog, pg_temp as $$
begin
  select z.entries into entries from "${schema}".pgworker_history_sizes z where z.relation = partition;
  if not found then
    return;
  end if;
  execute format('select max(h.ended_at) from only %s h', partition) into newest;
exception
  when lock_not_available or deadlock_detected then
    null;
  when others then
    perform "${schema}".pgworker_history_trouble(partition::text, sqlerrm);
end
$$;
comment on function "${schema}".pgworker_history_part(regclass) is
  'How many entries a partition of the history has, estimated, and when the newest ended; null if it is in use.';
revoke execute on function "${schema}".pgworker_history_part(regclass) from public;

create or replace function "${schema}".pgworker_tend_losses() returns void
language plpgsql volatile
set lock_timeout = '50ms'
set search_path = pg_catalog, pg_temp as $$
begin
  delete from "${schema}".pgworker_history_losses l where l.lost_at < clock_timestamp() - interval '1 day';
  if (select count(*) from "${schema}".pgworker_history_losses) > 1000 then
    with gone as (
      delete from "${schema}".pgworker_history_losses l returning l.*)
    insert into "${schema}".pgworker_history_losses
      select max(g.lost_at), sum(g.jobs), g.reason from gone g group by date_trunc('hour', g.lost_at), g.reason;
  end if;
exception when lock_not_available or deadlock_detected then
  null;
end
$$;
comment on function "${schema}".pgworker_tend_losses() is
  'Forgets losses of the history after a day, and combines those of one hour and reason if there are many.';
revoke execute on function "${schema}".pgworker_tend_losses() from public;

-- What is emptied is a partition at a time, which takes the same moment whatever it holds. Where one is in use, by a backup for instance, it
-- is left to the next time: entries stay longer then, and never fewer. Few at a time, as readers wait for the transaction to end. That
-- which is written to is never emptied: the next one takes its place first. Trouble with one partition leaves the others alone, and one that somebody has
-- dropped is passed over.
-- Half of the ring suffices for the time, a seventh of it each, and half for the number, so none is emptied early whatever the rate.
create or replace function "${schema}".pgworker_tend_history() returns void
language plpgsql volatile security definer
set lock_timeout = '50ms' set client_min_messages = warning
set search_path = pg_catalog, pg_temp as $$
declare
  kept "${schema}".pgworker_history_settings;
  part record;
  seen record;
  oldest timestamptz;
  total bigint := 0;
  here bigint;
  in_use int := 0;
  emptied oid[] := '{}';
  filled oid[] := '{}';
  amounts bigint[] := '{}';
  following smallint;
  due boolean;
begin
  select * into kept from "${schema}".pgworker_history_settings s for update skip locked;
  if not found then
    return;
  end if;
  due := not exists (select from "${schema}".pgworker_history_sizes z where z.slot = kept.slot);
  perform "${schema}".pgworker_tend_losses();
  oldest := clock_timestamp() - kept.keep_for;
  for part in
    select z.relation, z.slot from "${schema}".pgworker_history_sizes z
    order by z.slot is not null, (z.slot + 15 - kept.slot) % 16
  loop
    select * into seen from "${schema}".pgworker_history_part(part.relation);
    if part.slot = kept.slot then
      here := seen.entries;
    end if;
    in_use := in_use + (seen.entries is null)::int;
    exit when in_use >= 4;
    continue when coalesce(seen.entries, 0) = 0;
    if part.slot = kept.slot then
      total := total + seen.entries;
      due := seen.entries >= kept.keep_most / 7 or kept.slot_since < clock_timestamp() - kept.keep_for / 7 or seen.newest < oldest;
    elsif seen.newest < oldest and cardinality(emptied) < 4 and "${schema}".pgworker_empty_history(part.relation, oldest) then
      emptied := emptied || part.relation;
    else
      total := total + seen.entries;
      filled := filled || part.relation;
      amounts := amounts || seen.entries;
    end if;
  end loop;
  -- oldest first
  for i in 1..cardinality(filled) loop
    exit when total <= kept.keep_most or cardinality(emptied) >= 4;
    if "${schema}".pgworker_empty_history(filled[i], null) then
      total := total - amounts[i];
      emptied := emptied || filled[i];
    end if;
  end loop;
  if due then
    begin
      select z.slot into following
        from (
          select n.slot, n.relation from "${schema}".pgworker_history_sizes n
          where n.slot <> kept.slot order by (n.slot + 15 - kept.slot) % 16 limit 1) z
        where pg_relation_size(z.relation) = 0;
    exception when lock_not_available or deadlock_detected then
      following := null;
    end;
    if following is not null then
      update "${schema}".pgworker_history_settings s set slot = following, slot_since = clock_timestamp();
    end if;
  elsif here = 0 then
    update "${schema}".pgworker_history_settings s set slot_since = clock_timestamp();
  end if;
exception when lock_not_available or deadlock_detected then
  null;
end
$$;
comment on function "${schema}".pgworker_tend_history() is
  'Chooses the partition of the history to write to, and empties old ones. Call it every 20 seconds.';
revoke execute on function "${schema}".pgworker_tend_history() from public;
