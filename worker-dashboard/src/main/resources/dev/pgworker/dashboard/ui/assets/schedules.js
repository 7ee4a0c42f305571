/* What the pages say about schedules, and the values of their form. Pure functions. */

import { parse } from "./json.js";
import { fieldIn, isoSpan, listOf, span } from "./spans.js";
import { fromInput, parse as parseTime, toInputSeconds } from "./time.js";

export const KINDS = {
  crontab: "Crontab, five fields",
  cron: "Cron expression, six fields",
  "fixed-rate": "Fixed rate",
  "fixed-delay": "Fixed delay",
};

export const OVERLAPS = {
  allow: "Both may run",
  queue: "The next one waits",
  skip: "The next one is skipped",
};

export const MISFIRES = {
  skip: "They are skipped",
  "run-once": "One run makes up for all",
  "run-all": "Each of them takes place",
};

/** Which schedules can be listed apart. */
export const SHOWN = {
  paused: { label: "Paused", query: { paused: true } },
  active: { label: "Not paused", query: { paused: false } },
  problem: { label: "With a problem", query: { problem: true } },
};

const FILTERS = ["prefix", "task", "show"];

/** The filters of the list, as they stand in the URL; what it says wrongly is left out. */
export function scheduleFilters(query) {
  /** @type {{ show?: string }} */
  const filters = {};
  for (const name of FILTERS) {
    const value = query.get(name);
    if (value && (name !== "show" || Object.hasOwn(SHOWN, value))) {
      filters[name] = value;
    }
  }
  return filters;
}

/**
 * The same as the API takes them.
 *
 * @param {{ show?: string }} filters
 */
export function scheduleQuery({ show, ...filters }) {
  return show ? { ...filters, ...SHOWN[show].query } : filters;
}

export function usesPattern(kind) {
  return kind === "crontab" || kind === "cron";
}

/* A form has no more than seconds; a time that nobody touched stays as it is. */
function inputTime(iso) {
  const time = iso ? parseTime(iso) : null;
  return time === null ? "" : toInputSeconds(time);
}

function isoTime(text, before) {
  if (text === "") {
    return undefined;
  }
  return before && inputTime(before) === text ? before : (fromInput(text) ?? text);
}

/** The values of the form; of a schedule that is there, or of one to be made. */
export function formValues(schedule, zone) {
  return {
    name: schedule?.name ?? "",
    task: schedule?.task ?? "",
    payload: schedule ? (schedule.payloadWhole ? schedule.payload : "") : "{}",
    kind: schedule?.kind ?? "crontab",
    expression: schedule?.expression ?? "",
    zone: schedule?.zone ?? zone,
    every: span(schedule?.everyMs),
    origin: inputTime(schedule?.origin),
    overlap: schedule?.overlap ?? "skip",
    misfire: schedule?.misfire ?? "skip",
    backfill: span(schedule?.backfillMs),
    jitter: span(schedule?.jitterMs),
    startsAt: inputTime(schedule?.startsAt),
    endsAt: inputTime(schedule?.endsAt),
    queue: schedule?.queue ?? "",
    key: schedule?.key ?? "",
    keyMode: schedule?.keyMode?.replaceAll("-", "_") ?? "replace",
    priority: schedule?.priority ? String(schedule.priority) : "",
    maxAttempts: schedule?.maxAttempts ? String(schedule.maxAttempts) : "",
    flags: (schedule?.flags ?? []).join(", "),
  };
}

/**
 * When it is due, as the API takes it.
 *
 * @returns {Record<string, any>}
 */
export function recurrenceRequest(values, schedule) {
  const times = {
    startsAt: isoTime(values.startsAt, schedule?.startsAt),
    endsAt: isoTime(values.endsAt, schedule?.endsAt),
  };
  if (usesPattern(values.kind)) {
    return { kind: values.kind, expression: values.expression, zone: values.zone, ...times };
  }
  const origin = values.kind === "fixed-rate" ? { origin: isoTime(values.origin, schedule?.origin) } : {};
  return { kind: values.kind, every: isoSpan(values.every), ...origin, ...times };
}

/** All of the form, as the API takes it; an empty payload of a schedule that is there leaves its payload as it is. */
export function request(values, schedule) {
  const wanted = {
    ...recurrenceRequest(values, schedule),
    name: values.name,
    task: values.task,
    payload: values.payload.trim() || undefined,
    overlap: values.overlap,
    misfire: values.misfire,
    backfill: isoSpan(values.backfill),
    jitter: isoSpan(values.jitter),
    queue: values.queue || undefined,
    key: values.key || undefined,
    keyMode: values.key ? values.keyMode : undefined,
    flags: listOf(values.flags, schedule?.flags),
  };
  for (const name of ["priority", "maxAttempts"]) {
    if (values[name] !== "") {
      wanted[name] = Number(values[name]);
    }
  }
  return schedule ? { ...wanted, updatedAt: schedule.updatedAt } : wanted;
}

/** The field that an answer of the API is about; null if it names none. */
export function fieldOf(message) {
  return fieldIn(formValues(null, ""), message);
}

/** The name in the payload of a job that a schedule has added; null if it says none. */
export function scheduleOf(payload) {
  try {
    const cron = entry(parse(payload), "_cron");
    const name = cron && entry(cron, "schedule");
    return name?.type === "string" && name.text !== "" ? name.text : null;
  } catch {
    return null;
  }
}

function entry(node, key) {
  return node.type === "object" ? node.entries.findLast((one) => one.key === key)?.value : undefined;
}
