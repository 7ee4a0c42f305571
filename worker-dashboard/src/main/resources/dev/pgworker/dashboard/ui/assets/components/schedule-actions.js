/* What can be done with a schedule, and the dialogs that ask first. */

import { html, useState } from "../lib.js";
import { useApi, whyNot } from "../session.js";
import { Confirm, showDialog } from "./dialog.js";
import { payloadError, PayloadField } from "./payload-field.js";
import { toast } from "./toast.js";

const MISSED = "Runs missed in the meantime are not caught up.";

/** Functions that act on a schedule; those that destroy or need more ask first. */
export function useScheduleActions(changed) {
  const api = useApi();
  const post = async (action, data) => {
    const answer = await api.post("schedules/" + action, data);
    toast({ text: answer.text, link: answer.jobId ? { to: ["jobs", answer.jobId], text: "Show" } : undefined });
    changed(action);
  };
  const now = (action) => (schedule) =>
    post(action, { name: schedule.name }).catch((error) => toast({ text: error.message, level: "error" }));
  return {
    trigger: now("trigger"),
    resume: now("resume"),
    pause: (schedule) =>
      showDialog(
        ({ close }) =>
          html`<${Confirm} title="Pause this schedule?" action="Pause" run=${() => post("pause", { name: schedule.name })} close=${close}>
        <p>No jobs are added until it is resumed. ${MISSED}</p></${Confirm}>`,
      ),
    triggerWith: (schedule) =>
      showDialog(({ close }) => html`<${TriggerDialog} schedule=${schedule} post=${post} close=${close} />`),
    remove: (schedule) =>
      showDialog(
        ({ close }) =>
          html`<${Confirm} title="Delete this schedule?" action="Delete" danger=${true} close=${close}
        run=${() => post("delete", { name: schedule.name })}>
        <p>No more jobs are added; those that were added remain. This cannot be undone.</p>
        ${schedule.declared && html`<p>An application declares it: where that still does so, it is there again at its next start.</p>`}
      </${Confirm}>`,
      ),
  };
}

/** Why a visitor cannot run a schedule with another payload; null if they can. */
export function whyNotWithPayload() {
  return whyNot("cron") ?? whyNot("add");
}

function TriggerDialog({ schedule, post, close }) {
  const [payload, setPayload] = useState(schedule.payloadWhole ? schedule.payload : "{}");
  const run = async () => {
    const wrong = payloadError(payload);
    if (wrong !== null) {
      throw new Error("The payload is no JSON: " + wrong);
    }
    await post("trigger", { name: schedule.name, payload: payload.trim() || "{}" });
  };
  return html`<${Confirm} title="Run with another payload" action="Run now" run=${run} close=${close}>
    <p>Adds one job, which runs immediately. The schedule stays as it is.</p>
    <${PayloadField} value=${payload} onChange=${setPayload} />
  </${Confirm}>`;
}
