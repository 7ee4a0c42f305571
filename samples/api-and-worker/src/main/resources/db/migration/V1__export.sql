create table export (
  id bigint primary key generated always as identity,
  content text
);
