/* The frame of every page: title, heading, and what to show while there is nothing, nothing yet, or an error. */

import { html, classes, useEffect } from "../lib.js";
import { Button } from "./button.js";
import { Icon } from "./icons.js";
import { Foreign } from "./words.js";

/** A page with its title, which the browser shows too; the actions stand beside the heading. */
export function Page({ title, heading, actions, above, children }) {
  useEffect(() => {
    document.title = title + " · PgWorker";
  }, [title]);
  return html`<div class="page">
    ${above}
    <div class="page-head">
      <h1 tabindex="-1" id="page-title">${heading ?? title}</h1>
      <div class="page-actions">${actions}</div>
    </div>
    ${children}
  </div>`;
}

/** A part of a page with a heading of its own. */
export function Panel({ title, id, actions, note, flush = false, children, class: name }) {
  return html`<section class=${classes("panel", name)} aria-labelledby=${id}>
    <div class="panel-head">
      <h2 id=${id}>${title}</h2>
      ${note && html`<span class="panel-note">${note}</span>`}
      ${actions && html`<div class="panel-actions">${actions}</div>`}
    </div>
    <div class=${flush ? "panel-flush" : "panel-body"}>${children}</div>
  </section>`;
}

/** Nothing to show, and what to do about it. */
export function Empty({ icon = "info", title, children }) {
  return html`<div class="empty">
    <${Icon} name=${icon} size=${20} />
    <p class="empty-title">${title}</p>
    ${children && html`<div class="empty-text">${children}</div>`}
  </div>`;
}

/** Why data could not be loaded, with a way to try again. */
export function LoadError({ error, reload }) {
  return html`<div class="notice error" role="alert">
    <${Icon} name="warning" />
    <p><${Foreign} text=${error.message} most=${2000} /></p>
    <${Button} onClick=${reload}>Try again</${Button}>
  </div>`;
}

/** A remark in a coloured line: "info", "warning" or "error". */
export function Notice({ level = "info", children, actions }) {
  return html`<div class=${classes("notice", level)}>
    <${Icon} name=${level === "info" ? "info" : "warning"} />
    <div class="notice-text">${children}</div>
    ${actions}
  </div>`;
}

/** Grey lines in the place of what is being loaded. */
export function Skeleton({ lines = 6 }) {
  return html`<div class="skeleton" aria-busy="true" aria-label="Loading" role="status">
    ${Array.from({ length: lines }, (_, at) => html`<span key=${at}></span>`)}
  </div>`;
}

/**
 * What useResource gave: the error, the skeleton, or the data with an error above them.
 *
 * @param children function of the data
 */
export function Loaded({ resource, lines, children }) {
  const { data, error, reload } = resource;
  return html`
    ${error && html`<${LoadError} error=${error} reload=${reload} />`}
    ${data === null ? !error && html`<${Skeleton} lines=${lines} />` : children(data)}
  `;
}

export function RefreshButton({ resource }) {
  return html`<${Button} icon="refresh" kind="quiet" aria-label="Refresh" data-tip="Refresh (r)"
    class=${resource.loading && "busy"} onClick=${resource.reload} />`;
}
