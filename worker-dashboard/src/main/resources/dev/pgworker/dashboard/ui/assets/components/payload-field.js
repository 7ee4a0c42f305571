/* A payload to be written: its JSON is checked while somebody types. */

import { html, useId } from "../lib.js";
import { format, parse } from "../json.js";

/** What is wrong with a payload; null if nothing is, or if it is empty. */
export function payloadError(text) {
  if (text.trim() === "") {
    return null;
  }
  try {
    parse(text);
    return null;
  } catch (error) {
    return error.message;
  }
}

/** @param onChange function of the text */
export function PayloadField({ value, onChange, label = "Payload, JSON", placeholder, rows = 6, id, invalid = false }) {
  const own = useId();
  const field = id ?? own;
  const wrong = payloadError(value);
  return html`<div class="field">
    <div class="label-line">
      <label for=${field}>${label}</label>
      <button type="button" class="link" disabled=${wrong !== null || value.trim() === ""}
        onClick=${() => onChange(format(value))}>Format</button>
    </div>
    <textarea id=${field} class="mono" rows=${rows} spellcheck=${false} value=${value} placeholder=${placeholder}
      onInput=${(event) => onChange(event.target.value)}
      aria-invalid=${wrong || invalid ? "true" : undefined} aria-describedby=${own + "wrong"}></textarea>
    <p id=${own + "wrong"} class="field-error" aria-live="polite">${wrong}</p>
  </div>`;
}
