/* The list of keyboard shortcuts. */

import { html } from "../lib.js";
import { Dialog } from "./dialog.js";

/** @type {[string, [string, string][]][]} */
const GROUPS = [
  [
    "Go to",
    [
      ["g o", "Overview"],
      ["g j", "Jobs"],
      ["g h", "History"],
      ["g q", "Queues"],
      ["g t", "Tasks"],
      ["g r", "Recurring jobs"],
      ["g l", "Limits"],
      ["g w", "Workers"],
      ["g m", "Maintenance"],
    ],
  ],
  [
    "Lists",
    [
      ["j", "Next row"],
      ["k", "Previous row"],
      ["x", "Select the row"],
      ["Enter", "Open the row"],
      ["/", "Search"],
      ["r", "Refresh"],
    ],
  ],
  [
    "Everywhere",
    [
      ["c", "Add a job"],
      ["t", "Times by the clock or from now"],
      ["Esc", "Close, or clear the selection"],
      ["?", "This help"],
    ],
  ],
];

export function ShortcutsDialog({ close }) {
  return html`<${Dialog} title="Keyboard shortcuts" close=${close}>
    <div class="shortcuts">
      ${GROUPS.map(
        ([title, keys]) => html`<section key=${title}>
          <h3>${title}</h3>
          <dl>
            ${keys.map(
              ([key, words]) => html`<div key=${key}><dt>${words}</dt>
                <dd>${key.split(" ").map((one) => html`<kbd key=${one}>${one}</kbd>`)}</dd></div>`,
            )}
          </dl>
        </section>`,
      )}
    </div>
  </${Dialog}>`;
}
