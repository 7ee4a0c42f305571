/* Cleaning up, with the numbers first. */

import { html, useState } from "../lib.js";
import { useApi } from "../session.js";
import { useResource } from "../resource.js";
import { useKeys } from "../keys.js";
import { number, plural } from "../text.js";
import { duration } from "../time.js";
import { ActionButton } from "../components/button.js";
import { Confirm, showDialog } from "../components/dialog.js";
import { Facts } from "../components/facts.js";
import { PauseEverything } from "../components/pauses.js";
import { Loaded, Notice, Page, Panel, RefreshButton } from "../components/page.js";
import { toast } from "../components/toast.js";
import { Foreign, OneLine } from "../components/words.js";
import { askUnlock } from "./workers.js";

const MINUTE = 60_000;

const CLEANUPS = {
  DELETE_PERMAFAILED_JOBS: [
    "Failed jobs",
    "Deletes jobs that have no attempts left. Their errors are lost, unless the history keeps them.",
  ],
  GC_JOB_QUEUES: [
    "Unused queues",
    "Deletes named queues that no job uses. They come back with the next job that names them.",
  ],
  DELETE_ENDED_SCHEDULES: [
    "Ended schedules",
    "Deletes recurring jobs whose end is past, but not those that applications declare.",
  ],
  GC_TASK_IDENTIFIERS: [
    "Unused tasks",
    "Deletes task names that no job uses and no worker serves. Node.js workers miss later jobs of such a task until they are restarted.",
  ],
};

export function MaintenancePage() {
  const api = useApi();
  const loaded = useResource(api.base + "maintenance", (signal) => api.get("maintenance", {}, signal));
  useKeys({ r: loaded.reload });
  return html`<${Page} title="Maintenance" actions=${html`<${RefreshButton} resource=${loaded} />`}>
    <${Loaded} resource=${loaded} lines=${8}>
      ${(data) => html`<div class="columns even">
        <div class="stack">
          <${Cleanup} data=${data} api=${api} reload=${loaded.reload} />
          <${Sweep} api=${api} reload=${loaded.reload} />
        </div>
        <div class="stack">
          <${Panel} title="Pause" id="pause"><${PauseEverything} reload=${loaded.reload} /></${Panel}>
          <${Unlock} dead=${data.deadWorkers} api=${api} reload=${loaded.reload} />
          ${
            data.status &&
            html`<${Panel} title="Worker of this instance" id="status">
            <${Status} status=${data.status} /></${Panel}>`
          }
        </div>
      </div>`}
    </${Loaded}>
  </${Page}>`;
}

function Cleanup({ data, api, reload }) {
  const [chosen, setChosen] = useState([]);
  const toggle = (task) => setChosen(chosen.includes(task) ? chosen.filter((one) => one !== task) : [...chosen, task]);
  const count = (task) => `${number(data.cleanup[task])}${data.cleanup[task] >= data.limit ? "+" : ""}`;
  const total = chosen.reduce((sum, task) => sum + data.cleanup[task], 0);
  const whyOff =
    chosen.length === 0 ? "Choose what to clean up." : total === 0 ? "There is nothing to clean up." : null;
  const ask = () =>
    showDialog(
      ({ close }) =>
        html`<${Confirm} title="Clean up?" action="Clean up" danger=${true} close=${close} run=${async () => {
          const answer = await api.post("cleanup", { tasks: chosen, dryRun: false });
          toast({ text: answer.text });
          reload();
        }}>
    <p>This deletes, and cannot be undone:</p>
    <ul class="bullets">${chosen.map(
      (task) => html`<li key=${task}><b class="num">${count(task)}</b> ${CLEANUPS[task][0].toLowerCase()}</li>`,
    )}</ul>
  </${Confirm}>`,
    );
  return html`<${Panel} title="Clean up" id="cleanup">
    <ul class="choices">
      ${Object.entries(CLEANUPS).map(
        ([task, [label, text]]) => html`<li key=${task}>
        <label><input type="checkbox" checked=${chosen.includes(task)} onChange=${() => toggle(task)} />
          <span class="choice-label">${label}</span><span class="choice-number num">${count(task)}</span></label>
        <p class="muted">${text}</p>
      </li>`,
      )}
    </ul>
    <div class="panel-foot">
      <span class="muted">The numbers are what would be deleted now.</span>
      <${ActionButton} action="cleanup" kind="danger" whyOff=${whyOff} onClick=${ask}>Clean up …</${ActionButton}>
    </div>
  </${Panel}>`;
}

function Sweep({ api, reload }) {
  const [minutes, setMinutes] = useState("");
  const [preview, setPreview] = useState(null);
  const [error, setError] = useState(null);
  const body = (dryRun) => ({
    dryRun,
    ...(minutes === "" ? {} : { thresholdMs: Math.round(Number(minutes) * MINUTE) }),
  });
  const look = async () => {
    setError(null);
    try {
      setPreview(await api.post("sweep", body(true)));
    } catch (failure) {
      setPreview(null);
      setError(failure.message);
    }
  };
  const ask = () =>
    showDialog(
      ({ close }) =>
        html`<${Confirm} title="Sweep dead workers?" action="Sweep" danger=${true} close=${close} run=${async () => {
          const answer = await api.post("sweep", body(false));
          toast({ text: answer.text });
          setPreview(null);
          reload();
        }}><p>${plural(counted(preview.jobs), "job")} of ${plural(
          counted(preview.workers),
          "worker",
        )} will be given to other workers.</p></${Confirm}>`,
    );
  const whyOff =
    preview === null
      ? "Look first what it would do."
      : counted(preview.workers) === 0
        ? "There is no dead worker."
        : null;
  return html`<${Panel} title="Sweep" id="sweep">
    <p class="muted">Gives the jobs of workers that send no heartbeats to others. Workers do this by themselves; by hand it happens at once.</p>
    <div class="field inline"><label for="sweep-minutes">Dead after minutes without heartbeat</label>
      <input id="sweep-minutes" type="number" min="0" step="any" placeholder="default" value=${minutes}
        onInput=${(event) => {
          setMinutes(event.target.value);
          setPreview(null);
        }} /></div>
    ${preview && html`<${Notice}><p><${Foreign} text=${preview.text} most=${2000} /></p></${Notice}>`}
    ${error && html`<${Notice} level="error"><p><${Foreign} text=${error} most=${2000} /></p></${Notice}>`}
    <div class="panel-foot">
      <${ActionButton} action="sweep" onClick=${look}>Dry run</${ActionButton}>
      <${ActionButton} action="sweep" kind="danger" whyOff=${whyOff} onClick=${ask}>Sweep …</${ActionButton}>
    </div>
  </${Panel}>`;
}

/* Numbers, or lists of what is counted. */
function counted(value) {
  return Array.isArray(value) ? value.length : (value ?? 0);
}

function Unlock({ dead, api, reload }) {
  const [id, setId] = useState("");
  const unlock = (event) => {
    event.preventDefault();
    askUnlock(api, [id.trim()], reload);
  };
  return html`<${Panel} title="Force unlock" id="unlock">
    <p class="muted">Gives all jobs and queues of a worker to others, whether or not it sends heartbeats. For workers of which you know that they are gone.</p>
    ${
      dead.length === 0
        ? html`<p>No worker is known to be dead.</p>`
        : html`<ul class="lines id-list">${dead.map(
            (one) =>
              html`<li key=${one}><${OneLine} text=${one} class="mono" />
          <${ActionButton} action="force-unlock"
            onClick=${() => askUnlock(api, [one], reload)}>Unlock …</${ActionButton}></li>`,
          )}</ul>`
    }
    <form class="inline-form" onSubmit=${unlock}>
      <div class="field"><label for="unlock-id">Another worker, by its id</label>
        <input id="unlock-id" class="mono" required value=${id} autocomplete="off" spellcheck=${false}
          onInput=${(event) => setId(event.target.value)} /></div>
      <${ActionButton} action="force-unlock" whyOff=${id.trim() === "" ? "Give the id of a worker." : null}
        onClick=${unlock}>Unlock …</${ActionButton}>
    </form>
  </${Panel}>`;
}

/* Whatever Worker.status() tells, one line each. */
function Status({ status }) {
  const items = Object.entries(status).map(([name, value]) => [words(name), statusValue(name, value)]);
  return html`<${Facts} items=${items} />`;
}

function words(name) {
  const text = name
    .replace(/Ms$/, "")
    .replace(/([a-z])([A-Z])/g, "$1 $2")
    .toLowerCase();
  return text.charAt(0).toUpperCase() + text.slice(1);
}

function statusValue(name, value) {
  if (value === null || (Array.isArray(value) && value.length === 0)) {
    return html`<span class="muted">none</span>`;
  }
  if (typeof value === "boolean") {
    return value ? "yes" : "no";
  }
  if (typeof value === "number") {
    return html`<span class="num">${name.endsWith("Ms") ? duration(value) : number(value)}</span>`;
  }
  const text = Array.isArray(value)
    ? value.join(", ")
    : typeof value === "object"
      ? JSON.stringify(value)
      : String(value);
  return html`<${Foreign} text=${text} expandable=${true} />`;
}
