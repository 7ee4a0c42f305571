/* The form that adds a job. */

import { html, useId, useState } from "../lib.js";
import { useApi } from "../session.js";
import { fromInput } from "../time.js";
import { ActionButton, Button } from "./button.js";
import { Dialog, FormError, showDialog } from "./dialog.js";
import { Icon } from "./icons.js";
import { useSuggestions } from "./filter-bar.js";
import { payloadError, PayloadField } from "./payload-field.js";
import { toast } from "./toast.js";
import { whyNot } from "../session.js";

export function openAddJob(task = "") {
  const reason = whyNot("add");
  if (reason) {
    toast({ text: reason, level: "error" });
  } else {
    showDialog(({ close }) => html`<${AddJobDialog} task=${task} close=${close} />`);
  }
}

export function AddJobButton({ task }) {
  return html`<${ActionButton} action="add" kind="primary" icon="plus"
    onClick=${() => openAddJob(task)}>Add job</${ActionButton}>`;
}

/* Flags are separated by commas or line breaks. */
function flagsOf(text) {
  return text.split(/[,\n]/).map((flag) => flag.trim()).filter(Boolean);
}

function requestOf(values) {
  const wanted = { task: values.task, payload: values.payload.trim() || "{}" };
  for (const name of ["queue", "key"]) {
    if (values[name]) {
      wanted[name] = values[name];
    }
  }
  if (values.key && values.keyMode) {
    wanted.keyMode = values.keyMode;
  }
  if (values.runAt) {
    wanted.runAt = fromInput(values.runAt);
  }
  for (const name of ["priority", "maxAttempts"]) {
    if (values[name] !== "") {
      wanted[name] = Number(values[name]);
    }
  }
  const flags = flagsOf(values.flags);
  if (flags.length > 0) {
    wanted.flags = flags;
  }
  return wanted;
}

const EMPTY = { payload: "{}", queue: "", key: "", keyMode: "replace", runAt: "", priority: "", maxAttempts: "", flags: "" };

function AddJobDialog({ task, close }) {
  const api = useApi();
  const id = useId();
  const [values, setValues] = useState({ ...EMPTY, task });
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState(null);
  const tasks = useSuggestions("task", true);
  const wrong = payloadError(values.payload);
  const set = (name) => (event) => setValues({ ...values, [name]: event.target.value });

  const submit = async (event) => {
    event.preventDefault();
    if (wrong !== null) {
      setError("The payload is no JSON: " + wrong);
      return;
    }
    setBusy(true);
    setError(null);
    try {
      const answer = await api.post("jobs", requestOf(values));
      toast({ text: answer.text, link: answer.id === null ? undefined : { to: ["jobs", answer.id], text: "Show" } });
      close();
    } catch (failure) {
      setError(failure.message);
      setBusy(false);
    }
  };
  const field = (name, label, attributes = {}) => html`<div class="field">
    <label for=${id + name}>${label}</label>
    <input id=${id + name} value=${values[name]} onInput=${set(name)} autocomplete="off" spellcheck=${false} ...${attributes} />
  </div>`;

  return html`<${Dialog} title="Add a job" close=${close} locked=${busy} wide=${true} buttons=${html`
    <${Button} onClick=${close} disabled=${busy}>Cancel</${Button}>
    <button class="button primary" form=${id + "form"} disabled=${busy}><span>${busy ? "Adding…" : "Add job"}</span></button>
  `}>
    <form id=${id + "form"} onSubmit=${submit}>
      ${field("task", "Task", { required: true, list: id + "tasks" })}
      <datalist id=${id + "tasks"}>${tasks.map((one) => html`<option value=${one} key=${one}></option>`)}</datalist>
      <${PayloadField} value=${values.payload} onChange=${(payload) => setValues({ ...values, payload })} />
      <div class="fields">
        ${field("runAt", "Run at (local time), empty for now", { type: "datetime-local", step: 1 })}
        ${field("queue", "Queue, jobs of which run one at a time")}
        ${field("key", "Key")}
        <div class="field">
          <label for=${id + "mode"}>If a job with this key waits</label>
          <span class="select-box"><select id=${id + "mode"} value=${values.keyMode} disabled=${!values.key}
            onChange=${set("keyMode")}>
            <option value="replace">Replace it</option>
            <option value="preserve_run_at">Replace it, keep its time</option>
            <option value="unsafe_dedupe">Leave it as it is</option>
            <option value="replace_and_cancel">Replace it, cancel it if it runs</option>
          </select><${Icon} name="down" size=${12} /></span>
        </div>
        ${field("priority", "Priority, lower runs first", { type: "number", step: 1, min: -32768, max: 32767, placeholder: "0" })}
        ${field("maxAttempts", "Attempts at most", { type: "number", step: 1, min: 1, max: 32767, placeholder: "25" })}
      </div>
      ${field("flags", "Flags, separated by commas")}
    </form>
    <${FormError} text=${error} />
  </${Dialog}>`;
}
