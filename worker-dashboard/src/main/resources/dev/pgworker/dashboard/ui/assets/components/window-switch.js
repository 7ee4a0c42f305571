/* Chooses how far back to look. */

import { html } from "../lib.js";

export function WindowSwitch({ windows, value, onChange }) {
  return html`<div class="segments" role="group" aria-label="Time window">
    ${Object.entries(windows).map(
      ([key, label]) => html`<button type="button" key=${key} aria-pressed=${key === value ? "true" : "false"}
        onClick=${() => onChange(key)}>${label}</button>`,
    )}
  </div>`;
}
