/* The form that makes and changes limits, and the dialog that deletes one. */

import { html } from "../lib.js";
import { useApi } from "../session.js";
import { fieldOf, formValues, KINDS, request } from "../limits.js";
import { ActionButton } from "./button.js";
import { Confirm, showDialog } from "./dialog.js";
import { useSuggestions } from "./filter-bar.js";
import { FormDialog, openForm, verbOf } from "./form-dialog.js";
import { SelectField, SpanField, TextField } from "./form-fields.js";
import { toast } from "./toast.js";
import { Foreign } from "./words.js";

const MOST = 1_000_000;

/** Opens the form; limit: the one to change, or null for another one. */
export function openLimitForm(limit, changed) {
  openForm("limit", ({ close }) => html`<${LimitDialog} limit=${limit} changed=${changed} close=${close} />`);
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
  showDialog(
    ({ close }) => html`<${Confirm} title="Delete this limit?" action="Delete" danger=${true} run=${run} close=${close}>
    <p>Jobs that wait for it become available, unless another limit applies to them.</p>
    ${limit.declared && html`<p>An application declares it: where that still does so, it is there again at its next start.</p>`}
  </${Confirm}>`,
  );
}

function LimitDialog({ limit, changed, close }) {
  const api = useApi();
  const send = async (values) => {
    const answer = await api.post(limit ? "limits/change" : "limits", request(values, limit));
    changed();
    const link = limit ? undefined : { to: ["limits", "limit"], query: { name: values.name }, text: "Show" };
    return { text: answer.text, link };
  };
  return html`<${FormDialog} title=${limit ? "Change the limit" : "New limit"} verb=${verbOf(limit)}
    start=${() => formValues(limit)} send=${send} fieldOf=${fieldOf} close=${close}>${(fields) => html`
      ${
        limit
          ? html`<p class="one-line strong"><${Foreign} text=${limit.name} /></p>`
          : html`<${TextField} of=${fields} name="name" label="Name, unique in the schema" required=${true} maxlength=${128} />`
      }
      <${TasksField} of=${fields} />
      <div class="fields">
        <${SelectField} of=${fields} name="kind" label="Limits" options=${KINDS} />
        ${
          fields.values.kind === "running"
            ? html`<${NumberField} of=${fields} name="maxRunning" label="At most at once" required=${true} />`
            : fields.values.kind === "starts" &&
              html`<${NumberField} of=${fields} name="maxStarts" label="At most in the period" required=${true} />
            <${SpanField} of=${fields} name="period" label="Period" required=${true} />
            <${NumberField} of=${fields} name="burst" label="Burst; empty for what half a second brings" />`
        }
      </div>
      <${TextField} of=${fields} name="per" class="mono" placeholder="customer.id" required=${fields.values.kind === "shares"}
        label=${
          fields.values.kind === "shares"
            ? "The field of the payload whose values take turns"
            : "For each value of a field of the payload; empty for all jobs together"
        } />
      ${
        fields.values.kind === "shares" &&
        html`<${TextField} of=${fields} name="weights" class="mono" placeholder="acme=3, globex=0.5"
        label="Weights of values; the others weigh 1" />`
      }
      <p class="muted form-note">No job of these tasks starts until all waiting jobs have been checked. Running jobs continue.</p>`}
  </${FormDialog}>`;
}

function TasksField({ of }) {
  const tasks = useSuggestions("task", true);
  return html`<${TextField} of=${of} name="tasks" label="Tasks that share it, separated by commas" required=${true} list=${of.id + "names"} />
    <datalist id=${of.id + "names"}>${tasks.map((one) => html`<option value=${one} key=${one}></option>`)}</datalist>`;
}

function NumberField(attributes) {
  return html`<${TextField} ...${attributes} type="number" step=${1} min=${1} max=${MOST} />`;
}
