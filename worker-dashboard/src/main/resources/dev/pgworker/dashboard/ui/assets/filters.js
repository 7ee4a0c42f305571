/* Filters of lists, as they stand in the URL. Pure functions. */

export const JOB_STATES = ["ready", "scheduled", "retrying", "limited", "running", "failed"];
export const OUTCOMES = ["succeeded", "retried", "failed", "removed", "cancelled", "recovered"];
export const JOB_SORTS = {
  newest: "Newest first",
  oldest: "Oldest first",
  run_at: "Due next",
  priority: "As workers claim them",
  updated: "Changed last",
  attempts: "Most attempts",
};

const JOB_FILTERS = ["state", "task", "queue", "key", "flag", "search", "from", "to"];
const HISTORY_FILTERS = ["outcome", "task", "queue", "key", "search", "from", "to"];

/** The filters of the list of jobs; what the URL says wrongly is left out. */
export function jobFilters(query) {
  const filters = pick(query, JOB_FILTERS);
  if (filters.state && !JOB_STATES.includes(filters.state)) {
    delete filters.state;
  }
  return filters;
}

export function jobSort(query) {
  const sort = query.get("sort");
  return Object.hasOwn(JOB_SORTS, sort ?? "") ? sort : "newest";
}

export function historyFilters(query) {
  const filters = pick(query, HISTORY_FILTERS);
  if (filters.outcome && !OUTCOMES.includes(filters.outcome)) {
    delete filters.outcome;
  }
  return filters;
}

function pick(query, names) {
  const filters = {};
  for (const name of names) {
    const value = query.get(name);
    if (value) {
      filters[name] = value;
    }
  }
  return filters;
}

/** "failed jobs of task send_email in queue mail", for people. Values are shortened. */
export function inWords(filters, count = 2) {
  const noun = count === 1 ? "job" : "jobs";
  const parts = [filters.state ? `${filters.state} ${noun}` : noun];
  const add = (word, value) => value && parts.push(`${word} “${value.length > 40 ? value.slice(0, 40) + "…" : value}”`);
  add("of task", filters.task);
  add("in queue", filters.queue);
  add("with key", filters.key);
  add("with flag", filters.flag);
  add("containing", filters.search);
  if (filters.from || filters.to) {
    parts.push("in the chosen time");
  }
  return parts.join(" ");
}
