-- Continuation: what continues because something has happened.

-- Workers call it when they are notified of pgworker:continue, and every few seconds while there is anything.
create or replace function "${schema}".pgworker_continue(out more boolean, out held boolean)
language plpgsql volatile
set search_path = pg_catalog, pg_temp as $$
begin
  select d.more or r.more, d.held or r.held into more, held
    from "${schema}".pgworker_deliver_signals() d, "${schema}".pgworker_release_successors() r;
end
$$;
comment on function "${schema}".pgworker_continue() is
  'Continues jobs for which something has come: whether there may be more to be done at once, and whether another session holds a row, so that it is worth '
  'calling again soon. Never waits.';
revoke execute on function "${schema}".pgworker_continue() from public;

create or replace function "${schema}".pgworker_tend_continuations(inout after bigint, out more boolean)
language plpgsql volatile
set search_path = pg_catalog, pg_temp as $$
begin
  perform "${schema}".pgworker_tend_flows();
  select t.after, t.more into after, more from "${schema}".pgworker_tend_steps(after) t;
end
$$;
comment on function "${schema}".pgworker_tend_continuations(bigint) is
  'Deletes what is no longer needed of what jobs wait for and have done, of a part of the jobs after this id; returns where to continue, null for at the '
  'beginning, and whether to do so at once. Otherwise call it every 10 seconds.';
revoke execute on function "${schema}".pgworker_tend_continuations(bigint) from public;
