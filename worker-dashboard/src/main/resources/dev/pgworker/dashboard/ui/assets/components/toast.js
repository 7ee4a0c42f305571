/* What an action did, for a moment, and read aloud. */

import { html, classes } from "../lib.js";
import { createStore, useStore } from "../store.js";
import { Link } from "../router.js";
import { Icon } from "./icons.js";
import { Foreign } from "./words.js";

const SHOWN_MS = 6000;
const MOST = 3;
const toasts = createStore([]);
let last = 0;

/** Shows a text: {text, level: "done"|"error", link: {to, query, text}}. Errors stay until they are closed. */
export function toast(message) {
  const shown = { level: "done", ...message, id: ++last };
  toasts.set((all) => [...all.slice(1 - MOST), shown]);
  if (shown.level !== "error") {
    setTimeout(() => dismiss(shown.id), SHOWN_MS);
  }
}

function dismiss(id) {
  toasts.set((all) => all.filter((one) => one.id !== id));
}

export function Toasts() {
  const all = useStore(toasts);
  return html`<div class="toasts" role="status" aria-live="polite">
    ${all.map(
      (one) => html`<div class=${classes("toast", one.level)} key=${one.id}>
        <${Icon} name=${one.level === "error" ? "warning" : "check"} />
        <span class="toast-text"><${Foreign} text=${one.text} /></span>
        ${one.link && html`<${Link} to=${one.link.to} query=${one.link.query}>${one.link.text}</${Link}>`}
        <button type="button" class="toast-close" aria-label="Dismiss" onClick=${() => dismiss(one.id)}>
          <${Icon} name="close" /></button>
      </div>`,
    )}
  </div>`;
}
