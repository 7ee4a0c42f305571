/* JSON as a tree that folds. Parts that nobody opened are not built, so size and depth do not matter. */

import { html, useMemo, useState } from "../lib.js";
import { format, parse } from "../json.js";
import { bytes, number } from "../text.js";
import { CopyButton } from "./button.js";
import { Icon } from "./icons.js";
import { Foreign } from "./words.js";

const OPEN_DEPTH = 3;
const OPEN_SIZE = 60;
const CHUNK = 100;
const MOST_RAW = 20_000;

/** JSON text: as a tree, or as it is where it is no JSON, for example because it was cut. */
export function JsonView({ text, cut = false }) {
  const tree = useMemo(() => {
    try {
      return parse(text);
    } catch {
      return null;
    }
  }, [text]);
  return html`<div class="json">
    <div class="json-tools">
      <span class="muted num">${bytes(text.length)}${cut ? ", the beginning of a larger value" : ""}</span>
      <${CopyButton} text=${() => (tree ? format(text) : text)} label="Copy JSON" />
    </div>
    ${
      tree
        ? html`<div class="json-tree" tabindex="0" role="group" aria-label="JSON">
        <${Value} node=${tree} depth=${0} last=${true} /></div>`
        : html`<pre class="json-raw" tabindex="0"><${Foreign} text=${text} most=${MOST_RAW} expandable=${true} /></pre>`
    }
  </div>`;
}

/** Stands in the place of JSON that this user may not see. */
export function HiddenJson({ what }) {
  return html`<p class="muted hidden-json"><${Icon} name="lock" />
    <span>${what} are hidden. Set <code>pgworker.dashboard.payloads=shown</code> to show all, or declare a <code>DashboardPayloads</code> bean that decides about each.</span></p>`;
}

function Value({ node, name, depth, last }) {
  const comma = last ? "" : ",";
  if (node.type === "object" || node.type === "array") {
    return html`<${Container} node=${node} name=${name} depth=${depth} comma=${comma} />`;
  }
  return html`<div class="json-line"><${Name} name=${name} /><${Scalar} node=${node} />${comma}</div>`;
}

function Name({ name }) {
  return name === undefined
    ? null
    : html`<span
    class="json-name">"<${Foreign} text=${escaped(name)} expandable=${true} />"</span>: `;
}

function Scalar({ node }) {
  if (node.type === "string") {
    return html`<span class="json-string">"<${Foreign} text=${node.raw.slice(1, -1)} most=${500} expandable=${true} />"</span>`;
  }
  return html`<span class=${"json-" + node.type}><${Foreign} text=${node.raw} expandable=${true} /></span>`;
}

/* A name as JSON writes it, without the quotation marks around it. */
function escaped(name) {
  return JSON.stringify(name).slice(1, -1);
}

function Container({ node, name, depth, comma }) {
  const children = node.type === "object" ? node.entries : node.items;
  const [open, setOpen] = useState(depth === 0 || (depth < OPEN_DEPTH && children.length <= OPEN_SIZE));
  const [shown, setShown] = useState(CHUNK);
  const [start, end] = node.type === "object" ? ["{", "}"] : ["[", "]"];
  if (children.length === 0) {
    return html`<div class="json-line"><${Name} name=${name} />${start}${end}${comma}</div>`;
  }
  const what =
    children.length === 1
      ? node.type === "object"
        ? "property"
        : "item"
      : node.type === "object"
        ? "properties"
        : "items";
  return html`<div>
    <div class="json-line">
      <button type="button" class="json-fold" aria-expanded=${open ? "true" : "false"}
        aria-label=${`${name ?? "value"}, ${children.length} ${what}`} onClick=${() => setOpen(!open)}></button>
      <${Name} name=${name} />${start}${
        !open && html`<span class="json-more"> ${number(children.length)} ${what} </span>${end}${comma}`
      }
    </div>
    ${
      open &&
      html`
      <div class="json-children">
        ${children.slice(0, shown).map(
          (child, at) =>
            html`<${Value} key=${at} node=${child.value ?? child} name=${node.type === "object" ? child.key : undefined}
            depth=${depth + 1} last=${at === children.length - 1} />`,
        )}
        ${
          children.length > shown &&
          html`<div class="json-line">
          <button type="button" class="link"
            onClick=${() => setShown(shown + 10 * CHUNK)}>Show more of ${number(children.length - shown)} ${what}</button></div>`
        }
      </div>
      <div class="json-line">${end}${comma}</div>`
    }
  </div>`;
}
