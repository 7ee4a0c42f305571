/* Recurring jobs of crontabs: a table whose rows unfold. */

import { html, useState } from "../lib.js";
import { Link } from "../router.js";
import { duration } from "../time.js";
import { Icon } from "./icons.js";
import { ActionButton } from "./button.js";
import { Confirm, showDialog } from "./dialog.js";
import { Facts } from "./facts.js";
import { HiddenJson, JsonView } from "./json-view.js";
import { Cell, Row, Table } from "./table.js";
import { toast } from "./toast.js";
import { Foreign, FullTime, OneLine, State, Time } from "./words.js";

const COLUMNS = [
  { id: "name", label: "Recurring job" },
  { id: "schedule", label: "Schedule" },
  { id: "next", label: "Next", class: "num" },
  { id: "last", label: "Last", class: "num" },
  { id: "runs", label: "Last runs" },
  { id: "do", label: "Actions", hidden: true },
];

export function CrontabTable({ items, api, reload }) {
  return html`<${Table} label="Recurring jobs of crontabs" columns=${COLUMNS} class="recurring-table">
    ${items.map((item) => html`<${Item} key=${item.identifier} item=${item} api=${api} reload=${reload} />`)}
  </${Table}>`;
}

function Item({ item, api, reload }) {
  const [open, setOpen] = useState(false);
  return html`
    <${Row} data-id=${item.identifier} class=${item.pausedSince && "paused"}>
      <${Cell} id="name">
        <button type="button" class="row-link fold" aria-expanded=${open ? "true" : "false"} onClick=${() => setOpen(!open)}>
          <${Icon} name=${open ? "down" : "chevron"} size=${12} /><${OneLine} text=${item.identifier} class="strong" />
        </button>
        ${
          item.task &&
          item.task !== item.identifier &&
          html`<span class="sub"><${OneLine} text=${item.task} class="muted" /></span>`
        }
      </${Cell}>
      <${Cell} id="schedule" label="Schedule">
        ${item.words ? html`<${OneLine} text=${item.words} />` : html`<span class="muted">unknown to this instance</span>`}
        ${item.pattern && html`<span class="sub"><code><${Foreign} text=${item.pattern} /></code></span>`}
      </${Cell}>
      <${Cell} id="next" label="Next" class="num">${
        item.pausedSince
          ? html`<span class="state is-paused"><${Icon} name="pause" /><span class="word">paused</span></span>`
          : html`<${Time} iso=${item.next[0] ?? null} />`
      }</${Cell}>
      <${Cell} id="last" label="Last" class="num">${
        item.registered
          ? html`<${Time} iso=${item.lastExecution} />`
          : html`<span class="muted">not registered yet</span>`
      }</${Cell}>
      <${Cell} id="runs" label="Last runs"><${RunDots} runs=${item.lastRuns} /></${Cell}>
      <${Cell} id="do"><div class="row-actions"><${CrontabActions} item=${item} api=${api} reload=${reload} /></div></${Cell}>
    </${Row}>
    ${
      open &&
      html`<${Row} class="detail-row">
      <td role="cell" class="c-detail" colspan=${COLUMNS.length}><${CrontabDetails} item=${item} /></td></${Row}>`
    }
  `;
}

/* The last runs as symbols, the newest first; each leads to its job. */
function RunDots({ runs }) {
  if (runs.length === 0) {
    return html`<span class="muted">–</span>`;
  }
  return html`<span class="run-dots">${runs.map(
    (run) =>
      html`<${Link} key=${run.jobId + run.endedAt} to=${["jobs", run.jobId]} class=${"is-" + run.outcome}
    aria-label=${`Job ${run.jobId} ${run.outcome}`} data-tip=${`${run.outcome}, took ${duration(run.tookMs)}`}>
      <${Icon} name=${run.outcome} /></${Link}>`,
  )}</span>`;
}

function useItemAction(api, item, reload) {
  return async (action) => {
    const answer = await api.post("crontab/" + action, { identifier: item.identifier });
    toast({ text: answer.text, link: answer.jobId ? { to: ["jobs", answer.jobId], text: "Show" } : undefined });
    reload(action);
  };
}

export function CrontabActions({ item, api, reload }) {
  const run = useItemAction(api, item, reload);
  const tell = (action) => run(action).catch((error) => toast({ text: error.message, level: "error" }));
  const ask = (action, title, text) =>
    showDialog(
      ({ close }) =>
        html`<${Confirm} title=${title} action=${action[0].toUpperCase() + action.slice(1)} danger=${action === "forget"}
      run=${() => run(action)} close=${close}><p>${text}</p></${Confirm}>`,
    );
  const pause = () =>
    ask(
      "pause",
      "Pause this recurring job?",
      "No jobs are added until it is resumed, by any application. Runs missed in the meantime are not caught up.",
    );
  const forget = () =>
    ask(
      "forget",
      "Forget this recurring job?",
      "Its last execution and whether it is paused are deleted. An application that still has it begins anew with it.",
    );
  return html`
    ${
      item.own
        ? html`<${ActionButton} action="cron" icon="play" onClick=${() => tell("trigger")}>Run now</${ActionButton}>`
        : html`<${ActionButton} action="schedule" icon="trash" onClick=${forget}>Forget</${ActionButton}>`
    }
    ${
      item.pausedSince
        ? html`<${ActionButton} action="cron" icon="refresh" onClick=${() => tell("resume")}>Resume</${ActionButton}>`
        : html`<${ActionButton} action="cron" icon="pause" onClick=${pause}>Pause</${ActionButton}>`
    }`;
}

export function CrontabDetails({ item }) {
  return html`<div class="detail">
    <${Facts} items=${[
      ["Time zone", item.timezone],
      ["Known since", item.knownSince && html`<${FullTime} iso=${item.knownSince} />`],
      ["Paused since", item.pausedSince && html`<${FullTime} iso=${item.pausedSince} />`],
      ["Last added", item.lastExecution && html`<${FullTime} iso=${item.lastExecution} />`],
    ]} />
    <div>
      <h2>Next runs</h2>
      <${Upcoming} times=${item.next} />
    </div>
    <div>
      <h2>Last runs</h2>
      ${
        item.lastRuns.length === 0
          ? html`<p class="muted">${item.lastRunsReason ?? "None is in the history."}</p>`
          : html`<ul class="lines">${item.lastRuns.map(
              (run) =>
                html`<li key=${run.jobId + run.endedAt}>
            <${State} state=${run.outcome} /> <${Link} to=${["jobs", run.jobId]}>#${run.jobId}
            </${Link}> <span class="muted num">${duration(run.tookMs)}</span> <${Time} iso=${run.endedAt} /></li>`,
            )}</ul>`
      }
    </div>
    ${item.payload && html`<div class="detail-wide"><h2>Payload</h2><${JsonView} text=${item.payload} /></div>`}
    ${item.payloadHidden && html`<div class="detail-wide"><h2>Payload</h2><${HiddenJson} what="Payloads" /></div>`}
  </div>`;
}

/** Times of the future, one on each line. */
export function Upcoming({ times }) {
  return times.length === 0
    ? html`<p class="muted">none</p>`
    : html`<ul class="lines">${times.map((iso) => html`<li key=${iso}><${FullTime} iso=${iso} /></li>`)}</ul>`;
}
