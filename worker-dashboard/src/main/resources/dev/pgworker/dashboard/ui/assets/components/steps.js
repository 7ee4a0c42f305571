/* The steps of a job, and the signal that one of them waits for. */

import { html, useState } from "../lib.js";
import { useApi } from "../session.js";
import { duration } from "../time.js";
import { ActionButton } from "./button.js";
import { Confirm, showDialog } from "./dialog.js";
import { HiddenJson, JsonView } from "./json-view.js";
import { Panel } from "./page.js";
import { PayloadField, payloadError } from "./payload-field.js";
import { toast } from "./toast.js";
import { FullTime, OneLine, State, Time } from "./words.js";

/** @param reload called when a signal was sent */
export function StepsPanel({ steps, reload }) {
  if (steps.length === 0) {
    return null;
  }
  const done = steps.filter((step) => step.endedAt !== null).length;
  return html`<${Panel} title="Steps" id="steps" note=${`${done} of ${steps.length} have ended`}>
    <ol class="timeline">${steps.map((step) => html`<${StepLine} key=${step.name} step=${step} reload=${reload} />`)}</ol>
  </${Panel}>`;
}

function StepLine({ step, reload }) {
  const waits = step.endedAt === null;
  const result = step.resultHidden || (step.result ?? null) !== null;
  return html`<li class=${waits ? "is-waiting" : step.timedOut ? "is-failed" : "is-succeeded"}>
    <div class="timeline-line">
      <${State} state=${waits ? "waiting" : step.timedOut ? "failed" : "succeeded"}
        word=${waits ? "waits" : step.timedOut ? "timed out" : "done"} />
      <${OneLine} text=${step.name} class="strong" />
      <span class="timeline-what">${WORDS[step.kind](step)}</span>
      <span class="muted num">${waits ? "" : duration(Date.parse(step.endedAt) - Date.parse(step.startedAt))}</span>
      <span class="timeline-time"><${Time} iso=${step.endedAt ?? step.startedAt} focusable=${true} /></span>
    </div>
    ${waits && html`<p class="muted">Until <${FullTime} iso=${step.dueAt} /></p>`}
    ${
      waits &&
      step.kind === "wait" &&
      html`<${ActionButton} action="signal" icon="play"
      onClick=${() => openSignal(step.name.replace(/#\d+$/, ""), reload)}>Send signal …</${ActionButton}>`
    }
    ${
      result &&
      html`<details><summary>${step.kind === "wait" ? "Payload" : "Result"}</summary>
      ${
        step.resultHidden
          ? html`<${HiddenJson} what="Results" />`
          : html`<${JsonView} text=${step.result} cut=${step.resultCut} />`
      }</details>`
    }
  </li>`;
}

const WORDS = {
  run: (step) => `attempt ${step.attempt}`,
  transaction: (step) => `attempt ${step.attempt}, in a transaction`,
  wait: (step) =>
    step.endedAt === null ? "for this signal" : step.timedOut ? "no signal came in time" : "signal received",
  sleep: (step) => (step.endedAt === null ? "sleeps" : "slept"),
};

function openSignal(name, reload) {
  showDialog(({ close }) => html`<${SignalDialog} name=${name} reload=${reload} close=${close} />`);
}

function SignalDialog({ name, reload, close }) {
  const api = useApi();
  const [payload, setPayload] = useState("");
  const run = async () => {
    if (payloadError(payload)) {
      throw new Error("The payload is not JSON.");
    }
    const answer = await api.post("signals", { name, payload });
    toast({ text: answer.text });
    reload();
  };
  return html`<${Confirm} title="Send a signal?" action="Send" run=${run} close=${close}>
    <p>The job that has waited longest for <${OneLine} text=${name} class="strong" /> receives it and continues.</p>
    <${PayloadField} value=${payload} onChange=${setPayload} />
  </${Confirm}>`;
}
