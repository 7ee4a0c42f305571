/* Tasks: how often they run, fail and how long they take, and who serves them. */

import { html, useState } from "../lib.js";
import { Link, setQuery, useRoute } from "../router.js";
import { useApi, whyNot } from "../session.js";
import { useResource } from "../resource.js";
import { useKeys } from "../keys.js";
import { number, percent, plain, plural } from "../text.js";
import { approximate } from "../time.js";
import { Icon } from "../components/icons.js";
import { Menu } from "../components/button.js";
import { openAddJob } from "../components/add-job.js";
import { openBulk } from "../components/bulk.js";
import { Paused, pauseItem, usePauses } from "../components/pauses.js";
import { Empty, Loaded, Notice, Page, RefreshButton } from "../components/page.js";
import { useRowKeys } from "../components/rows.js";
import { Cell, Row, Table } from "../components/table.js";
import { OneLine, Time } from "../components/words.js";
import { WindowSwitch } from "../components/window-switch.js";

const WINDOWS = { "1h": "1 h", "6h": "6 h", "24h": "24 h" };

/* Each column orders by its value, the largest first; the name is the order at the start. */
const ORDERS = {
  name: (task) => task.name,
  waiting: (task) => task.waiting,
  failedJobs: (task) => task.failedJobs,
  runs: (task) => runsOf(task),
  failures: (task) => failureRate(task),
  median: (task) => task.runMedianMs,
  slow: (task) => task.run95Ms,
  wait: (task) => task.wait95Ms,
};

function runsOf(task) {
  return task.succeeded + task.retried + task.failed;
}

function failureRate(task) {
  return runsOf(task) === 0 ? null : (task.retried + task.failed) / runsOf(task);
}

function ordered(tasks, order) {
  const value = ORDERS[order];
  return [...tasks].sort((one, other) =>
    order === "name"
      ? one.name.localeCompare(other.name)
      : (value(other) ?? -1) - (value(one) ?? -1) || one.name.localeCompare(other.name),
  );
}

const column = (id, label, by = id) => ({ id, label, class: "num", sort: [{ by, direction: "descending" }] });
const COLUMNS = [
  { id: "task", label: "Task", sort: [{ by: "name", direction: "ascending" }] },
  { id: "served", label: "Served by" },
  column("waiting", "Waiting"),
  column("failed", "Failed jobs", "failedJobs"),
  column("runs", "Runs"),
  column("failures", "Failure rate"),
  column("median", "Median"),
  column("slow", "p95 / max"),
  column("wait", "Wait p95"),
  { id: "ended", label: "Last ended", class: "num" },
  { id: "more", label: "Actions", hidden: true },
];

export function TasksPage() {
  const query = useRoute().query;
  const api = useApi();
  const chosen = query.get("window");
  const window = Object.hasOwn(WINDOWS, chosen ?? "") ? chosen : "24h";
  const order = Object.hasOwn(ORDERS, query.get("sort") ?? "") ? query.get("sort") : "name";
  const list = useResource(JSON.stringify([api.base, "tasks", window]), (signal) =>
    api.get("tasks", { window }, signal),
  );
  const [name, setName] = useState("");
  const pauses = usePauses(list.reload);
  useKeys({ r: list.reload });
  useRowKeys();
  return html`<${Page} title="Tasks" actions=${html`
    <${RefreshButton} resource=${list} />
    <${WindowSwitch} windows=${WINDOWS} value=${window}
      onChange=${(value) => setQuery({ window: value }, { replace: true })} />`}>
    <${Loaded} resource=${list} lines=${8}>
      ${(data) => html`
        ${
          !data.recorded &&
          html`<${Notice}>
          <p>Runs are not recorded, so there are no rates and durations. Set <code>pgworker.statistics.enabled=true</code>.</p>
          </${Notice}>`
        }
        <div class="filter-bar" role="search">
          <div class="search"><${Icon} name="search" />
            <input type="search" aria-label="Filter tasks by name" placeholder="Filter tasks by name" value=${name}
              onInput=${(event) => setName(event.target.value)} /><kbd aria-hidden="true">/</kbd></div></div>
        <${Tasks} tasks=${ordered(data.tasks, order)} name=${name} order=${order} api=${api} pauses=${pauses} />
      `}
    </${Loaded}>
  </${Page}>`;
}

function Tasks({ tasks, name, order, api, pauses }) {
  const shown = tasks.filter((task) => task.name.toLowerCase().includes(name.toLowerCase()));
  if (shown.length === 0) {
    return tasks.length === 0
      ? html`<${Empty} icon="tasks" title="There are no tasks">
        <p>A task appears with its first job or worker. Annotate a method with <code>@JobHandler</code>.</p></${Empty}>`
      : html`<${Empty} icon="search" title="No task has this in its name" />`;
  }
  return html`<${Table} label="Tasks" columns=${COLUMNS} sorted=${order}
    onSort=${(by) => setQuery({ sort: by === "name" ? null : by }, { replace: true })} class="tasks-table">
    ${shown.map((task) => html`<${TaskRow} key=${task.name} task=${task} api=${api} pauses=${pauses} />`)}
  </${Table}>`;
}

function TaskRow({ task, api, pauses }) {
  const runs = runsOf(task);
  const without = task.retried + task.failed;
  return html`<${Row} data-id=${task.name}>
    <${Cell} id="task"><${Link} to=${["jobs"]} query=${{ task: task.name }} class="row-link">
      <${OneLine} text=${task.name} class="strong" /></${Link}>${task.pause && html` <${Paused} pause=${task.pause} />`}</${Cell}>
    <${Cell} id="served" label="Served by"><${ServedBy} task=${task} /></${Cell}>
    <${Cell} id="waiting" label="Waiting" class="num">${number(task.waiting)}${task.waiting >= 1000 && "+"}</${Cell}>
    <${Cell} id="failed" label="Failed jobs" class="num">${
      task.failedJobs > 0
        ? html`<${Link} to=${["jobs"]} query=${{ task: task.name, state: "failed" }} class="is-failed">
        ${number(task.failedJobs)}${task.failedJobs >= 1000 && "+"}</${Link}>`
        : html`<span class="muted">0</span>`
    }</${Cell}>
    <${Cell} id="runs" label="Runs" class="num">${number(runs)}</${Cell}>
    <${Cell} id="failures" label="Failure rate" class="num">
      ${
        runs === 0
          ? html`<span class="muted">–</span>`
          : html`<span data-tip=${`${number(task.retried)} retried, ${number(task.failed)} failed`}>
          <${RateBar} part=${without} whole=${runs} />${percent(without, runs)}</span>`
      }</${Cell}>
    <${Cell} id="median" label="Median" class="num">${approximate(task.runMedianMs)}</${Cell}>
    <${Cell} id="slow" label="p95 / max" class="num">
      ${approximate(task.run95Ms)} <span class="muted">/ ${approximate(task.runLongestMs)}</span></${Cell}>
    <${Cell} id="wait" label="Wait p95" class="num">${approximate(task.wait95Ms)}</${Cell}>
    <${Cell} id="ended" label="Last ended" class="num"><${Time} iso=${task.lastEndedAt} /></${Cell}>
    <${Cell} id="more"><${Menu} label=${"Actions for this task"} items=${menuItems(task, api, pauses)} /></${Cell}>
  </${Row}>`;
}

function RateBar({ part, whole }) {
  return html`<meter class="rate" min="0" max=${whole} value=${part} aria-hidden="true"></meter>`;
}

function ServedBy({ task }) {
  if (task.workers.length === 0) {
    return html`<span class="is-warning" data-tip="No registered worker serves this task. Node.js workers do not register.">
      <${Icon} name="warning" size=${14} />no worker</span>`;
  }
  return html`<span data-tip=${task.workers
    .slice(0, 12)
    .map((id) => plain(id, 80))
    .join("\n")}>
    ${plural(task.workers.length, "worker")}</span>
      ${task.servedHere && html` <span class="flag" data-tip="This instance serves it">this instance</span>`}`;
}

function menuItems(task, api, pauses) {
  const none = task.failedJobs === 0 ? "No job of this task has failed." : null;
  return [
    {
      label: "Retry all failed …",
      icon: "play",
      whyOff: whyNot("run-now") ?? none,
      onSelect: () => openBulk(api, "run-now", { task: task.name, state: "failed" }),
    },
    {
      label: "Delete all failed …",
      icon: "trash",
      danger: true,
      whyOff: whyNot("remove") ?? none,
      onSelect: () => openBulk(api, "remove", { task: task.name, state: "failed" }),
    },
    { label: "Add a job", icon: "plus", whyOff: whyNot("add"), onSelect: () => openAddJob(task.name) },
    pauseItem(pauses, "task", task.name, task.pause),
  ];
}
