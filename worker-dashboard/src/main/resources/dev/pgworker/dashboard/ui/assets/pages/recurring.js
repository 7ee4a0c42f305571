/* Recurring jobs: their schedule in words, the next and the last runs. */

import { html, useState } from "../lib.js";
import { Link } from "../router.js";
import { useApi } from "../session.js";
import { useResource } from "../resource.js";
import { useKeys } from "../keys.js";
import { duration } from "../time.js";
import { Icon } from "../components/icons.js";
import { ActionButton } from "../components/button.js";
import { Confirm, showDialog } from "../components/dialog.js";
import { Facts } from "../components/facts.js";
import { JsonView } from "../components/json-view.js";
import { Empty, Loaded, Page, RefreshButton } from "../components/page.js";
import { useRowKeys } from "../components/rows.js";
import { Cell, Row, Table } from "../components/table.js";
import { toast } from "../components/toast.js";
import { Foreign, FullTime, OneLine, State, Time } from "../components/words.js";

const COLUMNS = [
  { id: "name", label: "Recurring job" },
  { id: "schedule", label: "Schedule" },
  { id: "next", label: "Next", class: "num" },
  { id: "last", label: "Last", class: "num" },
  { id: "runs", label: "Last runs" },
  { id: "do", label: "Actions", hidden: true },
];

export function RecurringPage() {
  const api = useApi();
  const list = useResource(api.base + "crontab", (signal) => api.get("crontab", {}, signal));
  useKeys({ r: list.reload });
  useRowKeys();
  return html`<${Page} title="Recurring jobs" actions=${html`<${RefreshButton} resource=${list} />`}>
    <${Loaded} resource=${list} lines=${6}>
      ${(data) => data.items.length === 0
        ? html`<${Empty} icon="recurring" title="There are no recurring jobs">
          <p>Put a crontab into <code>worker.crontab</code>, or annotate a handler with its schedule.</p></${Empty}>`
        : html`<${Table} label="Recurring jobs" columns=${COLUMNS} class="recurring-table">
            ${data.items.map((item) => html`<${Item} key=${item.identifier} item=${item} api=${api} reload=${list.reload} />`)}
          </${Table}>`}
    </${Loaded}>
  </${Page}>`;
}

function Item({ item, api, reload }) {
  const [open, setOpen] = useState(false);
  return html`
    <${Row} data-id=${item.identifier} class=${item.pausedSince && "paused"}>
      <${Cell} id="name">
        <button type="button" class="row-link fold" aria-expanded=${open ? "true" : "false"} onClick=${() => setOpen(!open)}>
          <${Icon} name=${open ? "down" : "chevron"} size=${12} /><${OneLine} text=${item.identifier} class="strong" />
        </button>
        ${item.task && item.task !== item.identifier &&
          html`<span class="sub"><${OneLine} text=${item.task} class="muted" /></span>`}
      </${Cell}>
      <${Cell} id="schedule" label="Schedule">
        ${item.words ? html`<${OneLine} text=${item.words} />` : html`<span class="muted">not known to this application</span>`}
        ${item.pattern && html`<span class="sub"><code><${Foreign} text=${item.pattern} /></code></span>`}
      </${Cell}>
      <${Cell} id="next" label="Next" class="num">${item.pausedSince
        ? html`<span class="state is-paused"><${Icon} name="pause" /><span class="word">paused</span></span>`
        : html`<${Time} iso=${item.next[0] ?? null} />`}</${Cell}>
      <${Cell} id="last" label="Last" class="num"><${Time} iso=${item.lastExecution} /></${Cell}>
      <${Cell} id="runs" label="Last runs"><${RunDots} runs=${item.lastRuns} /></${Cell}>
      <${Cell} id="do"><${ItemActions} item=${item} api=${api} reload=${reload} /></${Cell}>
    </${Row}>
    ${open && html`<${Row} class="detail-row">
      <td role="cell" class="c-detail" colspan=${COLUMNS.length}><${Details} item=${item} /></td></${Row}>`}
  `;
}

/* The last runs as symbols, the newest first; each leads to its job. */
function RunDots({ runs }) {
  if (runs.length === 0) {
    return html`<span class="muted">–</span>`;
  }
  return html`<span class="run-dots">${runs.map((run) =>
    html`<${Link} key=${run.jobId + run.endedAt} to=${["jobs", run.jobId]} class=${"is-" + run.outcome}
    aria-label=${`Job ${run.jobId} ${run.outcome}`} data-tip=${`${run.outcome}, took ${duration(run.tookMs)}`}>
      <${Icon} name=${run.outcome} /></${Link}>`)}</span>`;
}

function useItemAction(api, item, reload) {
  return async (action) => {
    const answer = await api.post("crontab/" + action, { identifier: item.identifier });
    toast({ text: answer.text, link: answer.jobId ? { to: ["jobs", answer.jobId], text: "Show" } : undefined });
    reload();
  };
}

function ItemActions({ item, api, reload }) {
  const run = useItemAction(api, item, reload);
  const tell = (action) => run(action).catch((error) => toast({ text: error.message, level: "error" }));
  const foreign = item.own ? null : "The schedule belongs to another application, which must trigger it.";
  const askPause = () => showDialog(({ close }) =>
    html`<${Confirm} title="Pause this recurring job?" action="Pause" run=${() => run("pause")} close=${close}>
    <p>No jobs are added until it is resumed, by any application. What was missed in the meantime is not made up for.</p>
  </${Confirm}>`);
  return html`<div class="row-actions">
    <${ActionButton} action="cron" icon="play" whyOff=${foreign} onClick=${() => tell("trigger")}>Run now</${ActionButton}>
    ${item.pausedSince
      ? html`<${ActionButton} action="cron" icon="refresh" onClick=${() => tell("resume")}>Resume</${ActionButton}>`
      : html`<${ActionButton} action="cron" icon="pause" onClick=${askPause}>Pause</${ActionButton}>`}
  </div>`;
}

function Details({ item }) {
  return html`<div class="detail">
    <${Facts} items=${[
      ["Time zone", item.timezone],
      ["Known since", item.knownSince && html`<${FullTime} iso=${item.knownSince} />`],
      ["Paused since", item.pausedSince && html`<${FullTime} iso=${item.pausedSince} />`],
      ["Last added", item.lastExecution && html`<${FullTime} iso=${item.lastExecution} />`],
    ]} />
    <div>
      <h2>Next runs</h2>
      ${item.next.length === 0 ? html`<p class="muted">none</p>`
        : html`<ul class="lines">${item.next.map((iso) => html`<li key=${iso}><${FullTime} iso=${iso} /></li>`)}</ul>`}
    </div>
    <div>
      <h2>Last runs</h2>
      ${item.lastRuns.length === 0 ? html`<p class="muted">${item.lastRunsReason ?? "None is in the history."}</p>`
        : html`<ul class="lines">${item.lastRuns.map((run) =>
          html`<li key=${run.jobId + run.endedAt}>
            <${State} state=${run.outcome} /> <${Link} to=${["jobs", run.jobId]}>#${run.jobId}
            </${Link}> <span class="muted num">${duration(run.tookMs)}</span> <${Time} iso=${run.endedAt} /></li>`)}</ul>`}
    </div>
    ${item.payload && html`<div class="detail-wide"><h2>Payload</h2><${JsonView} text=${item.payload} /></div>`}
  </div>`;
}
