/* Jobs that run at the moment. */

import { html } from "../lib.js";
import { Link } from "../router.js";
import { OneLine, Progress, Since } from "./words.js";
import { Cell, Row, Table } from "./table.js";

const COLUMNS = [
  { id: "task", label: "Job" },
  { id: "progress", label: "Progress" },
  { id: "worker", label: "Worker" },
  { id: "since", label: "Running for", class: "num" },
];

export function RunningTable({ running, showWorker = true }) {
  const columns = showWorker ? COLUMNS : COLUMNS.filter((column) => column.id !== "worker");
  return html`<${Table} label="Running jobs" columns=${columns} class="running-table">
    ${running.map(
      ({ job, startedAt, workerId, progress }) => html`<${Row} key=${job.id}>
        <${Cell} id="task"><${Link} to=${["jobs", job.id]} class="row-link"><${OneLine} text=${job.task} />
        </${Link}><span class="sub muted num">#${job.id}</span></${Cell}>
        <${Cell} id="progress">${
          progress
            ? html`<${Progress} progress=${progress} label=${`Progress of job ${job.id}`} />`
            : html`<span class="muted">–</span>`
        }</${Cell}>
        ${showWorker && html`<${Cell} id="worker" label="Worker"><${OneLine} text=${workerId} class="mono" /></${Cell}>`}
        <${Cell} id="since" label="For" class="num"><${Since} iso=${startedAt} /></${Cell}>
      </${Row}>`,
    )}
  </${Table}>`;
}
