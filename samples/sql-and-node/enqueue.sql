-- One job. add_job returns it as it was stored.
select id, run_at
from graphile_worker.add_job('make_thumbnail', json_build_object('url', 'https://example.org/one.png'));

-- When and how it runs are named parameters. Repeated under its key the job is replaced, not added again.
select id, run_at
from graphile_worker.add_job(
  'make_thumbnail',
  json_build_object('url', 'https://example.org/two.png', 'max_width', 640),
  run_at => now() + interval '2 seconds',
  max_attempts => 3,
  job_key => 'thumbnail:two.png');

-- Many at once, from a query.
select count(*)
from graphile_worker.add_jobs(array(
  select row(
    'make_thumbnail', json_build_object('url', 'https://example.org/album/' || i || '.png'),
    'album', null, null, null, null, null)::graphile_worker.job_spec
  from generate_series(1, 3) i));
