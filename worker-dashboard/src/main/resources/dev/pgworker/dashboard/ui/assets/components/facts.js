/* Names and values beside each other. */

import { html } from "../lib.js";

/** @param items [[name, value]]; those without a value are left out */
export function Facts({ items }) {
  return html`<dl class="facts">
    ${items
      .filter(([, value]) => value !== null && value !== undefined && value !== false)
      .map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd>${value}</dd></div>`)}
  </dl>`;
}
