create table users (
  id bigint primary key generated always as identity,
  name text not null,
  email text not null
);

-- Adds a job for the row; the trigger's argument is the task. Fits any table with a column id.
create function enqueue_job() returns trigger
language plpgsql as $$
begin
  perform graphile_worker.add_job(tg_argv[0], json_build_object('id', new.id));
  return null;
end
$$;

create trigger welcome
  after insert on users
  for each row execute function enqueue_job('welcome_mail');

create trigger confirm_address
  after update of email on users
  for each row when (old.email is distinct from new.email)
  execute function enqueue_job('confirm_address');
