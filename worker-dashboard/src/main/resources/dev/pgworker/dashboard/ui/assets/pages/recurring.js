/* Recurring jobs: those of crontabs, and the schedules of the database, page by page. */

import { html, useEffect } from "../lib.js";
import { Link, useRoute } from "../router.js";
import { serverNow, useApi } from "../session.js";
import { useResource } from "../resource.js";
import { useKeys } from "../keys.js";
import { scheduleFilters, scheduleQuery, SHOWN } from "../schedules.js";
import { parse } from "../time.js";
import { ActionButton, Button } from "../components/button.js";
import { CrontabTable } from "../components/crontab-items.js";
import { SearchField, setFilters, TextFilter } from "../components/filter-bar.js";
import { Icon } from "../components/icons.js";
import { Empty, Loaded, Page, RefreshButton } from "../components/page.js";
import { Pager } from "../components/pager.js";
import { useRowKeys } from "../components/rows.js";
import { useScheduleActions } from "../components/schedule-actions.js";
import { NewScheduleButton } from "../components/schedule-form.js";
import { Cell, Row, Table } from "../components/table.js";
import { Foreign, OneLine, State, Time } from "../components/words.js";

const PAGE_SIZE = 50;
const RELOAD_MS = 5000;
const LONGEST_TIMER_MS = 3600_000;

const COLUMNS = [
  { id: "name", label: "Schedule" },
  { id: "schedule", label: "Due" },
  { id: "next", label: "Next", class: "num" },
  { id: "last", label: "Last", class: "num" },
  { id: "do", label: "Actions", hidden: true },
];

export function RecurringPage() {
  const api = useApi();
  const { query } = useRoute();
  const filters = scheduleFilters(query);
  const after = query.get("after");
  const crontab = useResource(api.base + "crontab", (signal) => api.get("crontab", {}, signal));
  const list = useResource(JSON.stringify([api.base, "schedules", filters, after]), (signal) =>
    api.get("schedules", { ...scheduleQuery(filters), after, limit: PAGE_SIZE }, signal),
  );
  const reload = () => {
    crontab.reload();
    list.reload();
  };
  const searched = Object.keys(filters).length > 0 || after !== null;
  const bare = !searched && crontab.data?.items.length === 0 && list.data?.schedules.length === 0;
  useKeys({ r: reload });
  useRowKeys();
  return html`<${Page} title="Recurring jobs" actions=${html`
    <${RefreshButton} resource=${{ loading: list.loading || crontab.loading, reload }} />
    <${NewScheduleButton} changed=${reload} />`}>
    ${
      bare
        ? html`<${NoneAtAll} />`
        : html`
      ${
        !searched &&
        html`<${Loaded} resource=${crontab} lines=${4}>
        ${(data) =>
          data.items.length > 0 &&
          html`<section class="group" aria-labelledby="crontabs">
          <h2 id="crontabs">In crontabs</h2>
          <${CrontabTable} items=${data.items} api=${api} reload=${crontab.reload} />
        </section>`}
      </${Loaded}>`
      }
      <section class="group" aria-labelledby="schedules">
        <h2 id="schedules">Schedules</h2>
        <${Filters} filters=${filters} />
        <${Loaded} resource=${list} lines=${4}>
          ${(data) => html`<${Schedules} data=${data} searched=${searched} list=${list} />
            <${Pager} after=${after} next=${data.next} />`}
        </${Loaded}>
      </section>`
    }
  </${Page}>`;
}

function NoneAtAll() {
  return html`<${Empty} icon="recurring" title="There are no recurring jobs">
    <p>Put a crontab into <code>pgworker.crontab</code>, annotate a handler with <code>@CronJob</code>, or make a schedule
      here or by <code>RecurringJobs</code>.</p></${Empty}>`;
}

function Filters({ filters }) {
  const show = (event) => setFilters({ show: event.target.value || null });
  return html`<div class="filter-bar" role="search">
    <${SearchField} name="prefix" value=${filters.prefix ?? ""} label="Name begins with" />
    <${TextFilter} name="task" value=${filters.task ?? ""} />
    <label class="select-box"><span class="reader">Which ones</span>
      <select value=${filters.show ?? ""} onChange=${show}>
        <option value="">All</option>
        ${Object.entries(SHOWN).map(([value, { label }]) => html`<option value=${value} key=${value}>${label}</option>`)}
      </select><${Icon} name="down" size=${12} />
    </label>
    ${
      Object.keys(filters).length > 0 &&
      html`<${Button} kind="quiet"
      onClick=${() => setFilters({ prefix: null, task: null, show: null })}>Clear</${Button}>`
    }
  </div>`;
}

function Schedules({ data, searched, list }) {
  const act = useScheduleActions(list.reload);
  useReloadWhenDue(data.schedules, list);
  if (data.schedules.length === 0) {
    return html`<p class="muted">${
      searched
        ? "None matches."
        : html`There are none yet. Schedules are made here, by <code>RecurringJobs</code>,
      or by SQL, and can be changed while applications run.`
    }</p>`;
  }
  return html`<${Table} label="Schedules" columns=${COLUMNS} class="recurring-table schedules-table">
    ${data.schedules.map((schedule) => html`<${ScheduleRow} key=${schedule.name} schedule=${schedule} act=${act} />`)}
  </${Table}>`;
}

/* What was due has another next time a moment later. */
function useReloadWhenDue(schedules, list) {
  useEffect(() => {
    const times = schedules.map((schedule) =>
      schedule.next && schedule.state === "active" ? parse(schedule.next) : null,
    );
    const next = Math.min(...times.filter((time) => time !== null));
    if (!Number.isFinite(next)) {
      return undefined;
    }
    const wait = Math.max(RELOAD_MS, next + 1000 - serverNow());
    if (wait > LONGEST_TIMER_MS) {
      return undefined;
    }
    const timer = setTimeout(() => !document.hidden && list.reload(), wait);
    return () => clearTimeout(timer);
  }, [list.loadedAt]);
}

function ScheduleRow({ schedule, act }) {
  return html`<${Row} data-id=${schedule.name} class=${schedule.state === "paused" && "paused"}>
    <${Cell} id="name">
      <${Link} to=${["recurring", "schedule"]} query=${{ name: schedule.name }} class="row-link">
        <${OneLine} text=${schedule.name} class="strong" /></${Link}>
      ${
        schedule.task &&
        schedule.task !== schedule.name &&
        html`<span class="sub"><${OneLine} text=${schedule.task} class="muted" /></span>`
      }
    </${Cell}>
    <${Cell} id="schedule">
      ${schedule.words && html`<${OneLine} text=${schedule.words} />`}
      ${
        schedule.problem
          ? html`<span class="sub is-failed"><${OneLine} text=${schedule.problem} /></span>`
          : schedule.expression &&
            html`<span class="sub"><code><${Foreign} text=${schedule.expression} /></code></span>`
      }
    </${Cell}>
    <${Cell} id="next" label="Next" class="num"><${Next} schedule=${schedule} /></${Cell}>
    <${Cell} id="last" label="Last" class="num">${
      schedule.lastJobId && schedule.lastRun
        ? html`<${Link} to=${["jobs", schedule.lastJobId]}><${Time} iso=${schedule.lastRun} /></${Link}>`
        : html`<${Time} iso=${schedule.lastRun} />`
    }</${Cell}>
    <${Cell} id="do"><div class="row-actions">
      <${ActionButton} action="cron" icon="play" whyOff=${schedule.task ? null : "It cannot be read."}
        onClick=${() => act.trigger(schedule)}>Run now</${ActionButton}>
      ${
        schedule.pausedSince
          ? html`<${ActionButton} action="cron" icon="refresh" onClick=${() => act.resume(schedule)}>Resume</${ActionButton}>`
          : html`<${ActionButton} action="cron" icon="pause" onClick=${() => act.pause(schedule)}>Pause</${ActionButton}>`
      }
    </div></${Cell}>
  </${Row}>`;
}

function Next({ schedule }) {
  return schedule.state === "active"
    ? html`<${Time} iso=${schedule.next} />`
    : html`<${ScheduleState} state=${schedule.state} />`;
}

const STATES = { problem: "failed", waiting: "running", ended: "removed", active: "scheduled" };

/** What a schedule does, as a symbol and a word. */
export function ScheduleState({ state }) {
  return state === "paused"
    ? html`<span class="state is-paused"><${Icon} name="pause" /><span class="word">paused</span></span>`
    : html`<${State} state=${STATES[state]} word=${state} />`;
}
