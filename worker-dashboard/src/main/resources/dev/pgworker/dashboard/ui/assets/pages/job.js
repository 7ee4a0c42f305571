/* One job: what it is, why it waits or failed, what happened to it. */

import { html, useEffect } from "../lib.js";
import { Link } from "../router.js";
import { useApi } from "../session.js";
import { useLiveJobs, useOverview } from "../live.js";
import { useResource } from "../resource.js";
import { useKeys } from "../keys.js";
import { scheduleOf } from "../schedules.js";
import { number, plain, plural } from "../text.js";
import { Icon } from "../components/icons.js";
import { kindOf, offered, useJobActions } from "../components/job-actions.js";
import { Button, CopyButton, Menu } from "../components/button.js";
import { ErrorView } from "../components/error-view.js";
import { Facts } from "../components/facts.js";
import { FlowPanel } from "../components/flow.js";
import { HiddenJson, JsonView } from "../components/json-view.js";
import { pauseItem, usePauses } from "../components/pauses.js";
import { Empty, Loaded, Notice, Page, Panel, RefreshButton } from "../components/page.js";
import { StepsPanel } from "../components/steps.js";
import { Timeline } from "../components/timeline.js";
import { Flags, Foreign, FullTime, OneLine, Progress, Since, State } from "../components/words.js";

export function JobPage({ id }) {
  const api = useApi();
  const loaded = useResource(`job ${api.base} ${id}`, (signal) => api.get("jobs/" + id, {}, signal));
  const act = useJobActions(loaded.reload);
  useKeys({ r: loaded.reload });
  useLiveJob(Number(id), loaded);

  useFocusWhenGone(loaded.data !== null && loaded.data.job === null);

  const missing = loaded.error?.status === 404 && loaded.data === null;
  const task = loaded.data?.job?.task ?? loaded.data?.history[0]?.task;
  return html`<${Page}
    title=${task ? `${plain(task, 60)} #${id}` : `Job #${id}`}
    above=${html`<p class="crumbs"><${Link} to=${["jobs"]}>Jobs</${Link}><${Icon} name="chevron" size=${12} />
      <span class="num">#${id}</span><${CopyButton} text=${id} label="Copy id" /></p>`}
    heading=${loaded.data ? html`<${Heading} data=${loaded.data} />` : `Job #${id}`}
    actions=${html`<${RefreshButton} resource=${loaded} />
      ${loaded.data?.job && html`<${Actions} job=${loaded.data.job} act=${act} reload=${loaded.reload} />`}`}
  >
    ${
      missing
        ? html`<${Empty} icon="search" title=${`There is no job #${id}`}>
        <p>It has finished and is not in the history, or it never existed. Look at the <${Link}
          to=${["jobs"]}>jobs</${Link}> or the <${Link} to=${["history"]}>history</${Link}>.</p></${Empty}>`
        : html`<${Loaded} resource=${loaded} lines=${10}>${(data) => html`<${Body} id=${id} data=${data} loaded=${loaded} />`}</${Loaded}>`
    }
  </${Page}>`;
}

/* The buttons go with the job, and with them the focus of who removed it. */
function useFocusWhenGone(gone) {
  useEffect(() => {
    if (gone && document.activeElement === document.body) {
      document.getElementById("page-title").focus();
    }
  }, [gone]);
}

/* Progress arrives in place; a change of the job or its end loads the page's data again, for wait and history. */
function useLiveJob(id, loaded) {
  const job = loaded.data?.job;
  useLiveJobs(loaded.data ? [id] : [], ({ jobs, gone, running }) => {
    const changed = jobs.find((one) => one.id === id);
    const ended = gone.includes(id) && job;
    const runs = running.find((one) => one.job.id === id);
    if (runs) {
      loaded.update((data) => ({
        ...data,
        running: { startedAt: runs.startedAt, workerId: runs.workerId, progress: runs.progress },
      }));
    }
    if (
      ended ||
      (changed &&
        (changed.revision !== job?.revision || changed.state !== job?.state || changed.updatedAt !== job?.updatedAt))
    ) {
      loaded.reload();
    }
  });
}

function Heading({ data }) {
  const { job, history } = data;
  const task = job?.task ?? history[0].task;
  const state = job?.state ?? history[0].outcome;
  return html`<${Foreign} text=${task} most=${120} expandable=${true} /> <${State} state=${state} />`;
}

function Actions({ job, act, reload }) {
  const pauses = usePauses(reload);
  const paused = useOverview()?.pauses ?? [];
  const pauseOf = (kind, name) => paused.find((one) => one.kind === kind && one.name === name);
  const { buttons, menu } = offered(kindOf([job.state]), job);
  const items = menu.map((item) => ({ ...item, onSelect: () => act(item.action, [job]) }));
  items.push(pauseItem(pauses, "task", job.task, pauseOf("task", job.task)));
  if (job.queue) {
    items.push(pauseItem(pauses, "queue", job.queue, pauseOf("queue", job.queue)));
  }
  return html`
    ${buttons.map(
      ({ action, label, icon, danger, whyOff }) =>
        html`<${Button} key=${action} icon=${icon} whyOff=${whyOff} class=${danger && "danger-text"}
      kind=${action === "run-now" ? "primary" : "plain"} onClick=${() => act(action, [job])}>${label}</${Button}>`,
    )}
    <${Menu} label="More" icon="down" items=${items}>More</${Menu}>
  `;
}

function isOpen(cancellation) {
  return cancellation?.state === "requested" || cancellation?.state === "marked";
}

function Body({ id, data, loaded }) {
  const { job, history } = data;
  return html`<div class="columns job-columns">
    <div class="stack">
      ${
        !job &&
        html`<${Notice}><p>This job has ended and is no longer in the queue. What follows is its history.</p>
      </${Notice}>`
      }
      ${isOpen(data.cancellation) && html`<${Cancelling} cancellation=${data.cancellation} />`}
      ${job && html`<${Situation} data=${data} />`}
      <${FlowPanel} id=${id} version=${loaded.loadedAt} />
      ${
        job?.error &&
        html`<${Panel} title="Last error" id="error"
        note=${attemptOf(job, history)}><${ErrorView} error=${job.error} /></${Panel}>`
      }
      <${StepsPanel} steps=${data.steps} reload=${loaded.reload} />
      <${PayloadPanel} of=${job ?? history[0]} cut=${(job ?? history[0]).payloadCut} />
      <${HistoryPanel} history=${history} error=${data.historyError} />
    </div>
    <aside aria-label="Facts"><${Panel} title="Details" id="details">
      <${JobFacts} job=${job} last=${history[0]} running=${data.running} /></${Panel}></aside>
  </div>`;
}

/* Which attempt left the error; null if nobody knows, because the job was given attempts back or runs again. */
function attemptOf(job, history) {
  const entry = history.find((one) => one.error !== null && one.attempt > 0);
  if (entry) {
    return `attempt ${number(entry.attempt)} of ${number(entry.maxAttempts)}`;
  }
  const last = job.state === "failed" || job.state === "retrying";
  return last && job.attempts > 0 ? `attempt ${number(job.attempts)} of ${number(job.maxAttempts)}` : null;
}

/* Who has cancelled a job that still runs, and whether its worker knows. */
function Cancelling({ cancellation }) {
  return html`<${Notice} level="warning"><p>Cancelled${
    cancellation.requestedBy &&
    html` by <${OneLine}
    text=${cancellation.requestedBy} class="strong" />`
  } <${Since} iso=${cancellation.requestedAt} /> ago. ${
    cancellation.state === "marked"
      ? "Its worker cannot be notified: this run continues to its end, and the job never runs again."
      : "Its worker has been notified. If the handler fails now, the job is deleted; if it succeeds, the job has succeeded."
  }</p></${Notice}>`;
}

/* What the job does or waits for, in a sentence. */
function Situation({ data }) {
  const { job, wait, running } = data;
  if (running) {
    return html`<section class="situation is-running" aria-label="Progress">
      <${Icon} name="running" />
      <div>
        <p>Runs for <${Since} iso=${running.startedAt} /> on <${OneLine} text=${running.workerId} class="mono" /></p>
        ${
          running.progress
            ? html`<${Progress} progress=${running.progress} />`
            : html`<p class="muted">The handler reports no progress. <code>JobContext.progress(done, total, text)</code> shows it here.</p>`
        }
      </div>
    </section>`;
  }
  if (!wait) {
    return null;
  }
  return html`<section class=${"situation is-" + job.state} aria-label="Why it waits">
    <${Icon} name=${job.state} />
    <div>
      <p><${Foreign} text=${wait.text} most=${2000} /></p>
      ${wait.until && html`<p class="muted"><${FullTime} iso=${wait.until} /></p>`}
    </div>
  </section>`;
}

function PayloadPanel({ of, cut }) {
  if (of.payloadHidden) {
    return html`<${Panel} title="Payload" id="payload"><${HiddenJson} what="Payloads" /></${Panel}>`;
  }
  if (of.payload === undefined || of.payload === null) {
    return null;
  }
  return html`<${Panel} title="Payload" id="payload"><${JsonView} text=${of.payload} cut=${cut} /></${Panel}>`;
}

function HistoryPanel({ history, error }) {
  const on = useOverview()?.history.enabled ?? true;
  return html`<${Panel} title="Attempts" id="attempts"
    note=${history.length > 0 ? plural(history.length, "entry", "entries") : null}>
    ${
      history.length > 0
        ? html`<${Timeline} entries=${history} />`
        : error
          ? html`<p class="muted">${error}</p>`
          : on
            ? html`<p class="muted">No attempt has ended yet.</p>`
            : html`<p class="muted">Attempts are not kept. Set <code>pgworker.history.enabled=true</code> to see what happened to each.</p>`
    }
  </${Panel}>`;
}

function JobFacts({ job, last, running }) {
  const of = job ?? last;
  const schedule = of.payload && !of.payloadCut ? scheduleOf(of.payload) : null;
  return html`<${Facts} items=${[
    ["Id", html`<span class="num">${of.id ?? of.jobId}</span>`],
    ["Task", html`<${Link} to=${["jobs"]} query=${{ task: of.task }}><${OneLine} text=${of.task} /></${Link}>`],
    [
      "Queue",
      of.queue
        ? html`<${Link} to=${["jobs"]} query=${{ queue: of.queue }}><${OneLine} text=${of.queue} />
    </${Link}>`
        : html`<span class="muted">none</span>`,
    ],
    [
      "Schedule",
      schedule &&
        html`<${Link} to=${["recurring", "schedule"]} query=${{ name: schedule }}><${OneLine}
      text=${schedule} /></${Link}>`,
    ],
    ["Key", of.key && html`<${OneLine} text=${of.key} class="mono" />`],
    ["Flags", of.flags.length > 0 && html`<span class="flags"><${Flags} flags=${of.flags} /></span>`],
    [
      "Attempts",
      job
        ? `${number(job.attempts)} of ${number(job.maxAttempts)}`
        : `${number(last.attempt)} of ${number(last.maxAttempts)}`,
    ],
    ["Priority", number(of.priority)],
    ["Due", html`<${FullTime} iso=${of.runAt} />`],
    ["Added", html`<${FullTime} iso=${of.createdAt} />`],
    ["Changed", job && html`<${FullTime} iso=${job.updatedAt} />`],
    ["Locked", job?.lockedAt && html`<${FullTime} iso=${job.lockedAt} />`],
    ["Locked by", job?.lockedBy && html`<${OneLine} text=${job.lockedBy} class="mono" />`],
    [
      "Runs on",
      running && running.workerId !== job?.lockedBy && html`<${OneLine} text=${running.workerId} class="mono" />`,
    ],
    [
      "Recoveries",
      job?.recoveries > 0 &&
        html`<span data-tip="How often its worker died while it ran" tabindex="0">${number(job.recoveries)}</span>`,
    ],
    ["Revision", job && number(job.revision)],
  ]} />`;
}
