/* Workers: heartbeats, what they run, and what to do about dead ones. */

import { html } from "../lib.js";
import { Link } from "../router.js";
import { useApi } from "../session.js";
import { useOverview } from "../live.js";
import { useResource } from "../resource.js";
import { useKeys } from "../keys.js";
import { plural } from "../text.js";
import { ActionButton } from "../components/button.js";
import { Confirm, showDialog } from "../components/dialog.js";
import { Empty, Loaded, Notice, Page, RefreshButton } from "../components/page.js";
import { RunningTable } from "../components/running.js";
import { toast } from "../components/toast.js";
import { Foreign, OneLine, Since, Time } from "../components/words.js";
import { currentWorkers, Slots, WorkerState } from "../components/workers-table.js";

export function WorkersPage() {
  const api = useApi();
  const list = useResource(api.base + "workers", (signal) => api.get("workers", {}, signal));
  const overview = useOverview();
  useKeys({ r: list.reload });
  return html`<${Page} title="Workers" actions=${html`<${RefreshButton} resource=${list} />`}>
    <${Loaded} resource=${list} lines=${8}>
      ${(data) => html`<${Workers} workers=${overview ? currentWorkers(data.workers, overview) : data.workers}
        api=${api} reload=${list.reload} />`}
    </${Loaded}>
  </${Page}>`;
}

function Workers({ workers, api, reload }) {
  const stale = workers.filter((worker) => worker.stale);
  if (workers.length === 0) {
    return html`<${Empty} icon="workers" title="No worker is registered">
      <p>Jobs wait until a worker starts. Set <code>pgworker.enabled=true</code> in an application that has handlers. Workers of Node.js do not register.</p>
      </${Empty}>`;
  }
  return html`
    ${
      stale.length > 0 &&
      html`<${Notice} level="error"
      actions=${html`<${ActionButton} action="force-unlock" icon="lock"
        onClick=${() =>
          askUnlock(
            api,
            stale.map((one) => one.id),
            reload,
          )}>Force unlock …</${ActionButton}>`}>
      <p><strong>${plural(
        stale.length,
        "worker has",
        "workers have",
      )} stopped sending heartbeats.</strong> Their jobs are given to others by the sweep, which also runs by hand under <${Link}
          to=${["maintenance"]}>maintenance</${Link}>.</p>
    </${Notice}>`
    }
    <ul class="worker-list">${workers.map(
      (worker) => html`<${Worker} key=${worker.id} worker=${worker} api=${api} reload=${reload} />`,
    )}</ul>
  `;
}

function Worker({ worker, api, reload }) {
  const running = worker.running ?? [];
  return html`<li class=${worker.stale ? "panel worker stale" : "panel worker"}>
    <div class="worker-head">
      <h2 class="mono"><${OneLine} text=${worker.id} /></h2>
      <${WorkerState} worker=${worker} />
      ${worker.thisApplication && html`<span class="flag">this instance</span>`}
      ${
        worker.stale &&
        html`<span class="worker-actions">
        <${ActionButton} action="force-unlock"
          onClick=${() => askUnlock(api, [worker.id], reload)}>Force unlock …</${ActionButton}></span>`
      }
    </div>
    <dl class="worker-facts">
      <div><dt>Heartbeat</dt><dd><${Time} iso=${worker.lastHeartbeatAt} focusable=${true} /></dd></div>
      <div><dt>Up for</dt><dd><${Since} iso=${worker.startedAt} /></dd></div>
      <div><dt>In use</dt><dd><${Slots} worker=${worker} /></dd></div>
      ${worker.process && html`<div><dt>Process</dt><dd><${OneLine} text=${worker.process} class="mono" /></dd></div>`}
    </dl>
    ${
      worker.tasks &&
      html`<details class="worker-tasks"><summary>Serves ${plural(worker.tasks.length, "task")}</summary>
      <p>${worker.tasks.map(
        (task) => html`<${Link} key=${task} to=${["jobs"]} query=${{ task }} class="flag">
        <${Foreign} text=${task} most=${80} /></${Link}>`,
      )}</p>
    </details>`
    }
    ${running.length > 0 && html`<${RunningTable} running=${running} showWorker=${false} />`}
  </li>`;
}

/** Asks before the jobs of workers are given to others. */
export function askUnlock(api, ids, done) {
  const run = async () => {
    const answer = await api.post("force-unlock", { workers: ids });
    toast({ text: answer.text });
    done();
  };
  showDialog(
    ({ close }) => html`<${Confirm} title=${`Unlock the jobs of ${plural(ids.length, "worker")}?`}
    action="Force unlock" danger=${true} run=${run} close=${close}>
    <p>All jobs and queues that they hold are given to other workers at once. If a worker still lives, its jobs run twice.</p>
    <ul class="lines id-list">${ids
      .slice(0, 10)
      .map((id) => html`<li key=${id}><${OneLine} text=${id} class="mono" /></li>`)}
        ${ids.length > 10 && html`<li class="muted">and ${ids.length - 10} more</li>`}</ul>
  </${Confirm}>`,
  );
}
