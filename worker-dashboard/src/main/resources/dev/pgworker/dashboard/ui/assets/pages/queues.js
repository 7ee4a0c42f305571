/* Named queues, whose jobs run one at a time. */

import { html } from "../lib.js";
import { Link, useRoute } from "../router.js";
import { useApi } from "../session.js";
import { useResource } from "../resource.js";
import { useKeys } from "../keys.js";
import { number } from "../text.js";
import { Menu } from "../components/button.js";
import { Paused, pauseItem, usePauses } from "../components/pauses.js";
import { Empty, Loaded, Page, RefreshButton } from "../components/page.js";
import { Pager } from "../components/pager.js";
import { useRowKeys } from "../components/rows.js";
import { Cell, Row, Table } from "../components/table.js";
import { OneLine, Since, State } from "../components/words.js";

const COLUMNS = [
  { id: "queue", label: "Queue" },
  { id: "state", label: "State" },
  { id: "waiting", label: "Waiting", class: "num" },
  { id: "since", label: "Job running for", class: "num" },
  { id: "worker", label: "Worker" },
  { id: "more", label: "Actions", hidden: true },
];

export function QueuesPage() {
  const api = useApi();
  const after = useRoute().query.get("after");
  const list = useResource(JSON.stringify([api.base, "queues", after]), (signal) =>
    api.get("queues", { after, limit: 100 }, signal),
  );
  const pauses = usePauses(list.reload);
  useKeys({ r: list.reload });
  useRowKeys();
  return html`<${Page} title="Queues" actions=${html`<${RefreshButton} resource=${list} />`}>
    <p class="lead">Jobs of a named queue run one at a time, in order. Jobs without a queue run in parallel and are not listed here.</p>
    <${Loaded} resource=${list} lines=${8}>
      ${(data) => html`
        ${
          data.queues.length === 0
            ? html`<${Empty} icon="queues" title="There are no named queues">
            <p>A job gets one by <code>JobSpec.queueName</code>, or by <code>queue_name</code> in SQL.</p></${Empty}>`
            : html`<${Table} label="Queues" columns=${COLUMNS} class="queues-table">
            ${data.queues.map((queue) => html`<${QueueRow} key=${queue.name} queue=${queue} pauses=${pauses} />`)}</${Table}>`
        }
        <${Pager} after=${after} next=${data.next} />
      `}
    </${Loaded}>
  </${Page}>`;
}

function QueueRow({ queue, pauses }) {
  return html`<${Row} data-id=${queue.name}>
    <${Cell} id="queue"><${Link} to=${["jobs"]} query=${{ queue: queue.name }} class="row-link">
      <${OneLine} text=${queue.name} class="strong" /></${Link}></${Cell}>
    <${Cell} id="state">${
      queue.pause
        ? html`<${Paused} pause=${queue.pause} />`
        : queue.busy
          ? html`<${State} state="running" word="busy" />`
          : queue.waiting > 0
            ? html`<${State} state="ready" />`
            : html`<span class="muted">idle</span>`
    }</${Cell}>
    <${Cell} id="waiting" label="Waiting" class="num">${number(queue.waiting)}${queue.waitingMore && "+"}</${Cell}>
    <${Cell} id="since" label="Job running for" class="num">${queue.runningSince && html`<${Since} iso=${queue.runningSince} />`}</${Cell}>
    <${Cell} id="worker" label="Worker">${queue.lockedBy && html`<${OneLine} text=${queue.lockedBy} class="mono" />`}</${Cell}>
    <${Cell} id="more"><${Menu} label="Actions for this queue" items=${[pauseItem(pauses, "queue", queue.name, queue.pause)]} /></${Cell}>
  </${Row}>`;
}
