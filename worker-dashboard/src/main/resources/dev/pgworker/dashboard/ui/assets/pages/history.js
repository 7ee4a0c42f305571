/* Runs that have ended. */

import { classes, html } from "../lib.js";
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
import { SavedFilters } from "../components/saved-filters.js";
import { useRowKeys } from "../components/rows.js";
import { Cell, Row, Table } from "../components/table.js";
import { OneLine, PayloadPreview, State, Time } from "../components/words.js";

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
  const off = list.data !== null && !list.data.status.enabled && list.data.entries.length === 0;
  return html`<${Page} title="History" actions=${html`<${RefreshButton} resource=${list} />`}>
    ${
      off
        ? html`<${Off} />`
        : html`
        <${StateTabs} label="Outcome" path=${["history"]} query=${filters} name="outcome" values=${OUTCOMES} />
        <${FilterBar} filters=${filters} fields=${["task", "queue", "key"]} timeWord="Ended"
          searchLabel="Search key, error, result"><${SavedFilters} page="history" query=${filters} /></${FilterBar}>
        <${Loaded} resource=${list} lines=${12}>
          ${(data) => html`<${List} data=${data} filters=${filters} after=${after} />`}
        </${Loaded}>`
    }
  </${Page}>`;
}

function Off() {
  return html`<${Empty} icon="history" title="The history is switched off">
    <p>A job that succeeds is deleted. To keep what finished, failed and was removed, with durations, errors and results, set</p>
    <pre><code>pgworker.history.enabled=true</code></pre>
    <p>in the applications that run workers, and restart them.</p>
  </${Empty}>`;
}

function List({ data, filters, after }) {
  const shown = columnsFor(data.entries);
  const columns = COLUMNS.filter((column) => shown[column.id] ?? true);
  return html`
    <div class="list-line"><p>${statusText(data.status)}</p></div>
    ${
      data.entries.length === 0
        ? html`<${NoEntries} filters=${filters} limited=${data.limited} />`
        : html`<${Table} label="History" columns=${columns}
          class=${classes("jobs-table history-table", !shown.error && "no-error")}>
          ${data.entries.map(
            (entry) => html`<${EntryRow} key=${entry.jobId + entry.endedAt} entry=${entry} shown=${shown} />`,
          )}
        </${Table}>`
    }
    <${Pager} after=${after} next=${data.next}>
      ${data.limited && "Only the newest entries were searched, because no index serves the filter. “Next” searches further."}
    </${Pager}>
  `;
}

/* Columns that would be empty are left out, so that the others have room. */
function columnsFor(entries) {
  return {
    queue: entries.some((entry) => entry.queue !== null),
    key: entries.some((entry) => entry.key !== null),
    error: entries.some((entry) => entry.error !== null || entry.result),
  };
}

function NoEntries({ filters, limited }) {
  const filtered = Object.keys(filters).length > 0;
  return html`<${Empty} icon="search" title=${filtered ? "Nothing in the history matches" : "Nothing has ended yet"}>
    ${limited && html`<p>Only the newest entries were searched; continue with “Next”, or narrow the filter.</p>`}
  </${Empty}>`;
}

function statusText(status) {
  const kept = `${number(status.entries)} entries, ${bytes(status.bytes)}`;
  const limits = [
    status.keepForMs && `for ${coarse(status.keepForMs)}`,
    status.keepMost && `at most ${number(status.keepMost)}`,
  ].filter(Boolean);
  const off = status.enabled ? "" : " Switched off: nothing is added.";
  return (limits.length > 0 ? `${kept}; kept ${limits.join(", ")}.` : kept + ".") + off;
}

function EntryRow({ entry, shown }) {
  return html`<${Row} data-id=${entry.jobId}>
    <${Cell} id="state"><${State} state=${entry.outcome} /></${Cell}>
    <${Cell} id="id" class="num"><${Link} to=${["jobs", entry.jobId]} class="row-link">${entry.jobId}</${Link}></${Cell}>
    <${Cell} id="task"><${OneLine} text=${entry.task} class="strong" /><${PayloadPreview} text=${entry.payload} /></${Cell}>
    ${shown.queue && html`<${Cell} id="queue" label="Queue">${entry.queue && html`<${OneLine} text=${entry.queue} />`}</${Cell}>`}
    ${shown.key && html`<${Cell} id="key" label="Key">${entry.key && html`<${OneLine} text=${entry.key} class="mono" />`}</${Cell}>`}
    ${shown.error && html`<${Cell} id="error"><${ErrorOrResult} entry=${entry} /></${Cell}>`}
    <${Cell} id="attempts" label="Attempt" class="num">${entry.attempt} <span class="muted">/ ${entry.maxAttempts}</span></${Cell}>
    <${Cell} id="took" label="Took" class="num">${duration(entry.tookMs)}</${Cell}>
    <${Cell} id="worker" label="Worker">${entry.workerId && html`<${OneLine} text=${entry.workerId} class="mono" />`}</${Cell}>
    <${Cell} id="due" label="Ended" class="num"><${Time} iso=${entry.endedAt} /></${Cell}>
  </${Row}>`;
}

function ErrorOrResult({ entry }) {
  if (entry.error !== null) {
    return html`<${OneLine} text=${headline(entry.error)} class="muted" />`;
  }
  return entry.result ? html`<${OneLine} text=${entry.result} class="mono muted" />` : null;
}
