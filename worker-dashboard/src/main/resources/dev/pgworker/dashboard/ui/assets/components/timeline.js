/* The attempts of a job, the newest first. */

import { html } from "../lib.js";
import { duration } from "../time.js";
import { ErrorView } from "./error-view.js";
import { HiddenJson, JsonView } from "./json-view.js";
import { OneLine, State, Time } from "./words.js";
import { CopyButton } from "./button.js";

export function Timeline({ entries }) {
  return html`<ol class="timeline">
    ${entries.map(
      (entry, at) => html`<${Entry} key=${entry.endedAt + entry.attempt} entry=${entry}
      open=${at === 0 && entry.outcome === "succeeded"} />`,
    )}
  </ol>`;
}

function Entry({ entry, open }) {
  const details = entry.error !== null || hasResult(entry) || entry.traceId !== null;
  return html`<li class=${"is-" + entry.outcome}>
    <div class="timeline-line">
      <${State} state=${entry.outcome} />
      <span class="timeline-what">${
        entry.attempt > 0 ? `Attempt ${entry.attempt} of ${entry.maxAttempts}` : "Without an attempt"
      }</span>
      <span class="muted num">${entry.tookMs === null ? "" : duration(entry.tookMs)}</span>
      ${entry.workerId && html`<${OneLine} text=${entry.workerId} class="mono muted" />`}
      <span class="timeline-time"><${Time} iso=${entry.endedAt} focusable=${true} /></span>
    </div>
    ${
      details &&
      html`<details open=${open}>
      <summary>${summaryOf(entry)}</summary>
      ${entry.error !== null && html`<${ErrorView} error=${entry.error} />`}
      ${
        hasResult(entry) &&
        html`<h3>Result</h3>
        ${
          entry.resultHidden
            ? html`<${HiddenJson} what="Results" />`
            : html`<${JsonView} text=${entry.result} cut=${entry.resultCut} />`
        }`
      }
      ${
        entry.traceId !== null &&
        html`<p class="trace"><span class="muted">Trace</span> <code>${entry.traceId}</code>
        <${CopyButton} text=${entry.traceId} label="Copy trace id" /></p>`
      }
    </details>`
    }
  </li>`;
}

function hasResult(entry) {
  return entry.resultHidden || entry.result !== null;
}

function summaryOf(entry) {
  const parts = [
    entry.error !== null && "Error",
    hasResult(entry) && "Result",
    entry.traceId !== null && "Trace",
  ].filter(Boolean);
  return parts.length > 1 ? parts.slice(0, -1).join(", ") + " and " + parts[parts.length - 1].toLowerCase() : parts[0];
}
