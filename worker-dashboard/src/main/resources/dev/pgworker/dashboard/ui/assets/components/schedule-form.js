/* The form that makes and changes schedules; it shows when they will be due while somebody types. */

import { html, useEffect, useState } from "../lib.js";
import { useApi } from "../session.js";
import {
  fieldOf,
  formValues,
  KINDS,
  MISFIRES,
  OVERLAPS,
  recurrenceRequest,
  request,
  usesPattern,
} from "../schedules.js";
import { zone } from "../time.js";
import { ActionButton } from "./button.js";
import { FormDialog, openForm, verbOf } from "./form-dialog.js";
import { SelectField, SpanField, TextField } from "./form-fields.js";
import { useSuggestions } from "./filter-bar.js";
import { payloadError, PayloadField } from "./payload-field.js";
import { Foreign, FullTime } from "./words.js";

const PREVIEW_MS = 300;
const PLACEHOLDERS = { crontab: "0 4 * * 1-5", cron: "0 0 4 * * MON-FRI" };
const FORMATS = {
  crontab: "minute, hour, day of month, month, day of week",
  cron: "second, minute, hour, day of month, month, day of week, or a macro such as @daily",
};

/** Opens the form; schedule: the one to change, or null for another one. */
export function openScheduleForm(schedule, changed) {
  openForm(
    "schedule",
    ({ close }) => html`<${ScheduleDialog} schedule=${schedule} changed=${changed} close=${close} />`,
  );
}

export function NewScheduleButton({ changed }) {
  return html`<${ActionButton} action="schedule" kind="primary" icon="plus"
    onClick=${() => openScheduleForm(null, changed)}>New schedule</${ActionButton}>`;
}

function ScheduleDialog({ schedule, changed, close }) {
  const api = useApi();
  const send = async (values) => {
    const json = payloadError(values.payload);
    if (json !== null) {
      throw new Error("payload is no JSON: " + json);
    }
    const answer = await api.post(schedule ? "schedules/change" : "schedules", request(values, schedule));
    changed();
    const link = schedule ? undefined : { to: ["recurring", "schedule"], query: { name: values.name }, text: "Show" };
    return { text: answer.text, link };
  };
  return html`<${FormDialog} title=${schedule ? "Change the schedule" : "New schedule"} verb=${verbOf(schedule)}
    start=${() => formValues(schedule, zone())} send=${send} fieldOf=${fieldOf} close=${close}>${(fields) => html`
      ${
        schedule
          ? html`<p class="one-line strong"><${Foreign} text=${schedule.name} /></p>`
          : html`<${TextField} of=${fields} name="name" label="Name, unique in the schema" required=${true} maxlength=${128} />`
      }
      <${TaskField} of=${fields} />
      <${PayloadField} value=${fields.values.payload} rows=${4} id=${fields.id + "payload"} invalid=${fields.wrong === "payload"}
        onChange=${(text) => fields.set("payload", text)}
        label=${schedule && !schedule.payloadWhole ? "Payload, JSON; empty for the one it has, which is not shown" : "Payload, a JSON object"} />
      <${RecurrenceFields} of=${fields} />
      <${Preview} values=${fields.values} schedule=${schedule} api=${api} />
      <div class="fields">
        <${SelectField} of=${fields} name="overlap" label="If the previous job has not ended" options=${OVERLAPS} />
        <${SelectField} of=${fields} name="misfire" label="Runs that were missed" options=${MISFIRES} />
      </div>
      <${MoreFields} of=${fields} open=${fields.wrong !== null} />`}
  </${FormDialog}>`;
}

function TaskField({ of }) {
  const tasks = useSuggestions("task", true);
  return html`<${TextField} of=${of} name="task" label="Task" required=${true} list=${of.id + "tasks"} />
    <datalist id=${of.id + "tasks"}>${tasks.map((one) => html`<option value=${one} key=${one}></option>`)}</datalist>`;
}

function RecurrenceFields({ of }) {
  const { kind } = of.values;
  return html`<div class="fields">
    <${SelectField} of=${of} name="kind" label="Recurrence" options=${KINDS} />
    ${
      usesPattern(kind) &&
      html`
      <${TextField} of=${of} name="zone" label="Time zone" required=${true} list=${of.id + "zones"} />
      <${Zones} id=${of.id + "zones"} />`
    }
    ${kind === "fixed-rate" && html`<${SpanField} of=${of} name="every" label="Every" required=${true} />`}
    ${kind === "fixed-delay" && html`<${SpanField} of=${of} name="every" label="After the end of the previous job" required=${true} />`}
  </div>
  ${
    usesPattern(kind) &&
    html`<${TextField} of=${of} name="expression" label=${`Pattern: ${FORMATS[kind]}`} class="mono"
    required=${true} placeholder=${PLACEHOLDERS[kind]} />`
  }
  ${kind === "fixed-rate" && html`<${TimeField} of=${of} name="origin" label="Counted from (local time), empty for now" />`}`;
}

function TimeField(attributes) {
  return html`<${TextField} ...${attributes} type="datetime-local" step=${1} />`;
}

function Zones({ id }) {
  return html`<datalist id=${id}>
    ${["UTC", ...Intl.supportedValuesOf("timeZone")].map((one) => html`<option value=${one} key=${one}></option>`)}
  </datalist>`;
}

function MoreFields({ of, open }) {
  return html`<details class="more-fields" open=${open}>
    <summary>More: jitter, start and end, queue, key, attempts</summary>
    <div class="fields">
      <${SpanField} of=${of} name="jitter" label="Jitter: jobs run up to so much later" />
      <${SpanField} of=${of} name="backfill" label="Missed runs, as far back as; empty for all" />
      <${TimeField} of=${of} name="startsAt" label="Not before (local time)" />
      <${TimeField} of=${of} name="endsAt" label="Not from then on (local time)" />
      <${TextField} of=${of} name="queue" label="Queue, jobs of which run one at a time" />
      <${TextField} of=${of} name="key" label="Key" />
      <${SelectField} of=${of} name="keyMode" label="If a job with this key waits" disabled=${!of.values.key}
        options=${{ replace: "Replace it", preserve_run_at: "Replace it, keep its time", unsafe_dedupe: "Leave it as it is" }} />
      <${TextField} of=${of} name="priority" label="Priority, lower runs first" type="number" step=${1} min=${-32768} max=${32767}
        placeholder="0" />
      <${TextField} of=${of} name="maxAttempts" label="Attempts at most" type="number" step=${1} min=${1} max=${32767}
        placeholder="25" />
    </div>
    <${TextField} of=${of} name="flags" label="Flags, separated by commas" />
  </details>`;
}

/* Asks the server, which knows the grammar, a moment after the last key. */
function Preview({ values, schedule, api }) {
  const wanted = recurrenceRequest(values, schedule);
  const complete = usesPattern(values.kind) ? wanted.expression.trim() && wanted.zone.trim() : wanted.every;
  const key = JSON.stringify(wanted);
  const [shown, setShown] = useState({ preview: null, error: null });
  useEffect(() => {
    if (!complete) {
      setShown({ preview: null, error: null });
      return undefined;
    }
    const controller = new AbortController();
    const timer = setTimeout(async () => {
      try {
        setShown({ preview: await api.get("schedules/preview", wanted, controller.signal), error: null });
      } catch (error) {
        if (error.name !== "AbortError") {
          setShown({ preview: null, error: error.message });
        }
      }
    }, PREVIEW_MS);
    return () => {
      clearTimeout(timer);
      controller.abort();
    };
  }, [key]);
  const { preview, error } = shown;
  return html`<div class="preview" role="status">
    ${
      error !== null
        ? html`<p class="field-error"><${Foreign} text=${error} most=${1000} /></p>`
        : preview === null
          ? html`<p class="muted">The next runs are shown here.</p>`
          : html`${preview.words && html`<p class="strong">${preview.words}</p>`}
        ${
          preview.kind === "fixed-delay" && !wanted.startsAt
            ? html`<p class="muted">The first run is at once.</p>`
            : preview.next.length === 0
              ? html`<p class="muted">It is not due in that time.</p>`
              : html`<ul class="lines">${preview.next.map((iso) => html`<li key=${iso}><${FullTime} iso=${iso} /></li>`)}</ul>`
        }`
    }
  </div>`;
}
