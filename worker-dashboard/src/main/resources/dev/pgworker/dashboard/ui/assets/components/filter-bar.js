/* The filters of a list. Each stands in the URL, so a list can be shared and found again by the back button. */

import { html, classes, useEffect, useId, useRef, useState } from "../lib.js";
import { useApi } from "../session.js";
import { setQuery } from "../router.js";
import { clock, fromInput, local, parse, toInput } from "../time.js";
import { cutAt, plain } from "../text.js";
import { serverNow } from "../session.js";
import { Button, useDismiss } from "./button.js";
import { Icon } from "./icons.js";

const HOUR = 3600_000;

/** Changes filters and goes back to the first page. */
export function setFilters(changes) {
  setQuery({ ...changes, after: null });
}

/**
 * @param filters values by name
 * @param fields names of the filters to offer besides the search and the time
 * @param timeWord what the time filter is about
 */
export function FilterBar({ filters, fields, timeWord, searchLabel, children }) {
  const active = Object.keys(filters).filter((name) => !["state", "outcome"].includes(name)).length > 0;
  return html`<div class="filter-bar" role="search">
    <${SearchField} value=${filters.search ?? ""} label=${searchLabel} />
    ${fields.map((name) => html`<${TextFilter} key=${name} name=${name} value=${filters[name] ?? ""} />`)}
    <${TimeFilter} word=${timeWord} from=${filters.from} to=${filters.to} />
    ${
      active &&
      html`<${Button} kind="quiet"
      onClick=${() =>
        setFilters(
          Object.fromEntries(
            Object.keys(filters)
              .filter((name) => !["state", "outcome"].includes(name))
              .map((name) => [name, null]),
          ),
        )}>Clear</${Button}>`
    }
    <div class="filter-end">${children}</div>
  </div>`;
}

/** @param name the filter that the text is */
export function SearchField({ value, label, name = "search" }) {
  const [text, setText] = useState(value);
  useEffect(() => setText(value), [value]);
  const submit = (event) => {
    event.preventDefault();
    setFilters({ [name]: text });
  };
  return html`<form class="search" onSubmit=${submit}>
    <${Icon} name="search" />
    <input type="search" aria-label=${label} placeholder=${label} value=${text} maxlength="1000" spellcheck=${false}
      onInput=${(event) => setText(event.target.value)}
      onChange=${(event) => event.target.value === "" && value !== "" && setFilters({ [name]: null })} />
    <kbd aria-hidden="true">/</kbd>
  </form>`;
}

const WORDS = { task: "Task", queue: "Queue", key: "Key", flag: "Flag" };

/* What tasks and queues there are is asked when somebody opens the filter. */
const SUGGESTIONS = {
  task: async (api) => (await api.get("tasks", { window: "1h" })).tasks.map((task) => task.name),
  queue: async (api) => (await api.get("queues", { limit: 100 })).queues.map((queue) => queue.name),
};

/** Names to choose from while typing; empty until they are known. */
export function useSuggestions(name, wanted) {
  const api = useApi();
  const [names, setNames] = useState([]);
  useEffect(() => {
    if (wanted && SUGGESTIONS[name]) {
      // Suggestions are a convenience: without them the name is typed.
      SUGGESTIONS[name](api).then(setNames, () => setNames([]));
    }
  }, [api, name, wanted]);
  return names;
}

function Pill({ label, value, clear, children }) {
  const [open, setOpen] = useState(false);
  const box = useRef(null);
  useDismiss(box, open, () => setOpen(false));
  const focus = () => box.current.querySelector("button").focus();
  useEffect(() => {
    if (open) {
      box.current.querySelector("input")?.focus();
    }
  }, [open]);
  return html`<div class=${classes("pill", value && "set")} ref=${box}>
    <button type="button" class="pill-main" aria-expanded=${open ? "true" : "false"} onClick=${() => setOpen(!open)}>
      ${!value && html`<${Icon} name="plus" size=${12} />`}<span>${label}</span>${value && html`<b>${value}</b>`}
    </button>
    ${
      value &&
      html`<button type="button" class="pill-clear" aria-label=${`Remove filter ${label}`} onClick=${() => (clear(), focus())}>
      <${Icon} name="close" size=${12} /></button>`
    }
    ${open && html`<div class="popover pill-popover">${children(() => (setOpen(false), focus()))}</div>`}
  </div>`;
}

export function TextFilter({ name, value }) {
  const label = WORDS[name];
  return html`<${Pill} label=${label} value=${value && plain(cutAt(value, 40))} clear=${() => setFilters({ [name]: null })}>
    ${(close) => html`<${TextForm} name=${name} label=${label} value=${value} close=${close} />`}
  </${Pill}>`;
}

function TextForm({ name, label, value, close }) {
  const [text, setText] = useState(value);
  const names = useSuggestions(name, true);
  const id = useId();
  const submit = (event) => {
    event.preventDefault();
    close();
    setFilters({ [name]: text });
  };
  return html`<form onSubmit=${submit}>
    <label for=${id}>${label} is exactly</label>
    <input id=${id} value=${text} list=${id + "names"} autocomplete="off" spellcheck=${false}
      onInput=${(event) => setText(event.target.value)} />
    <datalist id=${id + "names"}>${names.map((one) => html`<option value=${one} key=${one}></option>`)}</datalist>
    <div class="form-end"><button class="button primary"><span>Apply</span></button></div>
  </form>`;
}

const PRESETS = [
  ["Last hour", -HOUR, 0],
  ["Last 24 h", -24 * HOUR, 0],
  ["Last 7 days", -168 * HOUR, 0],
];

function TimeFilter({ word, from, to }) {
  return html`<${Pill} label=${word} value=${rangeText(from, to)} clear=${() => setFilters({ from: null, to: null })}>
    ${(close) => html`<${TimeForm} from=${from} to=${to} close=${close} />`}
  </${Pill}>`;
}

function rangeText(from, to) {
  const text = (iso) => {
    const time = parse(iso);
    return time === null ? plain(cutAt(iso, 30)) : local(time).replace(/:\d\d$/, "");
  };
  if (from && to) {
    const [start, end] = [parse(from), parse(to)];
    const sameDay = start !== null && end !== null && new Date(start).toDateString() === new Date(end).toDateString();
    return `${text(from)} – ${sameDay ? clock(end, false) : text(to)}`;
  }
  return from ? "from " + text(from) : to ? "before " + text(to) : "";
}

function TimeForm({ from, to, close }) {
  const [start, setStart] = useState(from && parse(from) !== null ? toInput(parse(from)) : "");
  const [end, setEnd] = useState(to && parse(to) !== null ? toInput(parse(to)) : "");
  const startId = useId();
  const endId = useId();
  const apply = (first, last) => {
    close();
    setFilters({ from: first, to: last });
  };
  const submit = (event) => {
    event.preventDefault();
    apply(fromInput(start), fromInput(end));
  };
  const preset = (first, last) =>
    apply(new Date(serverNow() + first).toISOString(), last === 0 ? null : new Date(serverNow() + last).toISOString());
  return html`<form onSubmit=${submit}>
    <div class="presets">${PRESETS.map(
      ([label, first, last]) =>
        html`<button type="button" class="button" key=${label} onClick=${() => preset(first, last)}><span>${label}
      </span></button>`,
    )}</div>
    <label for=${startId}>From (local time)</label>
    <input id=${startId} type="datetime-local" value=${start} onInput=${(event) => setStart(event.target.value)} />
    <label for=${endId}>Before</label>
    <input id=${endId} type="datetime-local" value=${end} onInput=${(event) => setEnd(event.target.value)} />
    <div class="form-end"><button class="button primary"><span>Apply</span></button></div>
  </form>`;
}
