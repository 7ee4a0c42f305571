/* The form that makes and changes limits, and the dialog that deletes one. */

import { html, useId, useRef, useState } from "../lib.js";
import { useApi, whyNot } from "../session.js";
import { fieldOf, formValues, KINDS, request } from "../limits.js";
import { ActionButton, Button } from "./button.js";
import { Confirm, Dialog, FormError, showDialog } from "./dialog.js";
import { useSuggestions } from "./filter-bar.js";
import { SelectField, SpanField, TextField, useFocusOnWrong } from "./form-fields.js";
import { toast } from "./toast.js";
import { Foreign } from "./words.js";

const MOST = 1_000_000;

/** Opens the form; limit: the one to change, or null for another one. */
export function openLimitForm(limit, changed) {
  const reason = whyNot("limit");
  if (reason) {
    toast({ text: reason, level: "error" });
  } else {
    showDialog(({ close }) => html`<${LimitDialog} limit=${limit} changed=${changed} close=${close} />`);
  }
}

export function NewLimitButton({ changed }) {
  return html`<${ActionButton} action="limit" kind="primary" icon="plus"
    onClick=${() => openLimitForm(null, changed)}>New limit</${ActionButton}>`;
}

/** Asks, and deletes a limit. */
export function openDeleteLimit(api, limit, changed) {
  const run = async () => {
    const answer = await api.post("limits/delete", { name: limit.name });
    toast({ text: answer.text });
    changed();
  };
  showDialog(({ close }) => html`<${Confirm} title="Delete this limit?" action="Delete" danger=${true} run=${run} close=${close}>
    <p>Jobs that wait for it become available, unless another limit applies to them.</p>
    ${limit.declared && html`<p>An application declares it: where that still does so, it is there again at its next start.</p>`}
  </${Confirm}>`);
}

function LimitDialog({ limit, changed, close }) {
  const api = useApi();
  const id = useId();
  const [values, setValues] = useState(() => formValues(limit));
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState(null);
  const form = useRef(null);
  const wrong = error === null ? null : fieldOf(error);
  useFocusOnWrong(form, id, wrong, error);

  const submit = async (event) => {
    event.preventDefault();
    setBusy(true);
    setError(null);
    try {
      const answer = await api.post(limit ? "limits/change" : "limits", request(values, limit));
      const link = limit ? undefined : { to: ["limits", "limit"], query: { name: values.name }, text: "Show" };
      toast({ text: answer.text, link });
      close();
      changed();
    } catch (failure) {
      setError(failure.message);
      setBusy(false);
    }
  };
  const fields = { id, values, wrong, set: (name, value) => setValues({ ...values, [name]: value }) };
  const verb = limit ? ["Change", "Changing…"] : ["Create", "Creating…"];
  return html`<${Dialog} title=${limit ? "Change the limit" : "New limit"} close=${close} locked=${busy} wide=${true}
    buttons=${html`<${Button} onClick=${close} disabled=${busy}>Cancel</${Button}>
      <button class="button primary" form=${id + "form"} disabled=${busy}><span>${busy ? verb[1] : verb[0]}</span></button>`}>
    <form id=${id + "form"} ref=${form} onSubmit=${submit}>
      ${limit ? html`<p class="one-line strong"><${Foreign} text=${limit.name} /></p>`
        : html`<${TextField} of=${fields} name="name" label="Name, unique in the schema" required=${true} maxlength=${128} />`}
      <${TasksField} of=${fields} />
      <div class="fields">
        <${SelectField} of=${fields} name="kind" label="Limits" options=${KINDS} />
        ${values.kind === "running"
          ? html`<${NumberField} of=${fields} name="maxRunning" label="At most at once" required=${true} />`
          : html`<${NumberField} of=${fields} name="maxStarts" label="At most in the period" required=${true} />
            <${SpanField} of=${fields} name="period" label="Period" required=${true} />
            <${NumberField} of=${fields} name="burst" label="Burst; empty for what half a second brings" />`}
      </div>
      <${TextField} of=${fields} name="per" class="mono" placeholder="customer.id"
        label="For each value of a field of the payload; empty for all jobs together" />
      <p class="muted form-note">Until the jobs that wait have been gone through, no job of the tasks starts. Jobs that run go on.</p>
    </form>
    <${FormError} text=${error} />
  </${Dialog}>`;
}

function TasksField({ of }) {
  const tasks = useSuggestions("task", true);
  return html`<${TextField} of=${of} name="tasks" label="Tasks that share it, separated by commas" required=${true} list=${of.id + "names"} />
    <datalist id=${of.id + "names"}>${tasks.map((one) => html`<option value=${one} key=${one}></option>`)}</datalist>`;
}

function NumberField(attributes) {
  return html`<${TextField} ...${attributes} type="number" step=${1} min=${1} max=${MOST} />`;
}
