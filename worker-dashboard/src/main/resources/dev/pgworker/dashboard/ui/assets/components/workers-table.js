/* Workers with their heartbeat. */

import { html } from "../lib.js";
import { number } from "../text.js";
import { Icon } from "./icons.js";
import { OneLine, Time } from "./words.js";
import { Cell, Row, Table } from "./table.js";

/** Workers with what an overview knows better: it is newer, and has the jobs that run if they are not too many. */
export function currentWorkers(workers, overview) {
  const live = new Map(overview.workers.map((worker) => [worker.id, worker]));
  const allRunning = overview.backlog.running <= overview.running.length;
  return workers.map((worker) => ({
    ...worker,
    ...live.get(worker.id),
    running: allRunning ? overview.running.filter((running) => running.workerId === worker.id) : worker.running,
  }));
}

/** Whether a worker's heartbeat is recent: icon and word. */
export function WorkerState({ worker }) {
  return worker.stale
    ? html`<span class="state is-failed"><${Icon} name="warning" /><span class="word">stale</span></span>`
    : html`<span class="state is-succeeded"><${Icon} name="succeeded" /><span class="word">alive</span></span>`;
}

/** How many of its slots a worker uses. */
export function Slots({ worker }) {
  // What the worker holds is told by its last heartbeat; what it runs is newer.
  const used = Math.max(worker.heldJobs ?? 0, worker.running?.length ?? 0);
  if (!worker.concurrency) {
    return html`<span class="num">${number(used)}</span>`;
  }
  return html`<span class="slots">
    <meter min="0" max=${worker.concurrency} value=${Math.min(used ?? 0, worker.concurrency)}
      aria-label=${`${used} of ${worker.concurrency} slots in use`}></meter>
    <span class="num">${number(used)} / ${number(worker.concurrency)}</span>
  </span>`;
}

export function WorkersTable({ workers }) {
  const columns = [
    { id: "worker", label: "Worker" },
    { id: "slots", label: "In use" },
    { id: "heartbeat", label: "Heartbeat" },
    { id: "alive", label: "State" },
  ];
  return html`<${Table} label="Workers" columns=${columns} class="workers-table">
    ${workers.map(
      (worker) => html`<${Row} key=${worker.id}>
        <${Cell} id="worker"><${OneLine} text=${worker.id} class="mono" /></${Cell}>
        <${Cell} id="slots" label="In use"><${Slots} worker=${worker} /></${Cell}>
        <${Cell} id="heartbeat" label="Heartbeat" class="num"><${Time} iso=${worker.lastHeartbeatAt} /></${Cell}>
        <${Cell} id="alive"><${WorkerState} worker=${worker} /></${Cell}>
      </${Row}>`,
    )}
  </${Table}>`;
}
