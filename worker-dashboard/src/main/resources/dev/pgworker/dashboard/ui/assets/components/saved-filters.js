/* Filters of a list that a user keeps under a name, in this browser. */

import { html, useRef, useState } from "../lib.js";
import { href, Link } from "../router.js";
import { Button, useDismiss } from "./button.js";
import { Icon } from "./icons.js";
import { OneLine } from "./words.js";

const KEY = "pgworker.filters";
const MOST = 30;

/* [{page, name, query}] of all pages, by name. */
function stored() {
  try {
    const all = JSON.parse(localStorage.getItem(KEY) ?? "[]");
    return Array.isArray(all) ? all.filter((one) => typeof one?.name === "string" && one.query) : [];
  } catch {
    return [];
  }
}

/**
 * A button that opens the saved filters of a page, with a field that saves the current ones.
 *
 * @param query the filters of the page, by name
 */
export function SavedFilters({ page, query }) {
  const [open, setOpen] = useState(false);
  const box = useRef(null);
  useDismiss(box, open, () => setOpen(false));
  const focus = () => box.current.querySelector("button").focus();
  return html`<div class="pill" ref=${box}>
    <button type="button" class="pill-main" aria-expanded=${open ? "true" : "false"} onClick=${() => setOpen(!open)}>
      <span>Saved filters</span><${Icon} name="down" size=${12} /></button>
    ${open && html`<${List} page=${page} query=${query} focus=${focus} close=${() => (setOpen(false), focus())} />`}
  </div>`;
}

function List({ page, query, focus, close }) {
  const [all, setAll] = useState(stored);
  const [name, setName] = useState("");
  const [problem, setProblem] = useState("");
  const mine = all.filter((one) => one.page === page);
  const empty = Object.values(query).every((value) => !value);
  /* Another tab may have changed them since they were read. */
  const keep = (lost, ...added) => {
    const next = [...stored().filter((one) => one.page !== page || one.name !== lost), ...added];
    next.sort((one, other) => one.name.localeCompare(other.name));
    try {
      localStorage.setItem(KEY, JSON.stringify(next));
      setAll(next);
      setName("");
    } catch {
      setProblem("This browser does not store filters.");
    }
  };
  const save = (event) => {
    event.preventDefault();
    const given = name.trim();
    if (mine.length >= MOST && !mine.some((one) => one.name === given)) {
      setProblem(`There are ${MOST} filters already. Delete one first.`);
    } else {
      keep(given, { page, name: given, query });
    }
  };
  return html`<div class="popover pill-popover saved-filters">
    ${mine.length === 0 && html`<p class="muted">None yet.</p>`}
    <ul>${mine.map(
      (one) => html`<li key=${one.name}>
        <${Link} to=${href([page], one.query)} onClick=${close}><${OneLine} text=${one.name} /></${Link}>
        <${Button} kind="quiet" icon="close" aria-label=${`Delete filter ${one.name}`}
          onClick=${() => (keep(one.name), focus())} /></li>`,
    )}</ul>
    ${
      !empty &&
      html`<form onSubmit=${save}>
        <label for="filter-name">Save the current filter as</label>
        <input id="filter-name" required=${true} pattern=".*\\S.*" title="A name" maxlength="60" autocomplete="off" value=${name}
          onInput=${(event) => setName(event.target.value)} />
        ${problem && html`<p class="field-error" role="alert">${problem}</p>`}
        <div class="form-end"><button class="button primary"><span>Save</span></button></div>
      </form>`
    }
  </div>`;
}
