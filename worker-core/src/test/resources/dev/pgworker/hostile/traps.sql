-- Plants a shadow of every name in trap.named: functions and operators in the schemas public and earlier, types and tables in the
-- pg_temp of each session that calls trap.arm(). One that is called leaves its number in a sequence, which no rollback undoes.
set search_path = pg_catalog;

create schema trap;
create schema earlier;
grant usage on schema trap, earlier to public;

create table trap.planted (id int generated always as identity, what text);
create table trap.named (name text);
create sequence trap.sprung;
grant all on sequence trap.sprung to public;
grant select on trap.planted, trap.named to public;

create function trap.spring(trap int) returns void language plpgsql set search_path = pg_catalog as $$
begin
  perform setval('trap.sprung', trap);
  raise exception 'A trap was sprung by %: %', current_user, (select what from trap.planted where id = trap) using errcode = 'TRAPS';
end
$$;

create function trap.spring_type(trap int) returns bool language plpgsql set search_path = pg_catalog as $$
begin
  perform trap.spring(trap);
  return true;
end
$$;

create function trap.plant_function(home text, name text, arguments text[], result text) returns void
language plpgsql set search_path = pg_catalog as $$
declare
  trap int;
begin
  insert into trap.planted (what)
    values (format('function %s.%s(%s)', home, name, array_to_string(arguments, ', '))) returning id into trap;
  execute format('create function %I.%I(%s) returns %s language plpgsql as ''begin perform trap.spring(%s); return null; end''',
    home, name, array_to_string(arguments, ', '), result, trap);
exception when others then
  null; -- there is one, or nobody can make such a function
end
$$;

create function trap.plant() returns void language plpgsql set search_path = pg_catalog as $$
declare
  types constant text[] := '{bool,int2,int4,int8,float8,numeric,text,varchar,name,oid,regclass,tid,timestamptz,interval,json,jsonb}';
  -- each is taken for another where no function or operator fits exactly
  near constant text[] := '{text,varchar,varchar,text,text,name,name,text,float8,int4,float8,int8,float8,numeric,numeric,int4,int8,int4,int4,int2}';
  all_types text[];
  home text;
  known record;
  arguments text[];
  operator text;
  l text;
  r text;
begin
  select array_agg(t) into all_types from (select unnest(types) union all select unnest(types) || '[]') u(t);
  foreach home in array '{public,earlier}'::text[] loop
    for known in
      select p.proname, array(select format_type(a, null) from unnest(p.proargtypes::oid[]) a) as arguments,
        case when t.typtype = 'p' then 'text' else format_type(p.prorettype, null) end as result
      from pg_proc p join pg_type t on t.oid = p.prorettype
      where p.pronamespace = 'pg_catalog'::regnamespace and p.proname in (select name from trap.named)
    loop
      perform trap.plant_function(home, known.proname, known.arguments, known.result);
      for i in 1..cardinality(types) loop
        arguments := array(
          select case
            when a in ('anyarray', 'anycompatiblearray') then types[i] || '[]'
            when a ~ '^(any|anyelement|anynonarray|anycompatible|anycompatiblenonarray|"any")$' then types[i]
            else a end
          from unnest(known.arguments) with ordinality u(a, place) order by place);
        if arguments <> known.arguments then
          perform trap.plant_function(home, known.proname, arguments, 'text');
          if cardinality(arguments) = 1 then
            perform trap.plant_function(home, known.proname, array[arguments[1], arguments[1]], 'text');
            perform trap.plant_function(home, known.proname, array['text', arguments[1]], 'text');
          end if;
        end if;
      end loop;
      for i in 1..cardinality(near) / 2 loop
        perform trap.plant_function(home, known.proname, array(
          select case when format_type(a::regtype, null) = format_type(near[2 * i - 1]::regtype, null) then near[2 * i] else a end
          from unnest(known.arguments) with ordinality u(a, place)
          where a !~ 'any' order by place), known.result);
      end loop;
    end loop;
    foreach l in array all_types loop
      foreach r in array all_types loop
        continue when l like '%[]' and r like '%[]' and l <> r;
        perform trap.plant_function(home, 'operator_of', array[l, r], 'bool');
        for operator in
          select distinct o.oprname from pg_operator o
          where o.oprnamespace = 'pg_catalog'::regnamespace and o.oprname in (select name from trap.named)
        loop
          execute format('create operator %I.%s (function = %I.operator_of, leftarg = %s, rightarg = %s)',
            home, operator, home, l, r);
        end loop;
      end loop;
    end loop;
  end loop;
end
$$;

create function trap.arm() returns void language plpgsql set search_path = pg_catalog set client_min_messages = error as $$
declare
  name text;
begin
  for name in
    select t.typname from pg_type t
    where t.typnamespace = 'pg_catalog'::regnamespace and t.typtype = 'b' and t.typname in (select n.name from trap.named n)
  loop
    execute format('create domain pg_temp.%I as pg_catalog.%I check (trap.spring_type(%s))',
      name, name, (select id from trap.planted where what = 'type pg_temp.' || name));
  end loop;
  for name in
    select distinct c.relname from pg_class c
    where c.relkind in ('r', 'v') and c.relname in (select n.name from trap.named n)
      and not exists (select from pg_type t where t.typnamespace = pg_my_temp_schema() and t.typname = c.relname)
  loop
    execute format('create temp table %I (trap int)', name);
  end loop;
end
$$;
