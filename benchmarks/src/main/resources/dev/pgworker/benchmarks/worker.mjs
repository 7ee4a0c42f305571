// The process of graphile-worker: does what the lines of its standard input say, as ContenderProcess tells.
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [nodeDir, connectionString, mode] = process.argv.slice(2);
const require = createRequire(join(nodeDir, "index.js"));
const load = (name) => import(pathToFileURL(require.resolve(name)).href);
const { Logger, makeWorkerUtils, run } = await load("graphile-worker");
const { default: pg } = await load("pg");

const logger = new Logger(() => (level, message) => {
  if (level === "error" || level === "warning") console.error(`node ${level}: ${message}`);
});
const batching = {
  localQueue: { size: 500, refetchDelay: { durationMs: 10 } },
  completeJobBatchDelay: 0,
  failJobBatchDelay: 0,
};
const preset = { worker: { concurrentJobs: 24, pollInterval: 2000, ...(mode === "batched" ? batching : {}) } };

const pgPool = new pg.Pool({ connectionString, max: 30 });
pgPool.on("error", () => {});
pgPool.on("connect", (client) => client.on("error", () => {}));
const utils = await makeWorkerUtils({ pgPool, logger });

const sleep = (millis) => new Promise((resolve) => setTimeout(resolve, millis));
const nowMicros = () => Math.round((performance.timeOrigin + performance.now()) * 1000);
const nothing = { stamp: 0, millis: 0 };

let ran = 0;
let waits = [];
let runner = null;
let loading = null;

async function noop(payload) {
  if (payload.stamp > 0) waits.push([payload.stamp, nowMicros() - payload.stamp]);
  if (payload.millis > 0) await sleep(payload.millis);
  ran++;
}

const addAll = (count) => utils.addJobs(Array.from({ length: count }, () => ({ identifier: "noop", payload: nothing })));

async function seconds(work) {
  const start = performance.now();
  await work();
  return (performance.now() - start) / 1000;
}

function startLoad(rate) {
  const state = { added: 0, ending: false };
  state.done = (async () => {
    const start = performance.now();
    while (!state.ending) {
      await sleep(10);
      const due = Math.floor(((performance.now() - start) / 1000) * rate);
      const missing = Math.min(due - state.added, Math.max(1, Math.floor(rate / 10)));
      if (missing > 0) {
        await addAll(missing);
        state.added += missing;
      }
    }
  })();
  return state;
}

const commands = {
  create: () => utils.migrate(),
  start: async () => {
    runner = await run({ pgPool, logger, noHandleSignals: true, preset, taskList: { noop } });
  },
  stop: async () => {
    await runner?.stop();
    runner = null;
  },
  ran: () => ran,
  waits: () => {
    const taken = waits;
    waits = [];
    return taken;
  },
  heap: () => process.memoryUsage().heapUsed,
  add: (count) =>
    seconds(async () => {
      for (let i = 0; i < count; i++) await utils.addJob("noop", nothing);
    }),
  bulk: (count, atOnce) =>
    seconds(async () => {
      for (let left = count; left > 0; left -= atOnce) await addAll(Math.min(left, atOnce));
    }),
  ping: async (count, gap, lead) => {
    const client = await pgPool.connect();
    const commits = [];
    for (let i = 0; i < count; i++) {
      await sleep(gap / 2 + Math.random() * gap);
      // Dates know milliseconds only.
      const stamp = lead ? (Math.ceil(nowMicros() / 1000) + lead) * 1000 : nowMicros();
      // The library's own call knows no transaction of its caller.
      await client.query("begin");
      await client.query({
        name: "ping",
        text: "select * from graphile_worker.add_job($1, payload := $2, run_at := $3)",
        values: ["noop", { stamp, millis: 0 }, lead ? new Date(stamp / 1000) : null],
      });
      const commit = nowMicros();
      await client.query("commit");
      commits.push([stamp, commit - stamp]);
    }
    client.release();
    return commits;
  },
  load: (rate) => {
    loading = startLoad(rate);
  },
  added: () => loading?.added ?? 0,
  unload: async () => {
    const ending = loading;
    loading = null;
    if (!ending) return 0;
    ending.ending = true;
    await ending.done;
    return ending.added;
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const [name, ...numbers] = line.split(" ");
  const answer = await commands[name](...numbers.map(Number));
  process.stdout.write(`=${JSON.stringify(answer ?? 0)}\n`);
}
await runner?.stop();
process.exit(0);
