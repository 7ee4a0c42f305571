/* Runs that have ended. */

import { html } from "../lib.js";
import { Link, useRoute } from "../router.js";
import { useApi } from "../session.js";
import { useResource } from "../resource.js";
import { useKeys } from "../keys.js";
import { historyFilters, OUTCOMES } from "../filters.js";
import { bytes, headline, number } from "../text.js";
import { coarse, duration } from "../time.js";
import { FilterBar } from "../components/filter-bar.js";
import { StateTabs } from "../components/state-tabs.js";
import { Empty, Loaded, Page, RefreshButton } from "../components/page.js";
import { Pager } from "../components/pager.js";
import { useRowKeys } from "../components/rows.js";
import { Cell, Row, Table } from "../components/table.js";
import { OneLine, State, Time } from "../components/words.js";

const PAGE_SIZE = 50;

const COLUMNS = [
  { id: "state", label: "Outcome" },
  { id: "id", label: "Job", class: "num" },
  { id: "task", label: "Task" },
  { id: "queue", label: "Queue" },
  { id: "key", label: "Key" },
  { id: "error", label: "Error or result" },
  { id: "attempts", label: "Attempt", class: "num" },
  { id: "took", label: "Took", class: "num" },
  { id: "worker", label: "Worker" },
  { id: "due", label: "Ended", class: "num" },
];

export function HistoryPage() {
  const route = useRoute();
  const api = useApi();
  const filters = historyFilters(route.query);
  const after = route.query.get("after");
  const list = useResource(JSON.stringify([api.base, filters, after]), (signal) =>
    api.get("history", { ...filters, limit: PAGE_SIZE, after }, signal),
  );
  useKeys({ r: list.reload });
  useRowKeys();
  return html`<${Page} title="History" actions=${html`<${RefreshButton} resource=${list} />`}>
    <${Loaded} resource=${list} lines=${12}>
      ${(data) => (data.status.enabled || data.entries.length > 0
        ? html`<${List} data=${data} filters=${filters} after=${after} />` : html`<${Off} />`)}
    </${Loaded}>
  </${Page}>`;
}

function Off() {
  return html`<${Empty} icon="history" title="The history is switched off">
    <p>A job that succeeds is deleted. To keep what finished, failed and was removed, with durations, errors and results, set</p>
    <pre><code>worker.history.enabled=true</code></pre>
    <p>in the applications that run workers, and restart them.</p>
  </${Empty}>`;
}

function List({ data, filters, after }) {
  return html`
    <${StateTabs} label="Outcome" path=${["history"]} query=${filters} name="outcome" values=${OUTCOMES} />
    <${FilterBar} filters=${filters} fields=${["task", "queue", "key"]} timeWord="Ended"
      searchLabel="Search key, error, result" />
    <div class="list-line"><p>${statusText(data.status)}</p></div>
    ${data.entries.length === 0
      ? html`<${Empty} icon="search" title=${Object.keys(filters).length > 0 ? "Nothing in the history matches"
        : "Nothing has ended yet"}>
          ${data.limited && html`<p>Only the newest entries were searched; go on with “Next”, or narrow the filter.</p>`}
        </${Empty}>`
      : html`<${Table} label="History" columns=${COLUMNS} class="jobs-table history-table">
          ${data.entries.map((entry) => html`<${EntryRow} key=${entry.jobId + entry.endedAt} entry=${entry} />`)}
        </${Table}>`}
    <${Pager} after=${after} next=${data.next}>
      ${data.limited && "The filter is served by no index: only the newest entries were searched. “Next” searches further."}</${Pager}>
  `;
}

function statusText(status) {
  const kept = `${number(status.entries)} entries, ${bytes(status.bytes)}`;
  const limits = [status.keepForMs && `for ${coarse(status.keepForMs)}`,
    status.keepMost && `at most ${number(status.keepMost)}`].filter(Boolean);
  const off = status.enabled ? "" : " Switched off: nothing is added.";
  return (limits.length > 0 ? `${kept}; kept ${limits.join(", ")}.` : kept + ".") + off;
}

function EntryRow({ entry }) {
  return html`<${Row} data-id=${entry.jobId}>
    <${Cell} id="state"><${State} state=${entry.outcome} /></${Cell}>
    <${Cell} id="id" class="num"><${Link} to=${["jobs", entry.jobId]} class="row-link">${entry.jobId}</${Link}></${Cell}>
    <${Cell} id="task"><${OneLine} text=${entry.task} class="strong" /></${Cell}>
    <${Cell} id="queue" label="Queue">${entry.queue && html`<${OneLine} text=${entry.queue} />`}</${Cell}>
    <${Cell} id="key" label="Key">${entry.key && html`<${OneLine} text=${entry.key} class="mono" />`}</${Cell}>
    <${Cell} id="error">${entry.error !== null ? html`<${OneLine} text=${headline(entry.error)} class="muted" />`
      : entry.result && html`<${OneLine} text=${entry.result} class="mono muted" />`}</${Cell}>
    <${Cell} id="attempts" label="Attempt" class="num">${entry.attempt} <span class="muted">/ ${entry.maxAttempts}
    </span></${Cell}>
    <${Cell} id="took" label="Took" class="num">${duration(entry.tookMs)}</${Cell}>
    <${Cell} id="worker" label="Worker">${entry.workerId && html`<${OneLine} text=${entry.workerId} class="mono" />`}</${Cell}>
    <${Cell} id="due" label="Ended" class="num"><${Time} iso=${entry.endedAt} /></${Cell}>
  </${Row}>`;
}
