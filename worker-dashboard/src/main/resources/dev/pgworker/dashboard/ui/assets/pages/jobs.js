/* The list of jobs. */

import { classes, html, useEffect, useMemo, useRef } from "../lib.js";
import { Link, setQuery, useRoute } from "../router.js";
import { useApi } from "../session.js";
import { useLiveJobs, useOverview } from "../live.js";
import { useResource } from "../resource.js";
import { inWords, JOB_SORTS, JOB_STATES, jobFilters, jobSort } from "../filters.js";
import { headline, number, plural } from "../text.js";
import { FilterBar, setFilters } from "../components/filter-bar.js";
import { StateTabs } from "../components/state-tabs.js";
import { kindOf, offered, useJobActions } from "../components/job-actions.js";
import { ended, openBulk } from "../components/bulk.js";
import { Button, Menu } from "../components/button.js";
import { AddJobButton } from "../components/add-job.js";
import { Icon } from "../components/icons.js";
import { Empty, Loaded, Page, RefreshButton } from "../components/page.js";
import { Pager } from "../components/pager.js";
import { useSelection } from "../components/rows.js";
import { SavedFilters } from "../components/saved-filters.js";
import { Cell, Row, Table } from "../components/table.js";
import { Age, Flags, OneLine, PayloadPreview, State, Time } from "../components/words.js";

const PAGE_SIZE = 50;

export function JobsPage() {
  const route = useRoute();
  const api = useApi();
  const filters = jobFilters(route.query);
  const sort = jobSort(route.query);
  const after = route.query.get("after");
  const key = JSON.stringify([api.base, filters, sort, after]);
  const list = useResource(key, (signal) => api.get("jobs", { ...filters, sort, limit: PAGE_SIZE, after }, signal));
  const overview = useOverview();
  const selection = useSelection(key);
  const act = useJobActions(list.reload);
  useLiveRows(list);
  useReloadAfterBulk(list);

  const query = { ...filters, sort: sort === "newest" ? null : sort };
  return html`<${Page} title="Jobs" actions=${html`<${RefreshButton} resource=${list} />
    <${AddJobButton} task=${filters.task} />`}>
    <${StateTabs} label="State" path=${["jobs"]} query=${query} name="state" values=${JOB_STATES}
      counts=${overview ? overview.backlog : {}} />
    <${FilterBar} filters=${filters} fields=${["task", "queue", "key", "flag"]} timeWord="Due"
      searchLabel="Search key, error, payload">
      <label class="select-box"><span class="reader">Order</span>
        <select value=${sort} onChange=${(event) =>
          setFilters({ sort: event.target.value === "newest" ? null : event.target.value })}>
          ${Object.entries(JOB_SORTS).map(([value, label]) => html`<option value=${value} key=${value}>${label}</option>`)}
        </select><${Icon} name="down" size=${12} />
      </label>
      <${SavedFilters} page="jobs" query=${query} />
    </${FilterBar}>
    <${Loaded} resource=${list} lines=${12}>
      ${(data) => html`
        <${ListLine} list=${list} data=${data} filters=${filters} newest=${!after && sort === "newest"} />
        ${
          data.jobs.length === 0
            ? html`<${NoJobs} filters=${filters} data=${data} />`
            : html`<${JobsTable} jobs=${data.jobs} sort=${sort} failedOnly=${filters.state === "failed"} selection=${selection}
            act=${act} />`
        }
        <${Pager} after=${after} next=${data.next}>${data.limited && html`<${Limited} next=${data.next} />`}</${Pager}>
        <${SelectionBar} jobs=${data.jobs} more=${data.next !== null} filters=${filters} selection=${selection}
          act=${act} api=${api} />
      `}
    </${Loaded}>
  </${Page}>`;
}

function useReloadAfterBulk({ reload }) {
  useEffect(() => ended.watch(reload), [reload]);
}

/* Rows change in place; a job that is gone keeps its row, so that nothing moves under the pointer. */
function useLiveRows(list) {
  const ids = useMemo(() => (list.data?.jobs ?? []).map((job) => job.id), [list.data]);
  useLiveJobs(ids, ({ jobs, gone }) => {
    const changed = new Map(jobs.map((job) => [job.id, job]));
    const left = new Set(gone);
    list.update((data) => ({
      ...data,
      jobs: data.jobs.map((job) =>
        changed.has(job.id) ? { ...job, ...changed.get(job.id) } : left.has(job.id) ? { ...job, gone: true } : job,
      ),
    }));
  });
}

/* What the list shows: how many match, what is new, and what can be done with all of them. */
function ListLine({ list, data, filters, newest }) {
  const api = useApi();
  const loadKey = list.loadedAt;
  const filtered = Object.keys(filters).some((name) => name !== "state");
  const count = useResource(filtered ? JSON.stringify([api.base, filters, loadKey]) : "none", async (signal) =>
    filtered ? api.get("jobs/count", filters, signal) : null,
  );
  const total = filtered && count.data ? count.data : null;
  return html`<div class="list-line">
    <p role="status">
      ${total && matchText(total, data.limited)}
      ${data.searchedPayloads === false && filters.search ? " Payloads are hidden, so they were not searched." : ""}
    </p>
    ${newest && html`<${Newer} key=${loadKey} data=${data} filters=${filters} reload=${list.reload} />`}
    ${
      Object.keys(filters).length > 0 &&
      data.jobs.length > 0 &&
      html`<${Menu} label="Change all matching jobs" icon="down" items=${bulkItems(api, filters)}>Change all matching</${Menu}>`
    }
  </div>`;
}

/* A list that was searched up to a limit has a count up to a limit, too. */
function matchText({ total, complete }, limited) {
  if (complete && !limited) {
    return plural(total, "job matches", "jobs match");
  }
  return total > 0 ? `${number(total)} or more jobs match` : "";
}

/*
 * How many jobs were added since the list was loaded. They are announced instead of inserted: rows that move under the
 * pointer are clicked by mistake. Only for lists whose number the live event tells.
 */
function Newer({ data, filters, reload }) {
  const overview = useOverview();
  const first = useRef(null);
  const names = Object.keys(filters);
  if (!overview || names.some((name) => name !== "state")) {
    return null;
  }
  const current = filters.state ? overview.backlog[filters.state] : overview.newestId;
  if (first.current === null) {
    first.current = filters.state ? current : (data.jobs[0]?.id ?? current);
  }
  const added = current - first.current;
  if (!(added > 0)) {
    return null;
  }
  return html`<button type="button" class="newer" onClick=${reload}>${plural(added, "new job")} – show</button>`;
}

function Limited({ next }) {
  return html`The filter is served by no index, so only the first 50,000 jobs in this order were searched.
    ${
      next !== null &&
      html` <button type="button" class="link"
      onClick=${() => setQuery({ after: next })}>Search further</button>`
    }`;
}

function NoJobs({ filters, data }) {
  const filtered = Object.keys(filters).length > 0;
  if (data.limited) {
    return html`<${Empty} icon="search" title="Nothing among the jobs that were searched">
      <p>Search further, or narrow the filter by state, task or queue, which are found quickly.</p>
    </${Empty}>`;
  }
  if (filtered) {
    return html`<${Empty} icon="search" title=${`No ${inWords(filters)}`}>
      <p>Jobs that succeeded are no longer in this list; look into the <${Link} to=${["history"]}
        query=${{ task: filters.task, search: filters.search }}>history</${Link}>, or <${Link}
          to=${["jobs"]}>clear the filters</${Link}>.</p>
    </${Empty}>`;
  }
  return html`<${Empty} icon="jobs" title="There are no jobs">
    <p>A job that succeeds leaves this list. Add one by hand, or by <code>JobScheduler</code> or SQL.</p></${Empty}>`;
}

const SORTABLE = {
  id: [
    { by: "newest", direction: "descending" },
    { by: "oldest", direction: "ascending" },
  ],
  due: [{ by: "run_at", direction: "ascending" }],
  attempts: [{ by: "attempts", direction: "descending" }],
  priority: [{ by: "priority", direction: "ascending" }],
  updated: [{ by: "updated", direction: "descending" }],
};

function JobsTable({ jobs, sort, failedOnly, selection, act }) {
  const { selected, setSelected } = selection;
  const ids = jobs.filter((job) => !job.gone).map((job) => job.id);
  const all = ids.length > 0 && ids.every((id) => selected.has(id));
  const some = selected.size > 0 && !all;
  const box = html`<input type="checkbox" aria-label="Select all jobs of this page" checked=${all} indeterminate=${some}
    onChange=${() => setSelected(new Set(all ? [] : ids))} />`;
  const errorsFirst = failedOnly || sort === "updated";
  const shown = columnsFor(jobs, sort, errorsFirst);
  const columns = [
    { id: "select", label: "Select", content: box },
    { id: "state", label: "State", hidden: failedOnly },
    { id: "id", label: "Id", class: "num", sort: SORTABLE.id },
    { id: "task", label: "Task" },
    { id: "queue", label: "Queue" },
    { id: "key", label: "Key" },
    { id: "error", label: "Error" },
    { id: "age", label: "Age", class: "num" },
    { id: "due", label: "Due", class: "num", sort: SORTABLE.due },
    { id: "attempts", label: "Attempts", class: "num", sort: SORTABLE.attempts },
    { id: "priority", label: "Priority", class: "num", sort: SORTABLE.priority },
    { id: "updated", label: "Changed", class: "num", sort: SORTABLE.updated },
    { id: "more", label: "Actions", hidden: true },
  ].filter((column) => shown[column.id] ?? true);
  return html`<${Table} label="Jobs" columns=${columns} sorted=${sort}
    onSort=${(by) => setFilters({ sort: by === "newest" ? null : by })}
      class=${classes(
        "jobs-table",
        !shown.error && "no-error",
        shown.error && errorsFirst && "errors-first",
        failedOnly && "failed-only",
      )}>
    ${jobs.map(
      (job) => html`<${JobRow} key=${job.id} job=${job} shown=${shown} selected=${selected.has(job.id)}
      toggle=${selection.toggle} act=${act} />`,
    )}
  </${Table}>`;
}

/*
 * Columns that would be empty, and those of values that seldom matter, are left out, so that the others have room. Who
 * looks for what failed wants to read why.
 */
function columnsFor(jobs, sort, errorsFirst) {
  const error = jobs.some((job) => job.error !== null);
  return {
    due: !(error && errorsFirst) || sort === "run_at",
    queue: jobs.some((job) => job.queue !== null),
    key: jobs.some((job) => job.key !== null),
    priority: sort === "priority",
    updated: sort === "updated",
    error,
  };
}

function JobRow({ job, shown, selected, toggle, act }) {
  const open = job.gone ? "gone" : selected ? "selected" : "";
  return html`<${Row} class=${open} data-id=${job.id}>
    <${Cell} id="select"><input type="checkbox" aria-label=${`Select job ${job.id}`} checked=${selected}
      disabled=${job.gone} onChange=${() => toggle(job.id)} /></${Cell}>
    <${Cell} id="state">${
      job.gone
        ? html`<span class="state"><span class="word muted">gone</span></span>`
        : html`<${State} state=${job.state} />`
    }</${Cell}>
    <${Cell} id="id" class="num"><${Link} to=${["jobs", job.id]} class="row-link">${job.id}</${Link}></${Cell}>
    <${Cell} id="task"><${OneLine} text=${job.task} class="strong" /><${Marks} job=${job} priority=${!shown.priority} />
      <${PayloadPreview} text=${job.payload} /></${Cell}>
    ${shown.queue && html`<${Cell} id="queue" label="Queue">${job.queue && html`<${OneLine} text=${job.queue} />`}</${Cell}>`}
    ${shown.key && html`<${Cell} id="key" label="Key">${job.key && html`<${OneLine} text=${job.key} class="mono" />`}</${Cell}>`}
    ${
      shown.error &&
      html`<${Cell} id="error">
      ${job.error && html`<${OneLine} text=${headline(job.error)} class="muted" />`}</${Cell}>`
    }
    <${Cell} id="age" label="Age" class="num"><${Age} iso=${job.createdAt} /></${Cell}>
    ${shown.due && html`<${Cell} id="due" label="Due" class="num"><${Time} iso=${job.runAt} /></${Cell}>`}
    <${Cell} id="attempts" label="Attempts" class="num">${job.attempts} <span class="muted">/ ${job.maxAttempts}</span></${Cell}>
    ${shown.priority && html`<${Cell} id="priority" label="Priority" class="num">${job.priority}</${Cell}>`}
    ${shown.updated && html`<${Cell} id="updated" label="Changed" class="num"><${Time} iso=${job.updatedAt} /></${Cell}>`}
    <${Cell} id="more"><${Menu} label=${`Actions for job ${job.id}`} items=${menuItems(job, act)} /></${Cell}>
  </${Row}>`;
}

/* What sets a job apart: its flags, and a priority other than the usual one. */
function Marks({ job, priority }) {
  const unusual = priority && job.priority !== 0;
  // Those that PgWorker sets say nothing about the job.
  const flags = job.flags.filter((flag) => !flag.startsWith("pgworker:"));
  if (!unusual && flags.length === 0) {
    return null;
  }
  return html`<span class="flags">
    ${unusual && html`<span class="flag num">priority ${job.priority}</span>`}
    <${Flags} flags=${flags.slice(0, 2)} />
  </span>`;
}

function menuItems(job, act) {
  const { buttons, menu } = offered(kindOf([job.state]), job);
  const gone = job.gone ? "The job is gone." : null;
  return [...buttons, ...menu]
    .sort((one, other) => Number(one.danger ?? false) - Number(other.danger ?? false))
    .map((item) => ({ ...item, whyOff: item.whyOff ?? gone, onSelect: () => act(item.action, [job]) }));
}

function bulkItems(api, filters) {
  const { buttons, menu } = offered(kindOf([filters.state]));
  return [...buttons, ...menu].map((item) => ({
    ...item,
    label: item.label.replace(/( …)?$/, " …"),
    onSelect: () => openBulk(api, item.action, filters),
  }));
}

function SelectionBar({ jobs, more, filters, selection, act, api }) {
  const { selected, setSelected } = selection;
  const chosen = jobs.filter((job) => selected.has(job.id));
  if (chosen.length === 0) {
    return null;
  }
  const wholePage = more && jobs.every((job) => job.gone || selected.has(job.id));
  const { buttons, menu } = offered(kindOf(chosen.map((job) => job.state)));
  const items = menu.map((item) => ({ ...item, onSelect: () => act(item.action, chosen) }));
  return html`<div class="selection-bar" role="region" aria-label="Selected jobs">
    <p role="status"><b class="num">${number(chosen.length)}</b> selected</p>
    ${buttons.map(
      ({ action, label, icon, danger, whyOff }) =>
        html`<${Button} key=${action} icon=${icon} whyOff=${whyOff} class=${danger && "danger-text"}
        onClick=${() => act(action, chosen)}>${label}</${Button}>`,
    )}
    ${items.length > 0 && html`<${Menu} label="More" icon="down" items=${items}>More</${Menu}>`}
    ${wholePage && html`<${Menu} label="All matching jobs" icon="down" items=${bulkItems(api, filters)}>All matching</${Menu}>`}
    <${Button} kind="quiet" icon="close" aria-label="Clear the selection" onClick=${() => setSelected(new Set())} />
  </div>`;
}
