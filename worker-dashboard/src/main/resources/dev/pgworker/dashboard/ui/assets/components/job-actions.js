/* What can be done with jobs: words, fields, and the dialogs that ask first. */

import { html, useId, useState } from "../lib.js";
import { useApi, whyNot } from "../session.js";
import { format } from "../json.js";
import { plural } from "../text.js";
import { fromInput } from "../time.js";
import { Confirm, showDialog } from "./dialog.js";
import { payloadError, PayloadField } from "./payload-field.js";
import { toast } from "./toast.js";

const ACTIONS = {
  "run-now": { label: "Run now", icon: "play" },
  retry: { label: "Retry with another payload …", icon: "edit" },
  reschedule: { label: "Reschedule …", icon: "calendar" },
  complete: { label: "Complete …", icon: "succeeded" },
  fail: { label: "Fail …", icon: "failed" },
  remove: { label: "Delete …", icon: "trash", danger: true },
  cancel: { label: "Cancel …", icon: "cancelled", danger: true },
};

/* What is offered by the kind of the jobs: as buttons, and in a menu. Deleting never stands beside cancelling. */
const OFFERED = {
  failed: { buttons: ["run-now", "remove"], menu: ["retry", "reschedule", "complete"] },
  running: { buttons: ["cancel"], menu: [] },
  waiting: { buttons: ["run-now", "reschedule"], menu: ["complete", "fail", "remove"] },
  mixed: { buttons: ["run-now", "cancel"], menu: ["reschedule", "complete", "fail"] },
};

/** What jobs in these states are to the actions: failed, running, waiting or mixed. A state that is not known may be any. */
export function kindOf(states) {
  const kinds = new Set(
    states.map((state) => (!state ? "mixed" : ["failed", "running"].includes(state) ? state : "waiting")),
  );
  if (kinds.size === 1) {
    return [...kinds][0];
  }
  return kinds.has("running") || kinds.has("mixed") ? "mixed" : "waiting";
}

/* Why the visitor may not do an action; null if they may. */
function whyNotOf(action, job) {
  if (action !== "retry") {
    return whyNot(action);
  }
  return whyNot("run-now") ?? whyNot("add") ?? (job.payloadHidden ? "You may not see the payload." : null);
}

/**
 * The actions of a kind: [{action, label, icon, danger, whyOff}], as buttons and in a menu.
 *
 * @param job the only one that they are of, or null
 */
export function offered(kind, job = null) {
  const item = (action) => ({
    action,
    ...ACTIONS[action],
    ...(action === "run-now" && kind === "failed" ? { label: "Retry", icon: "refresh" } : {}),
    whyOff: whyNotOf(action, job),
  });
  const { buttons, menu } = OFFERED[kind];
  return { buttons: buttons.map(item), menu: menu.filter((action) => job !== null || action !== "retry").map(item) };
}

export function isDangerous(action) {
  return ACTIONS[action].danger === true;
}

/** An action and what it is done to, as on a button: "Run 3 jobs now", "Retry job #5", "Delete job #5". */
export function phrase(action, jobs, kind = "mixed") {
  if (action === "run-now") {
    return kind === "failed" ? `Retry ${jobs}` : `Run ${jobs} now`;
  }
  return `${ACTIONS[action].label.replace(" …", "")} ${jobs}`;
}

/** What the button says that leaves everything as it is. */
export function dismissal(action) {
  return action === "cancel" ? "Go back" : "Cancel";
}

/** What an action will do to a number of jobs of a kind. */
export function consequence(action, count, kind = "mixed") {
  const jobs = count === 1 ? "The job" : plural(count, "job");
  const skipped = kind === "running" || kind === "mixed" ? " Running jobs are skipped." : "";
  switch (action) {
    case "run-now":
      return kind === "failed"
        ? `${jobs} will run again at once, with all attempts.`
        : `${jobs} will be due at once, with at least one attempt left.${skipped}`;
    case "reschedule":
      return `${jobs} will get the values below. Empty fields stay as they are.${
        kind === "failed" ? " A failed job runs again only with attempts left." : skipped
      }`;
    case "complete":
      return `${jobs} will be deleted as if the work had succeeded, without being run.${skipped}`;
    case "fail":
      return `${jobs} will fail permanently, without being run: no attempts will be left.${skipped}`;
    case "cancel":
      return kind === "running"
        ? `${jobs} ${count === 1 ? "is" : "are"} running. The worker interrupts the handler, and the job never runs again. What the handler has done so far is not undone.`
        : `Handlers of running jobs are interrupted; waiting and failed jobs are deleted. None of them runs again. This cannot be undone.`;
    default:
      return kind === "failed"
        ? `${jobs} failed permanently. ${count === 1 ? "It" : "They"} will be deleted with payload and error. This cannot be undone.`
        : `${jobs} ${count === 1 ? "has" : "have"} not succeeded yet. ${count === 1 ? "It" : "They"} will be deleted and never run. This cannot be undone.${skipped}`;
  }
}

/** The values of the fields of an action as the API takes them; throws an Error with a sentence about what is missing. */
export function parameters(action, values) {
  if (action === "fail") {
    return { reason: values.reason?.trim() || "Failed by hand" };
  }
  if (action !== "reschedule") {
    return {};
  }
  const chosen = {};
  if (values.runAt) {
    chosen.runAt = fromInput(values.runAt);
  }
  for (const name of ["priority", "attempts", "maxAttempts"]) {
    if (values[name] !== undefined && values[name] !== "") {
      chosen[name] = Number(values[name]);
    }
  }
  if (Object.keys(chosen).length === 0) {
    throw new Error("Give at least one value to change.");
  }
  return chosen;
}

export function ActionFields({ action, values, setValues }) {
  const id = useId();
  const field = (name, label, attributes) => html`<div class="field">
    <label for=${id + name}>${label}</label>
    <input id=${id + name} value=${values[name] ?? ""}
      onInput=${(event) => setValues({ ...values, [name]: event.target.value })} ...${attributes} />
  </div>`;
  if (action === "fail") {
    return field("reason", "Reason, kept as the error", { placeholder: "Failed by hand", maxlength: 1000 });
  }
  if (action === "reschedule") {
    return html`<div class="fields">
      ${field("runAt", "Run at (local time)", { type: "datetime-local", step: 1 })}
      ${field("priority", "Priority, lower runs first", { type: "number", step: 1, min: -32768, max: 32767 })}
      ${field("attempts", "Attempts made", { type: "number", step: 1, min: 0, max: 32767 })}
      ${field("maxAttempts", "Attempts at most", { type: "number", step: 1, min: 1, max: 32767 })}
    </div>`;
  }
  return null;
}

function ActionDialog({ action, jobs, api, done, close }) {
  const [values, setValues] = useState({});
  const kind = kindOf(jobs.map((job) => job.state));
  const what = jobs.length === 1 ? `job #${jobs[0].id}` : plural(jobs.length, "job");
  const run = async () =>
    done(await api.post("jobs/" + action, { ids: jobs.map((job) => job.id), ...parameters(action, values) }));
  return html`<${Confirm} title=${phrase(action, what, kind) + "?"} action=${phrase(action, what, kind)}
    danger=${isDangerous(action)} run=${run} close=${close} dismiss=${dismissal(action)}>
    <p>${consequence(action, jobs.length, kind)}</p>
    <${ActionFields} action=${action} values=${values} setValues=${setValues} />
  </${Confirm}>`;
}

function RetryDialog({ job, api, done, close }) {
  const [payload, setPayload] = useState(format(job.payload));
  const run = async () => {
    const wrong = payloadError(payload);
    if (wrong !== null || payload.trim() === "") {
      throw new Error("The payload is not JSON" + (wrong ? ": " + wrong : "."));
    }
    done(await api.post("jobs/retry", { id: job.id, payload, updatedAt: job.updatedAt }));
  };
  return html`<${Confirm} title=${`Retry job #${job.id} with another payload`} action="Retry" run=${run} close=${close}
    wide=${true}>
    <p>The job keeps its id, key and finished steps. It runs again at once, with all attempts and this payload.</p>
    <${PayloadField} value=${payload} onChange=${setPayload} rows=${12} />
  </${Confirm}>`;
}

/** Opens the payload of a failed job for a retry, where the visitor sees all of it. */
async function openRetry(api, id, done) {
  try {
    const { job } = await api.get("jobs/" + id);
    if (job?.state !== "failed") {
      toast({ text: "The job is no longer in state failed.", level: "error" });
    } else if (!job.payloadWhole) {
      toast({ text: "The payload is hidden or too large to be edited here.", level: "error" });
    } else {
      showDialog(({ close }) => html`<${RetryDialog} job=${job} api=${api} done=${done} close=${close} />`);
    }
  } catch (error) {
    toast({ text: error.message, level: "error" });
  }
}

/** Function of an action and its jobs that asks first where needed, does it and reports what it did. */
export function useJobActions(changed) {
  const api = useApi();
  const done = (answer) => {
    toast({ text: answer.text, level: answer.changed.length === 0 ? "error" : "done" });
    changed(answer);
  };
  return async (action, jobs) => {
    if (action === "retry") {
      await openRetry(api, jobs[0].id, done);
      return;
    }
    if (action !== "run-now") {
      showDialog(
        ({ close }) => html`<${ActionDialog} action=${action} jobs=${jobs} api=${api} done=${done} close=${close} />`,
      );
      return;
    }
    try {
      done(await api.post("jobs/run-now", { ids: jobs.map((job) => job.id) }));
    } catch (error) {
      toast({ text: error.message, level: "error" });
    }
  };
}
