/* The form that adds a job. */

import { html } from "../lib.js";
import { useApi } from "../session.js";
import { fromInput } from "../time.js";
import { ActionButton } from "./button.js";
import { useSuggestions } from "./filter-bar.js";
import { FormDialog, openForm } from "./form-dialog.js";
import { SelectField, TextField } from "./form-fields.js";
import { payloadError, PayloadField } from "./payload-field.js";

const KEY_MODES = {
  replace: "Replace it",
  preserve_run_at: "Replace it, keep its time",
  unsafe_dedupe: "Leave it as it is",
  replace_and_cancel: "Replace it, cancel it if it runs",
};

export function openAddJob(task = "") {
  openForm("add", ({ close }) => html`<${AddJobDialog} task=${task} close=${close} />`);
}

export function AddJobButton({ task }) {
  return html`<${ActionButton} action="add" kind="primary" icon="plus"
    onClick=${() => openAddJob(task)}>Add job</${ActionButton}>`;
}

/* Flags are separated by commas or line breaks. */
function flagsOf(text) {
  return text
    .split(/[,\n]/)
    .map((flag) => flag.trim())
    .filter(Boolean);
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

const EMPTY = {
  payload: "{}",
  queue: "",
  key: "",
  keyMode: "replace",
  runAt: "",
  priority: "",
  maxAttempts: "",
  flags: "",
};

function AddJobDialog({ task, close }) {
  const api = useApi();
  const tasks = useSuggestions("task", true);
  const send = async (values) => {
    const wrong = payloadError(values.payload);
    if (wrong !== null) {
      throw new Error("The payload is no JSON: " + wrong);
    }
    const answer = await api.post("jobs", requestOf(values));
    return { text: answer.text, link: answer.id === null ? undefined : { to: ["jobs", answer.id], text: "Show" } };
  };
  return html`<${FormDialog} title="Add a job" verb=${["Add job", "Adding…"]} start=${{ ...EMPTY, task }} send=${send}
    close=${close}>${(fields) => html`
      <${TextField} of=${fields} name="task" label="Task" required=${true} list=${fields.id + "tasks"} />
      <datalist id=${fields.id + "tasks"}>${tasks.map((one) => html`<option value=${one} key=${one}></option>`)}</datalist>
      <${PayloadField} value=${fields.values.payload} onChange=${(payload) => fields.set("payload", payload)} />
      <div class="fields">
        <${TextField} of=${fields} name="runAt" label="Run at (local time), empty for now" type="datetime-local" step=${1} />
        <${TextField} of=${fields} name="queue" label="Queue, jobs of which run one at a time" />
        <${TextField} of=${fields} name="key" label="Key" />
        <${SelectField} of=${fields} name="keyMode" label="If a job with this key waits" options=${KEY_MODES}
          disabled=${!fields.values.key} />
        <${TextField} of=${fields} name="priority" label="Priority, lower runs first" type="number" step=${1} min=${-32768} max=${32767}
          placeholder="0" />
        <${TextField} of=${fields} name="maxAttempts" label="Attempts at most" type="number" step=${1} min=${1} max=${32767}
          placeholder="25" />
      </div>
      <${TextField} of=${fields} name="flags" label="Flags, separated by commas" />`}
  </${FormDialog}>`;
}
