/*
 * Tables. On narrow screens their rows are stacked, which takes their meaning from table elements; the roles keep it.
 */

import { html, classes } from "../lib.js";
import { Icon } from "./icons.js";

/**
 * @param columns [{id, label, class, sort: {by, direction}, hidden: label only for readers}]; the class decides on width
 *     and narrow screens
 * @param sorted the `by` of the column that orders the rows
 */
export function Table({ label, columns, sorted, onSort, children, class: name }) {
  return html`<div class="table-box">
    <table class=${classes("table", name)} role="table" aria-label=${label}>
      <thead role="rowgroup">
        <tr role="row">
          ${columns.map((column) => html`<${Heading} key=${column.id} column=${column} sorted=${sorted} onSort=${onSort} />`)}
        </tr>
      </thead>
      <tbody role="rowgroup">${children}</tbody>
    </table>
  </div>`;
}

function Heading({ column, sorted, onSort }) {
  const { label, sort } = column;
  const name = classes("c-" + column.id, column.class);
  if (!sort) {
    return html`<th role="columnheader" scope="col" class=${name}>
      ${column.content ?? html`<span class=${column.hidden ? "reader" : ""}>${label}</span>`}
    </th>`;
  }
  const option = sort.find((one) => one.by === sorted);
  const next = option ? sort[(sort.indexOf(option) + 1) % sort.length] : sort[0];
  return html`<th role="columnheader" scope="col" class=${name} aria-sort=${option ? option.direction : "none"}>
    <button type="button" class=${classes("sort", option && "on")} onClick=${() => onSort(next.by)}>
      ${label}${option && html`<span class=${"arrow " + option.direction}><${Icon} name="up" size=${12} /></span>`}
    </button>
  </th>`;
}

/** A cell; label is what stands beside it where rows are stacked. */
export function Cell({ id, label, children, class: name, ...rest }) {
  return html`<td role="cell" class=${classes("c-" + id, name)} data-label=${label} ...${rest}>${children}</td>`;
}

export function Row({ children, class: name, ...rest }) {
  return html`<tr role="row" class=${name} ...${rest}>${children}</tr>`;
}
