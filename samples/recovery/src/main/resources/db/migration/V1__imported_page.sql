create table imported_page (
  job_id bigint not null,
  page integer not null,
  process bigint not null,
  primary key (job_id, page)
);
comment on column imported_page.process is 'Id of the process that has imported the page.';
