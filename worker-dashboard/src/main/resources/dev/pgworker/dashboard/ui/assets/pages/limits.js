/* Limits of the jobs that run at once or start in a period, and how much of them is used. */

import { html } from "../lib.js";
import { Link, useRoute } from "../router.js";
import { useApi } from "../session.js";
import { useResource } from "../resource.js";
import { useKeys } from "../keys.js";
import { number } from "../text.js";
import { duration } from "../time.js";
import { Empty, Loaded, Notice, Page, RefreshButton } from "../components/page.js";
import { Pager } from "../components/pager.js";
import { useRowKeys } from "../components/rows.js";
import { Cell, Row, Table } from "../components/table.js";
import { OneLine, Time } from "../components/words.js";

const COLUMNS = [
  { id: "limit", label: "Limit" },
  { id: "tasks", label: "Tasks" },
  { id: "allows", label: "Allows" },
  { id: "used", label: "Permits used", class: "num" },
  { id: "waiting", label: "Waiting", class: "num" },
];

const VALUES = [
  { id: "value", label: "Value" },
  { id: "used", label: "Permits used", class: "num" },
  { id: "waiting", label: "Waiting", class: "num" },
  { id: "tokens", label: "May start now", class: "num" },
  { id: "next", label: "Next start", class: "num" },
];

/* Counts end there. */
const MOST = 10000;

export function LimitsPage() {
  const api = useApi();
  const list = useResource(JSON.stringify([api.base, "limits"]), (signal) => api.get("limits", {}, signal));
  useKeys({ r: list.reload });
  useRowKeys();
  return html`<${Page} title="Limits" actions=${html`<${RefreshButton} resource=${list} />`}>
    <p class="lead">Limits hold across all workers: of the jobs that run at the same time, or of those that start in a period.</p>
    <${Loaded} resource=${list} lines=${6}>
      ${(data) => data.limits.length === 0
        ? html`<${Empty} icon="limits" title="There are no limits">
          <p>Annotate a handler with <code>@ConcurrencyLimit</code> or <code>@RateLimit</code>, or set <code>worker.limits</code>.</p></${Empty}>`
        : html`<${Table} label="Limits" columns=${COLUMNS} class="limits-table">
          ${data.limits.map((limit) => html`<${LimitRow} key=${limit.name} limit=${limit} />`)}</${Table}>`}
    </${Loaded}>
  </${Page}>`;
}

function allows(limit) {
  const per = limit.per ? ` per ${limit.per}` : "";
  return limit.maxRunning !== null ? `${number(limit.maxRunning)} running${per}`
    : `${number(limit.maxStarts)} starts in ${duration(limit.periodMs)}, burst ${number(limit.burst)}${per && "," + per}`;
}

function phase(limit) {
  return limit.phase === "applying" ? "is being put into effect" : limit.phase === "removing" ? "is being removed" : null;
}

function count(value) {
  return html`${number(value)}${value >= MOST && "+"}`;
}

function LimitRow({ limit }) {
  const state = phase(limit);
  return html`<${Row} data-id=${limit.name}>
    <${Cell} id="limit"><${Link} to=${["limits", "limit"]} query=${{ name: limit.name }} class="row-link">
      <${OneLine} text=${limit.name} class="strong" /></${Link}>${state && html` <span class="flag">${state}</span>`}</${Cell}>
    <${Cell} id="tasks" label="Tasks"><${OneLine} text=${limit.tasks.join(", ")} /></${Cell}>
    <${Cell} id="allows" label="Allows"><${OneLine} text=${allows(limit)} /></${Cell}>
    <${Cell} id="used" label="Permits used" class="num">${limit.maxRunning === null
      ? html`<span class="muted">–</span>` : count(limit.used ?? 0)}</${Cell}>
    <${Cell} id="waiting" label="Waiting" class="num">${count(limit.waiting ?? 0)}</${Cell}>
  </${Row}>`;
}

export function LimitPage({ name }) {
  const api = useApi();
  const after = useRoute().query.get("after");
  const one = useResource(JSON.stringify([api.base, "limit", name, after]),
    (signal) => api.get("limits/one", { name, after }, signal));
  useKeys({ r: one.reload });
  useRowKeys();
  return html`<${Page} title="Limit" actions=${html`<${RefreshButton} resource=${one} />`}>
    <${Loaded} resource=${one} lines=${6}>
      ${(data) => html`
        <p class="lead"><${OneLine} text=${data.name} class="strong" />: <${OneLine} text=${allows(data)} />, for
          <${OneLine} text=${data.tasks.join(", ")} /></p>
        ${phase(data) && html`<${Notice}><p>This limit ${phase(data)}. Until that is done, its tasks wait.</p></${Notice}>`}
        ${data.values.length === 0
          ? html`<${Empty} icon="limits" title="Nothing has used this limit lately" />`
          : html`<${Table} label="Values" columns=${VALUES} class="limit-values-table">
            ${data.values.map((value) => html`<${ValueRow} key=${value.value} value=${value} />`)}</${Table}>`}
        <${Pager} after=${after} next=${data.next} />
      `}
    </${Loaded}>
  </${Page}>`;
}

function ValueRow({ value }) {
  return html`<${Row} data-id=${value.value}>
    <${Cell} id="value">${value.value === "" ? html`<span class="muted">all, or without the field</span>`
      : html`<${OneLine} text=${value.value} class="strong" />`}</${Cell}>
    <${Cell} id="used" label="Permits used" class="num">${value.tokens === null ? count(value.used)
      : html`<span class="muted">–</span>`}</${Cell}>
    <${Cell} id="waiting" label="Waiting" class="num">${count(value.waiting)}</${Cell}>
    <${Cell} id="tokens" label="May start now" class="num">${value.tokens === null
      ? html`<span class="muted">–</span>` : number(Math.floor(value.tokens))}</${Cell}>
    <${Cell} id="next" label="Next start" class="num">${value.nextStart && html`<${Time} iso=${value.nextStart} />`}</${Cell}>
  </${Row}>`;
}
