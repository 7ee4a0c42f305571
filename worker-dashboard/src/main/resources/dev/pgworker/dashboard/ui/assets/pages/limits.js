/* Limits of the jobs that run at once or start in a period, fair shares, and how much of them is used. */

import { html, useEffect } from "../lib.js";
import { Link, useRoute } from "../router.js";
import { useApi } from "../session.js";
import { useResource } from "../resource.js";
import { useKeys } from "../keys.js";
import { allows, phase } from "../limits.js";
import { number, plain } from "../text.js";
import { ActionButton, CopyButton } from "../components/button.js";
import { Facts } from "../components/facts.js";
import { Icon } from "../components/icons.js";
import { NewLimitButton, openDeleteLimit, openLimitForm } from "../components/limit-form.js";
import { Empty, Loaded, Notice, Page, Panel, RefreshButton } from "../components/page.js";
import { Pager } from "../components/pager.js";
import { useRowKeys } from "../components/rows.js";
import { Cell, Row, Table } from "../components/table.js";
import { Foreign, FullTime, OneLine, Time } from "../components/words.js";

const COLUMNS = [
  { id: "limit", label: "Limit" },
  { id: "tasks", label: "Tasks" },
  { id: "allows", label: "Allows" },
  { id: "used", label: "Running", class: "num" },
  { id: "waiting", label: "Waiting", class: "num" },
];

const VALUES = {
  shares: [
    { id: "value", label: "Value" },
    { id: "waiting", label: "Waiting", class: "num" },
  ],
  running: [
    { id: "value", label: "Value" },
    { id: "used", label: "Running", class: "num" },
    { id: "waiting", label: "Waiting", class: "num" },
  ],
  starts: [
    { id: "value", label: "Value" },
    { id: "waiting", label: "Waiting", class: "num" },
    { id: "tokens", label: "May start now", class: "num" },
    { id: "next", label: "Next start", class: "num" },
  ],
};

/* Counts end there. */
const MOST = 10000;

const RELOAD_MS = 5000;
const SOON_MS = 1500;

/* The server tells of jobs, and not of what they use. */
function useReload(resource, unsettled) {
  const { reload } = resource;
  const gone = resource.error?.status === 404;
  const every = unsettled ? SOON_MS : RELOAD_MS;
  useEffect(() => {
    if (gone) {
      return undefined;
    }
    const timer = setInterval(() => !document.hidden && reload(), every);
    return () => clearInterval(timer);
  }, [reload, every, gone]);
}

export function LimitsPage() {
  const api = useApi();
  const list = useResource(JSON.stringify([api.base, "limits"]), (signal) => api.get("limits", {}, signal));
  useReload(list, list.data?.limits.some(phase));
  useKeys({ r: list.reload });
  useRowKeys();
  return html`<${Page} title="Limits" actions=${html`<${RefreshButton} resource=${list} />
    <${NewLimitButton} changed=${list.reload} />`}>
    <p class="lead">A limit applies to all workers together: how many jobs run at the same time, how many start in a period, or what share each value gets.</p>
    <${Loaded} resource=${list} lines=${6}>
      ${(data) =>
        data.limits.length === 0
          ? html`<${Empty} icon="limits" title="There are no limits">
          <p>Annotate a handler with <code>@MaxRunning</code>, <code>@RateLimit</code> or <code>@FairShare</code>, set <code>pgworker.limits</code>, or make
            one here or by <code>JobLimits</code>.</p></${Empty}>`
          : html`<${Table} label="Limits" columns=${COLUMNS} class="limits-table">
          ${data.limits.map((limit) => html`<${LimitRow} key=${limit.name} limit=${limit} />`)}</${Table}>`}
    </${Loaded}>
  </${Page}>`;
}

function count(value) {
  return html`${number(value)}${value >= MOST && "+"}`;
}

function LimitRow({ limit }) {
  const state = phase(limit);
  return html`<${Row} data-id=${limit.name}>
    <${Cell} id="limit"><${Link} to=${["limits", "limit"]} query=${{ name: limit.name }} class="row-link">
      <${OneLine} text=${limit.name} class="strong" /></${Link}>${state && html` <span class="flag">${state}</span>`}${limit.declared && html` <span class="flag">declared</span>`}</${Cell}>
    <${Cell} id="tasks" label="Tasks"><${OneLine} text=${limit.tasks.join(", ")} /></${Cell}>
    <${Cell} id="allows" label="Allows"><${OneLine} text=${allows(limit)} /></${Cell}>
    <${Cell} id="used" label="Running" class="num">${
      limit.kind !== "running" ? html`<span class="muted">–</span>` : count(limit.used ?? 0)
    }</${Cell}>
    <${Cell} id="waiting" label="Waiting" class="num">${count(limit.waiting ?? 0)}</${Cell}>
  </${Row}>`;
}

export function LimitPage({ name }) {
  const api = useApi();
  const after = useRoute().query.get("after");
  const one = useResource(JSON.stringify([api.base, "limit", name, after]), (signal) =>
    api.get("limits/one", { name, after }, signal),
  );
  useReload(one, one.data && phase(one.data));
  useKeys({ r: one.reload });
  useRowKeys();
  const missing = one.error?.status === 404;
  return html`<${Page}
    title=${name === "" ? "Limit" : plain(name, 60)}
    above=${html`<p class="crumbs"><${Link} to=${["limits"]}>Limits</${Link}><${Icon} name="chevron" size=${12} />
      <span>Limit</span><${CopyButton} text=${name} label="Copy name" /></p>`}
    heading=${html`<${Foreign} text=${name} most=${128} />`}
    actions=${html`<${RefreshButton} resource=${one} />
      ${one.data && !missing && html`<${Actions} limit=${one.data} api=${api} reload=${one.reload} />`}`}
  >
    ${
      missing
        ? html`<${Empty} icon="search" title="There is no such limit">
        <p>It has been deleted, or it never existed. Look at all <${Link} to=${["limits"]}>limits</${Link}>.</p></${Empty}>`
        : html`<${Loaded} resource=${one} lines=${8}>${(data) => html`<${Body} limit=${data} after=${after} />`}</${Loaded}>`
    }
  </${Page}>`;
}

/* Why the form is of no use; null if it is. */
function whyNoForm(limit) {
  if (limit.declared) {
    return "An application declares it at its start. Change it there.";
  }
  return limit.phase === "removing" ? "It has been deleted." : null;
}

function Actions({ limit, api, reload }) {
  return html`
    <${ActionButton} action="limit" icon="limits" whyOff=${whyNoForm(limit)} onClick=${() => openLimitForm(limit, reload)}>Change</${ActionButton}>
    <${ActionButton} action="limit" icon="trash" class="danger-text" whyOff=${limit.phase === "removing" ? "It has been deleted." : null}
      onClick=${() => openDeleteLimit(api, limit, reload)}>Delete …</${ActionButton}>`;
}

function Body({ limit, after }) {
  return html`<div class="columns job-columns">
    <div class="stack">
      ${phase(limit) && html`<${Notice}><p>This limit ${phase(limit)}. ${limit.phase === "applying" && "Until that is done, its tasks wait."}</p></${Notice}>`}
      ${limit.valuesError && html`<${Notice}><p>${limit.valuesError}</p></${Notice}>`}
      ${limit.valuesHidden && html`<p class="muted">Values are hidden, because they come from payloads.</p>`}
      ${
        limit.values.length === 0
          ? html`<${Empty} icon="limits" title="Nothing has used this limit lately" />`
          : html`<${Table} label="Values" columns=${VALUES[limit.kind ?? "running"]} class="limit-values-table">
          ${limit.values.map((value) => html`<${ValueRow} key=${value.value} value=${value} limit=${limit} />`)}</${Table}>`
      }
      <${Pager} after=${after} next=${limit.next} />
    </div>
    <aside aria-label="Facts"><${Panel} title="Details" id="details"><${LimitFacts} limit=${limit} /></${Panel}></aside>
  </div>`;
}

function LimitFacts({ limit }) {
  const waiting = (task) =>
    html`<${Link} to=${["jobs"]} query=${{ state: "limited", task }}><${OneLine} text=${task} /></${Link}>`;
  return html`<${Facts} items=${[
    ["Allows", html`<${Foreign} text=${allows(limit)} />`],
    ["Tasks", limit.tasks.map((task) => html`<div key=${task}>${waiting(task)}</div>`)],
    ["Field", limit.per && html`<code><${Foreign} text=${limit.per} /></code>`],
    ["Created by", limit.declared ? "an application, at startup" : "a user or program, at run time"],
    ["Created", html`<${FullTime} iso=${limit.createdAt} />`],
    ["Changed", html`<${FullTime} iso=${limit.updatedAt} />`],
  ]} />`;
}

function ValueRow({ value, limit }) {
  const none = limit.per ? "without the field" : "all jobs";
  return html`<${Row} data-id=${value.value}>
    <${Cell} id="value">${
      value.value === ""
        ? html`<span class="muted">${none}</span>`
        : html`<${OneLine} text=${value.value} class="strong" />`
    }</${Cell}>
    ${
      limit.kind !== "starts" &&
      limit.kind !== "shares" &&
      html`<${Cell} id="used" label="Running" class="num">${count(value.used)}
      <span class="muted"> of ${number(limit.maxRunning)}</span></${Cell}>`
    }
    <${Cell} id="waiting" label="Waiting" class="num">${count(value.waiting)}</${Cell}>
    ${
      limit.kind === "starts" &&
      html`
      <${Cell} id="tokens" label="May start now" class="num">${number(Math.floor(value.tokens ?? 0))}</${Cell}>
      <${Cell} id="next" label="Next start" class="num">${value.nextStart && html`<${Time} iso=${value.nextStart} />`}</${Cell}>`
    }
  </${Row}>`;
}
