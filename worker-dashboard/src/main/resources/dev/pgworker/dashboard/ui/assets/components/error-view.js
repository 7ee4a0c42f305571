/* An error: its message first, then the frames of the application, then the rest on demand. */

import { html, useMemo, useState } from "../lib.js";
import { cutAt, number, plural, splitError } from "../text.js";
import { CopyButton } from "./button.js";
import { Foreign } from "./words.js";

const FIRST_LINES = 12;
const CHUNK = 500;
const LONGEST_LINE = 1000;

/* Frames that tell little about a job: the platform, Spring, and the worker itself. */
const LIBRARY =
  /^\s*at (?:[\w.-]+\/+)?(?:java|javax|jdk|sun|com\.sun|kotlin|kotlinx|org\.springframework|org\.postgresql|com\.zaxxer|reactor|dev\.pgworker(?!\.samples\.))\./;

function kindOf(line) {
  if (!/^\s*(?:at |\.\.\. \d)/.test(line)) {
    return "text";
  }
  return LIBRARY.test(line) || line.trim().startsWith("...") ? "library" : "own";
}

export function ErrorView({ error }) {
  const { type, message, rest } = useMemo(() => splitError(error), [error]);
  const [shown, setShown] = useState(FIRST_LINES);
  const left = rest.length - shown;
  // A button for less than its own height would be no gain.
  const hidden = left > 2 ? left : 0;
  const lines = hidden > 0 ? rest.slice(0, shown) : rest;
  return html`<div class="error-view">
    <div class="error-head">
      <div>
        <p class="error-message"><${Foreign} text=${message} most=${LONGEST_LINE} expandable=${true} /></p>
        ${type && message !== type && html`<p class="error-type mono"><${Foreign} text=${type} /></p>`}
      </div>
      <${CopyButton} text=${error} label="Copy error" />
    </div>
    ${
      rest.length > 0 &&
      html`<div class="frames mono" tabindex="0" role="group" aria-label="Stack trace">
      ${lines.map(
        (line, at) => html`<div class=${"frame " + kindOf(cutAt(line, 300))} key=${at}>
        <${Foreign} text=${line} most=${LONGEST_LINE} expandable=${true} /></div>`,
      )}
    </div>`
    }
    ${
      hidden > 0 &&
      html`<p class="error-more">
      <button type="button" class="link" onClick=${() => setShown(shown + CHUNK)}>Show ${
        hidden > CHUNK ? `${number(CHUNK)} of ${plural(hidden, "more line")}` : plural(hidden, "more line")
      }</button>
    </p>`
    }
    ${
      shown > FIRST_LINES &&
      html`<p class="error-more">
      <button type="button" class="link" onClick=${() => setShown(FIRST_LINES)}>Show less</button></p>`
    }
  </div>`;
}
