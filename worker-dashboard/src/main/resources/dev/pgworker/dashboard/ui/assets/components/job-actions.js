/* What can be done with jobs: words, fields, and the dialogs that ask first. */

import { html, useId, useState } from "../lib.js";
import { useApi } from "../session.js";
import { plural } from "../text.js";
import { fromInput } from "../time.js";
import { Confirm, showDialog } from "./dialog.js";
import { toast } from "./toast.js";

/** Actions by name, in the order in which they are offered. */
export const ACTIONS = {
  "run-now": { label: "Run now", icon: "play" },
  reschedule: { label: "Reschedule", icon: "calendar" },
  complete: { label: "Complete", icon: "succeeded" },
  fail: { label: "Fail", icon: "failed" },
  remove: { label: "Remove", icon: "trash", danger: true },
  cancel: { label: "Cancel", icon: "cancelled", danger: true },
};

/** An action and what it is done to, as on a button: "Run 3 jobs now", "Remove job #5". */
export function phrase(action, jobs) {
  return action === "run-now" ? `Run ${jobs} now` : `${ACTIONS[action].label} ${jobs}`;
}

/** What the button says that leaves everything as it is. */
export function dismissal(action) {
  return action === "cancel" ? "Go back" : "Cancel";
}

/** Why an action cannot be done to a running job; null if it can. */
export function whyNotRunning(action, job) {
  return job.state === "running" && action !== "cancel" ? "The job runs at the moment." : null;
}

/** What becomes of jobs that run when an action is done to several. */
export function ofRunning(action) {
  return action === "cancel" ? "" : " Jobs that run at the moment are left alone.";
}

/** What an action will do to a number of jobs. */
export function consequence(action, count) {
  const jobs = plural(count, "job");
  const they = count === 1 ? "it" : "they";
  switch (action) {
    case "run-now":
      return `${jobs} will be due at once, with at least one attempt left.`;
    case "reschedule":
      return `${jobs} will get the values below. Empty fields stay as they are.`;
    case "complete":
      return `${jobs} will be deleted as if ${they} had succeeded, without being run.`;
    case "fail":
      return `${jobs} will fail permanently: no attempts will be left.`;
    case "cancel":
      return (
        `${jobs} will be deleted where ${they} wait${count === 1 ? "s" : ""}. A handler that runs is interrupted, and its job ` +
        "never runs again. This cannot be undone."
      );
    default:
      return `${jobs} will be deleted. This cannot be undone.`;
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
  const one = jobs.length === 1;
  const what = one ? `job #${jobs[0].id}` : plural(jobs.length, "job");
  const run = async () =>
    done(await api.post("jobs/" + action, { ids: jobs.map((job) => job.id), ...parameters(action, values) }));
  return html`<${Confirm} title=${phrase(action, what) + "?"} action=${phrase(action, what)}
    danger=${ACTIONS[action].danger} run=${run} close=${close} dismiss=${dismissal(action)}>
    <p>${consequence(action, jobs.length)}${!one && ofRunning(action)}</p>
    <${ActionFields} action=${action} values=${values} setValues=${setValues} />
  </${Confirm}>`;
}

/** Function of an action and its jobs that asks first where needed, does it and tells what it did. */
export function useJobActions(changed) {
  const api = useApi();
  const done = (answer) => {
    toast({ text: answer.text, level: answer.changed.length === 0 ? "error" : "done" });
    changed(answer);
  };
  return async (action, jobs) => {
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
