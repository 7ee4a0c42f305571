-- Spring Boot migrates the main database with Flyway; this script is run at each start.
create table if not exists report (
  month text primary key,
  cents bigint
);
