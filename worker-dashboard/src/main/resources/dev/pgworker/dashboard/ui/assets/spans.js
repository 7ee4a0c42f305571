/* What forms have in common: spans of time, lists, and which field an answer is about. Pure functions. */

export const UNITS = { seconds: 1, minutes: 60, hours: 3600, days: 86_400 };

/** An amount of the largest unit of which it is a whole number. */
export function span(ms) {
  if (ms === null || ms === undefined) {
    return { amount: "", unit: "minutes" };
  }
  const seconds = ms / 1000;
  const unit =
    Object.keys(UNITS)
      .reverse()
      .find((one) => seconds >= UNITS[one] && seconds % UNITS[one] === 0) ?? "seconds";
  return { amount: String(seconds / UNITS[unit]), unit };
}

/** The same as the API takes it. */
export function isoSpan({ amount, unit }) {
  return amount === "" ? undefined : `PT${Number(amount) * UNITS[unit]}S`;
}

/** Texts separated by commas. One may contain a comma itself: those that nobody touched stay as they are. */
export function listOf(text, before = []) {
  return text === before.join(", ")
    ? before
    : text
        .split(/[,\n]/)
        .map((one) => one.trim())
        .filter(Boolean);
}

/** Which of a form's values an answer of the API is about; null if it names none. */
export function fieldIn(values, message) {
  const word = /^[a-zA-Z]+/.exec(message)?.[0] ?? "";
  return Object.hasOwn(values, word) ? word : null;
}
