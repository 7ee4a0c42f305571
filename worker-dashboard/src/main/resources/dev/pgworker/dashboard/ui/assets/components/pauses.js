/* What is paused, and how to pause and resume it. */

import { html, useState } from "../lib.js";
import { useApi, whyNot } from "../session.js";
import { useOverview } from "../live.js";
import { ActionButton } from "./button.js";
import { Confirm, showDialog } from "./dialog.js";
import { Icon } from "./icons.js";
import { Notice } from "./page.js";
import { toast } from "./toast.js";
import { Foreign } from "./words.js";

const WORDS = {
  task: [
    "Pause this task?",
    "PgWorker starts no more jobs of this task in any application; workers on Node.js and in Rust go on.",
  ],
  queue: ["Pause this queue?", "No worker starts any more jobs of this queue, those on Node.js and in Rust included."],
  everything: [
    "Pause everything?",
    "PgWorker starts no more jobs in any application; workers on Node.js and in Rust go on.",
  ],
};

/** Functions that pause and resume a kind of thing; a pause asks first for its reason. */
export function usePauses(changed) {
  const api = useApi();
  const post = async (action, data) => {
    const answer = await api.post("pauses/" + action, data);
    toast({ text: answer.text });
    changed?.();
  };
  return {
    pause: (kind, name) =>
      showDialog(
        ({ close }) => html`<${PauseDialog} kind=${kind} close=${close}
      run=${(reason) => post("pause", { kind, name, reason })} />`,
      ),
    resume: (kind, name) =>
      post("resume", { kind, name }).catch((error) => toast({ text: error.message, level: "error" })),
  };
}

/** The item of a menu that pauses or resumes something. */
export function pauseItem(pauses, kind, name, pause) {
  return pause
    ? { label: `Resume this ${kind}`, icon: "play", whyOff: whyNot("pause"), onSelect: () => pauses.resume(kind, name) }
    : {
        label: `Pause this ${kind} …`,
        icon: "pause",
        whyOff: whyNot("pause"),
        onSelect: () => pauses.pause(kind, name),
      };
}

function PauseDialog({ kind, run, close }) {
  const [reason, setReason] = useState("");
  const [title, text] = WORDS[kind];
  return html`<${Confirm} title=${title} action="Pause" run=${() => run(reason.trim())} close=${close}>
    <p>${text} Running jobs go on. It lasts until you resume it.</p>
    <div class="field"><label for="pause-reason">Reason, shown to everybody</label>
      <input id="pause-reason" maxlength="1000" autocomplete="off" value=${reason}
        onInput=${(event) => setReason(event.target.value)} /></div>
  </${Confirm}>`;
}

/** A mark that something is paused, with since when, by whom and why. */
export function Paused({ pause }) {
  return html`<span class="is-warning" data-tip=${pause.text} tabindex="0"><${Icon} name="pause" size=${14} />paused</span>`;
}

/** On every page while everything is paused. */
export function PauseNotice() {
  const pause = useOverview()?.pauses?.find((one) => one.kind === "everything");
  const pauses = usePauses();
  return (
    pause &&
    html`<div class="page-notice" role="status"><${Notice} level="warning"
    actions=${html`<${ActionButton} action="pause" icon="play" onClick=${() => pauses.resume("everything")}>Resume</${ActionButton}>`}>
    <p><strong>No jobs are started.</strong> <${Foreign} text=${pause.text.charAt(0).toUpperCase() + pause.text.slice(1) + "."} most=${1500} /></p>
  </${Notice}></div>`
  );
}

/** Pauses everything, or resumes it. */
export function PauseEverything({ reload }) {
  const pause = useOverview()?.pauses?.find((one) => one.kind === "everything");
  const pauses = usePauses(reload);
  return html`
    <p class="muted">Has PgWorker start no more jobs, in all applications. Tasks and queues are paused on their pages.</p>
    <div class="panel-foot">
      ${pause ? html`<${Paused} pause=${pause} />` : html`<span></span>`}
      ${
        pause
          ? html`<${ActionButton} action="pause" icon="play" onClick=${() => pauses.resume("everything")}>Resume</${ActionButton}>`
          : html`<${ActionButton} action="pause" kind="danger" icon="pause"
          onClick=${() => pauses.pause("everything")}>Pause everything …</${ActionButton}>`
      }
    </div>`;
}
