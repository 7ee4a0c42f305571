create table greeting (
  id bigint primary key generated always as identity,
  name text not null,
  created_at timestamptz not null default now()
);
