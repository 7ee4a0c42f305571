/* Fields of the forms. of: { id, values, wrong, set(name, value) } of the form that they belong to. */

import { html } from "../lib.js";
import { UNITS } from "../spans.js";
import { Icon } from "./icons.js";

export function TextField({ of, name, label, class: type, ...attributes }) {
  return html`<div class="field">
    <label for=${of.id + name}>${label}</label>
    <input id=${of.id + name} class=${type} value=${of.values[name]} autocomplete="off" spellcheck=${false}
      aria-invalid=${of.wrong === name ? "true" : undefined}
      onInput=${(event) => of.set(name, event.target.value)} ...${attributes} />
  </div>`;
}

export function SelectField({ of, name, label, options, disabled = false }) {
  return html`<div class="field">
    <label for=${of.id + name}>${label}</label>
    <span class="select-box"><select id=${of.id + name} value=${of.values[name]} disabled=${disabled}
      onChange=${(event) => of.set(name, event.target.value)}>
      ${Object.entries(options).map(([value, text]) => html`<option value=${value} key=${value}>${text}</option>`)}
    </select><${Icon} name="down" size=${12} /></span>
  </div>`;
}

export function SpanField({ of, name, label, required = false }) {
  const { amount, unit } = of.values[name];
  return html`<div class="field">
    <label for=${of.id + name}>${label}</label>
    <div class="span-field">
      <input id=${of.id + name} type="number" min="0" step="any" value=${amount} required=${required}
        aria-invalid=${of.wrong === name ? "true" : undefined}
        onInput=${(event) => of.set(name, { amount: event.target.value, unit })} />
      <span class="select-box"><select aria-label=${`Unit of ${label}`} value=${unit}
        onChange=${(event) => of.set(name, { amount, unit: event.target.value })}>
        ${Object.keys(UNITS).map((one) => html`<option value=${one} key=${one}>${one}</option>`)}
      </select><${Icon} name="down" size=${12} /></span>
    </div>
  </div>`;
}
