create table sale (
  id bigint primary key generated always as identity,
  customer text not null,
  month text not null,
  cents bigint not null
);
