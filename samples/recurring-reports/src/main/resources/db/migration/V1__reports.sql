create table report (
  name text not null,
  until timestamptz not null,
  backfilled boolean not null,
  primary key (name, until)
);
comment on column report.until is 'The end of the time that the report is about.';
