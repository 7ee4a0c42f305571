/* What the pages say about limits, and the values of their form. Pure functions. */

import { fieldIn, isoSpan, listOf, span } from "./spans.js";
import { number } from "./text.js";

export const KINDS = {
  running: "Jobs that run at once",
  starts: "Jobs that start in a period",
  shares: "Fair shares of a field's values",
};

function period(ms) {
  const { amount, unit } = span(ms);
  return `${amount} ${amount === "1" ? unit.slice(0, -1) : unit}`;
}

function entries(weights) {
  return Object.entries(weights ?? {});
}

function weightsText(weights) {
  return entries(weights)
    .map(([value, weight]) => `${value}=${weight}`)
    .join(", ");
}

/** What a limit allows, in words. */
export function allows(limit) {
  if (limit.kind === null) {
    return "unknown";
  }
  const per = limit.per ? ` per ${limit.per}` : "";
  if (limit.kind === "shares") {
    return `fair shares${per}${entries(limit.weights)
      .map(([value, weight]) => `, ${value} ${weight}`)
      .join("")}`;
  }
  return limit.kind === "running"
    ? `${number(limit.maxRunning)} running${per}`
    : `${number(limit.maxStarts)} starts in ${period(limit.periodMs)}, burst ${number(limit.burst)}${per && "," + per}`;
}

/** Why a limit is not simply in effect; null if it is. */
export function phase(limit) {
  return limit.phase === "applying"
    ? "is being put into effect"
    : limit.phase === "removing"
      ? "is being removed"
      : null;
}

function text(value) {
  return value === null || value === undefined ? "" : String(value);
}

/** The values of the form; of a limit that is there, or of one to be made. */
export function formValues(limit) {
  return {
    name: limit?.name ?? "",
    tasks: (limit?.tasks ?? []).join(", "),
    kind: limit?.kind ?? "running",
    maxRunning: text(limit?.maxRunning),
    maxStarts: text(limit?.maxStarts),
    period: limit?.kind === "starts" ? span(limit.periodMs) : { amount: "1", unit: "minutes" },
    burst: text(limit?.burst),
    weights: weightsText(limit?.weights),
    per: limit?.per ?? "",
  };
}

/** All of the form, as the API takes it. */
export function request(values, limit) {
  const numbers =
    values.kind === "running"
      ? { maxRunning: values.maxRunning || undefined }
      : values.kind === "shares"
        ? {
            weights: listOf(
              values.weights,
              entries(limit?.weights).map((each) => each.join("=")),
            ),
          }
        : {
            maxStarts: values.maxStarts || undefined,
            period: isoSpan(values.period),
            burst: values.burst || undefined,
          };
  const wanted = {
    name: values.name,
    tasks: listOf(values.tasks, limit?.tasks),
    per: values.per || undefined,
    ...numbers,
  };
  return limit ? { ...wanted, updatedAt: limit.updatedAt } : wanted;
}

/** The field that an answer of the API is about; null if it names none. */
export function fieldOf(message) {
  return fieldIn(formValues(null), message);
}
