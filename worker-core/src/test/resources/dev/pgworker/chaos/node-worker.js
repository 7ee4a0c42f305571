// A Graphile Worker of Node.js that takes part in the chaos test. Arguments: a folder with node_modules, the connection
// string, and the number of the process. It serves the task "work" as ChaosWorker does, writes the same ledger, and stops
// when its standard input ends. What it cannot write yet it goes on trying to write, so that a database that is away costs
// no attempt.
const { createRequire } = require("node:module");
const { randomUUID } = require("node:crypto");
const [, , folder, connectionString, process_] = process.argv;
const fromFolder = createRequire(folder + "/");
const { run, Logger } = fromFolder("graphile-worker");
const { Pool } = fromFolder("pg");

const ledger = new Pool({ connectionString, max: 6 });
ledger.on("error", () => {});
const sleep = (millis) => new Promise((resolve) => setTimeout(resolve, millis));

async function write(text, values) {
  for (;;) {
    try {
      return await ledger.query(text, values);
    } catch (e) {
      await sleep(50);
    }
  }
}

async function work(payload, { job }) {
  const id = randomUUID();
  await write(
    `insert into chaos.run (id, n, job, queue, worker, process, attempt, run_at, recoveries)
     values ($1, $2, $3, (select queue from chaos.added where n = $2), $4, $5, $6, $7, coalesce(
       (select coalesce(r.recoveries, 0) from graphile_worker._private_jobs j
          left join graphile_worker.pgworker_recoveries r on r.job_id = j.id and r.revision = j.revision
          where j.id = $3), -1))
     on conflict (id) do nothing`,
    [id, payload.n, job.id, job.locked_by, process_, job.attempts, job.run_at],
  );
  let how = "failed";
  try {
    await sleep(payload.millis);
    if (payload.kind === "FAILS_ONCE" && job.attempts === 1) {
      throw new Error("Fails once");
    }
    how = "done";
  } finally {
    await write("update chaos.run set done = $2, ended_at = clock_timestamp(), how = $3 where id = $1", [
      id,
      how === "done",
      how,
    ]);
  }
}

(async () => {
  const pgPool = new Pool({ connectionString, max: 10 });
  pgPool.on("error", () => {});
  const logger = new Logger(() => (level, message) => console.log(new Date().toISOString(), level, message));
  const runner = await run({
    pgPool,
    schema: "graphile_worker",
    concurrency: 4,
    pollInterval: 500,
    noHandleSignals: true,
    logger,
    taskList: { work },
  });
  runner.promise.catch((e) => {
    console.log("stopped by itself", e);
    process.exit(1);
  });
  process.stdin.resume();
  process.stdin.on("end", async () => {
    await runner.stop();
    process.exit(0);
  });
})().catch((e) => {
  console.log("could not start", e);
  process.exit(1);
});
